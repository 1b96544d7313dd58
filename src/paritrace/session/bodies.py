"""What the body of a command holds, by its kind: unknown keys, and names that lead out of the session, are refused."""

from typing import Annotated, Any

from msgspec import Meta, Struct, ValidationError, convert, field

from paritrace.errors import RequestError
from paritrace.session.commands import Body, Kind

Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]  # within the session's own folders (SE-17)
Saved = Annotated[str, Meta(pattern=r"^(autosave/|checkpoints/)?[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
LevelName = Annotated[str, Meta(pattern="^[a-z]+$")]
Steps = Annotated[int, Meta(ge=1, le=2**53)]
Values = dict[str, Any]


class _Body(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A JSON object; what is left out is not stated."""


class RunBody(_Body, frozen=True):
    """`schedule`: values over the steps of this run alone (SE-24); `autosave`: on pause (SE-37)."""

    steps: Steps
    schedule: Values = field(default_factory=dict[str, Any])
    autosave: bool = True
    preview_every: Annotated[int, Meta(ge=1)] | None = None
    preview_options: Values = field(default_factory=dict[str, Any])


class NothingBody(_Body, frozen=True):
    """`stop` says nothing further."""


class ConfigureBody(_Body, frozen=True):
    """`inputs`: a reference of the workload's own kind."""

    values: Values = field(default_factory=dict[str, Any])
    inputs: Values | None = None
    tolerate_unknown: bool = False


class SaveBody(_Body, frozen=True):
    """`name`: one is made from the step where it is left out."""

    name: Name | None = None


class LoadBody(_Body, frozen=True):
    """`checkpoint`: a name, or `latest`. `rebuild`: out of an error, with new ranks (SE-20)."""

    checkpoint: Saved
    rebuild: bool = False
    tolerate_unknown: bool = False


class InputsBody(_Body, frozen=True):
    """`reference`: what the workload's `prepare_inputs` takes."""

    reference: Values


class PreviewBody(_Body, frozen=True):
    """`options`: the workload's own; costly diagnostics are off unless asked for (SE-32).

    `rank`: of this rank alone; every rank that offers one where it is left out.
    """

    options: Values = field(default_factory=dict[str, Any])
    rank: Annotated[int, Meta(ge=0)] | None = None


class CaptureBody(_Body, frozen=True):
    """The next `steps` at a level or levels of `paritrace run`, into the session's captures (SE-15).

    `select`, `regions`, `statistics` as the options of `paritrace run`.
    """

    steps: Annotated[int, Meta(ge=1, le=1_000_000)]
    level: LevelName | tuple[LevelName, ...] = "module"
    name: Name | None = None
    select: tuple[str, ...] = ()
    regions: Annotated[int, Meta(ge=1)] | None = None
    statistics: bool = False


class RebuildBody(_Body, frozen=True):
    """The whole new request (SE-33)."""

    values: Values = field(default_factory=dict[str, Any])
    inputs: Values | None = None
    tolerate_unknown: bool = False


class CloseBody(_Body, frozen=True):
    """`now`: whatever is under way, also where a rank is stuck: ranks are ended within the bounds of a fail-stop."""

    now: bool = False


BODIES: dict[Kind, type[_Body]] = {
    Kind.RUN: RunBody,
    Kind.STOP: NothingBody,
    Kind.CONFIGURE: ConfigureBody,
    Kind.SAVE: SaveBody,
    Kind.LOAD: LoadBody,
    Kind.INPUTS: InputsBody,
    Kind.PREVIEW: PreviewBody,
    Kind.CAPTURE: CaptureBody,
    Kind.REBUILD: RebuildBody,
    Kind.CLOSE: CloseBody,
}


def checked_body(kind: Kind, body: Body, /) -> Body:
    """Return the body of a command as it was given, once it holds what its kind takes and nothing else.

    Raises:
        RequestError: Refused, `bad_command`: a key that its kind does not know, a missing one, a value of another kind.
    """
    try:
        convert(body, BODIES[kind])
    except ValidationError as error:
        raise RequestError(
            f"{kind.value}: {error}",
            code="bad_command",
            fix=f"`paritrace session {kind.value} --help` and the OpenAPI document list what it takes",
        ) from None
    return dict(body)
