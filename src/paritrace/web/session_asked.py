"""What the page of a session may ask of it: less than the session's own API takes (SU-10, SU-11).

No reference to inputs, no path, and of checkpoints only those that are listed.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args

from msgspec import DecodeError, Meta, Struct
from msgspec import json as msgspec_json

from paritrace.errors import RequestError
from paritrace.session.api_records import CommandId
from paritrace.session.bodies import Name, Saved, Steps
from paritrace.session.checkpoint_records import Manifest
from paritrace.session.checkpoint_survey import candidates
from paritrace.session.commands import Body, Kind

MOST_CAPTURED = 1000  # steps: a page is for a look, longer captures are asked for in a terminal
CaptureLevel = Literal["module", "op", "callsite", "digest"]
LEVELS: tuple[str, ...] = get_args(CaptureLevel)


class Asked(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`id`: drawn by the page, so that one press is done once. `generation`: the one that the page showed; in another
    one the command is cancelled."""

    id: CommandId
    generation: Annotated[int, Meta(ge=0, le=2**53)]

    def body(self, directory: Path) -> Body:
        """Return the body of the command that the session's API takes."""
        del directory
        return {}


class NothingAsked(Asked, frozen=True):
    """`stop` and `preview`."""


class RunAsked(Asked, frozen=True):
    """The next steps."""

    steps: Steps

    def body(self, directory: Path) -> Body:
        return {"steps": self.steps}


class SaveAsked(Asked, frozen=True):
    """`name`: one is made from the step where it is left out."""

    name: Name | None = None

    def body(self, directory: Path) -> Body:
        return {} if self.name is None else {"name": self.name}


class LoadAsked(Asked, frozen=True):
    """`checkpoint`: the name of one that is listed."""

    checkpoint: Saved

    def body(self, directory: Path) -> Body:
        """Raises RequestError (Refused), `no_such_checkpoint`."""
        listed = {one.name for one in candidates(directory) if isinstance(one.manifest, Manifest)}
        if self.checkpoint not in listed:
            raise RequestError(
                f"{self.checkpoint} is no checkpoint of this session",
                code="no_such_checkpoint",
                fix="name one of those that the session's page lists",
            )
        return {"checkpoint": self.checkpoint}


class ConfigureAsked(Asked, frozen=True):
    """One value of the configuration. `value`: JSON, or else the text as it is."""

    name: Annotated[str, Meta(min_length=1, max_length=200)]
    value: Annotated[str, Meta(max_length=10_000)]

    def body(self, directory: Path) -> Body:
        return {"values": {self.name: _value(self.value)}}


class CaptureAsked(Asked, frozen=True):
    """The next steps into a run directory of the session."""

    steps: Annotated[int, Meta(ge=1, le=MOST_CAPTURED)]
    level: CaptureLevel = "module"

    def body(self, directory: Path) -> Body:
        return {"steps": self.steps, "level": self.level}


class CloseAsked(Asked, frozen=True):
    """`confirm`: that the session is meant to end."""

    confirm: Literal["close"]


ASKED: Mapping[Kind, type[Asked]] = MappingProxyType(
    {
        Kind.RUN: RunAsked,
        Kind.STOP: NothingAsked,
        Kind.SAVE: SaveAsked,
        Kind.LOAD: LoadAsked,
        Kind.CONFIGURE: ConfigureAsked,
        Kind.PREVIEW: NothingAsked,
        Kind.CAPTURE: CaptureAsked,
        Kind.CLOSE: CloseAsked,
    }
)


def _value(text: str) -> Any:
    try:
        return msgspec_json.decode(text)
    except (DecodeError, RecursionError):
        return text
