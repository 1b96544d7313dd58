"""Reads two sessions' directories and compares them by segment; nobody is asked, so they may run or be over (SE-15)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import DecodeError
from msgspec import json as msgspec_json

from paritrace.errors import RequestError
from paritrace.files import LOCAL, Files
from paritrace.session.checkpoint_records import MANIFEST, Manifest, digest_of_manifest
from paritrace.session.checkpoints import path_of
from paritrace.session.configuration import KeptConfig
from paritrace.session.directory import SESSION, config_path
from paritrace.session.opening import read_journal, read_session
from paritrace.session.segment_comparison import Content, SegmentComparison, Side, compared
from paritrace.session.segments import Mark, lineage_of, segments_of


def is_session(directory: Path, /, *, files: Files = LOCAL) -> bool:
    """Say whether a path is a session's directory."""
    return directory.is_dir() and files.exists(directory / SESSION)


def compare_sessions(base: Path, cand: Path, /, *, files: Files = LOCAL) -> SegmentComparison:
    """Compare the lineages of the last states of two sessions.

    Raises:
        RequestError: Refused, `not_a_session`.
        EvidenceError: Refused: a journal is another program's or a newer one's.
        HostError: Refused: a file cannot be read.
    """
    return compared(side_of(base, files=files), side_of(cand, files=files))


def side_of(directory: Path, /, *, files: Files = LOCAL) -> Side:
    """Return what a comparison has to know of a session. Raises as `compare_sessions`."""
    session = read_session(directory, files=files)
    lineage = lineage_of(segments_of(read_journal(directory, files=files).lines))
    revisions = sorted({piece.segment.config_revision for piece in lineage})
    read = {revision: _config(config_path(directory, revision), files=files) for revision in revisions}
    return Side(
        session_id=session.session_id,
        workload=session.workload,
        arguments=session.arguments,
        world_size=session.world_size,
        lineage=lineage,
        configs={revision: values for revision, values in read.items() if values is not None},
        contents={
            mark.digest: content
            for mark in (one for piece in lineage for one in piece.marks)
            if (content := _content(directory, mark, files=files)) is not None
        },
    )


def _content(directory: Path, mark: Mark, *, files: Files) -> Content | None:
    """What a checkpoint holds, by its manifest, or by the journal where that is gone, or another one has its name."""
    try:
        data = files.read_if_present(path_of(directory, mark.name) / MANIFEST)
        if data is not None and digest_of_manifest(data) == mark.digest:
            manifest = msgspec_json.decode(data, type=Manifest)
            return Content(manifest.content_digest, manifest.state_digests)
    except (RequestError, DecodeError):  # a name from a journal that was edited; a newer manifest
        pass
    return None if mark.content is None else Content(mark.content, mark.states)


def _config(path: Path, *, files: Files) -> Mapping[str, Any] | None:
    """The values of a revision; None where its file is not there or is none of ours: that is said as not comparable."""
    data = files.read_if_present(path)
    if data is None:
        return None
    try:
        return msgspec_json.decode(data, type=KeptConfig).values
    except DecodeError:
        return None
