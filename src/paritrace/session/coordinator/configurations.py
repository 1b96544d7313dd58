"""Keeps the configuration of every revision as rank 0 tells it, and what was requested last (SE-25, SE-26)."""

from pathlib import Path
from typing import Any

from msgspec import json as msgspec_json

from paritrace.evidence.plain_json import elements, is_object, members
from paritrace.files import LOCAL, Files
from paritrace.session.commands import Body
from paritrace.session.coordinator_record import CONFIG_FACT
from paritrace.session.directory import config_path


class Configurations:
    """One file for each revision, written once. `requested`: what is asked for as long as nothing else is."""

    def __init__(self, directory: Path, requested: Body, *, files: Files = LOCAL) -> None:
        self._directory = directory
        self._files = files
        self.requested = dict(requested)

    def keep(self, revision: int, facts: Body) -> None:
        """Keep what a rank tells of its configuration, where it tells any."""
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
            self._files.replace(path, data)

    def last_requested(self, revision: int) -> Body | None:
        """Return what the configuration of a revision had been asked for; None where none is kept."""
        data = self._files.read_if_present(config_path(self._directory, revision))
        return None if data is None else requested_of(msgspec_json.decode(data))


def requested_of(document: dict[str, Any]) -> Body:
    """Return the values that were requested of a resolved configuration."""
    settings = [one for one in elements(document.get("settings")) if is_object(one)]
    return {str(one["name"]): one["requested"] for one in settings if "requested" in one}
