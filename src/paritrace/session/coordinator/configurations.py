"""Keeps the configuration of every revision as rank 0 tells it, and what was requested last (SE-25, SE-26)."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import json as msgspec_json
from msgspec.structs import replace

from paritrace.clock import SYSTEM, Clock
from paritrace.errors import HostError
from paritrace.evidence.plain_json import elements, is_object, members
from paritrace.files import LOCAL, Files
from paritrace.session.commands import Body
from paritrace.session.configuration import KeptConfig, Source
from paritrace.session.coordinator_record import CONFIG_FACT
from paritrace.session.directory import config_path

AGAIN_SECONDS = 5.0  # between two attempts at a disk that had no room


class Configurations:
    """One file for each revision, written once; what a disk does not take is held until it does, and shown meanwhile.

    `requested`: what is asked for as long as nothing else is. Of the main thread, but for `document`.
    """

    def __init__(self, directory: Path, requested: Body, *, files: Files = LOCAL, clock: Clock = SYSTEM) -> None:
        self._directory = directory
        self._files = files
        self._clock = clock
        self._held: dict[int, bytes] = {}
        self._again_ns = 0
        self.requested = dict(requested)

    def keep(self, revision: int, facts: Body) -> None:
        """Keep what a rank tells of its configuration, where it tells any.

        Raises:
            HostError: the disk does not take it: it is held, and written by a later `settle`.
        """
        document = facts.get(CONFIG_FACT)
        if not is_object(document):
            return
        if "settings" not in document:  # the workload declares no fields: values have no source
            self.requested = dict(members(document.get("values")))
            return
        self.requested = requested_of(document)
        path = config_path(self._directory, revision)
        if not self._files.exists(path):
            data = msgspec_json.format(msgspec_json.encode({**document, "revision": revision})) + b"\n"
            self._held[revision] = data
            self._again_ns = self._clock.monotonic_ns() + int(AGAIN_SECONDS * 1e9)
            self._write(revision, data)

    def settle(self, *, at_once: bool = False) -> tuple[int, ...]:
        """Try again to write what is held, every few seconds or `at_once`; return the revisions written now."""
        if not self._held or not (at_once or self._clock.monotonic_ns() >= self._again_ns):
            return ()
        self._again_ns = self._clock.monotonic_ns() + int(AGAIN_SECONDS * 1e9)
        written: list[int] = []
        for revision, data in list(self._held.items()):
            with suppress(HostError):
                self._write(revision, data)
                written.append(revision)
        return tuple(written)

    def document(self, revision: int) -> bytes | None:
        """Return the document of a revision, also one that is held; None where none is kept. From any thread."""
        held = self._held.get(revision)
        return held if held is not None else self._files.read_if_present(config_path(self._directory, revision))

    def _write(self, revision: int, data: bytes) -> None:
        self._files.replace(config_path(self._directory, revision), data)
        del self._held[revision]

    def last_requested(self, revision: int) -> Body | None:
        """Return what the configuration of a revision had been asked for; None where none is kept."""
        data = self._files.read_if_present(config_path(self._directory, revision))
        return None if data is None else requested_of(msgspec_json.decode(data))


def requested_of(document: dict[str, Any]) -> Body:
    """Return the values that were requested of a resolved configuration."""
    settings = [one for one in elements(document.get("settings")) if is_object(one)]
    return {str(one["name"]): one["requested"] for one in settings if "requested" in one}


def with_scheduled(data: bytes, scheduled: Body, /) -> bytes:
    """Return a kept configuration with the values that a run's schedule has put in force, and named as theirs."""
    kept = msgspec_json.decode(data, type=KeptConfig)
    settings = tuple(
        replace(one, value=scheduled[one.name], source=Source.SCHEDULE) if one.name in scheduled else one
        for one in kept.settings
    )
    return msgspec_json.encode(replace(kept, settings=settings))
