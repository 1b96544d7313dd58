"""Which bytes a document of an artifact rests on (P9)."""

from paritrace.evidence.gaps import Gap
from paritrace.files import LOCAL, Files
from paritrace.inference.artifact import Place
from paritrace.inference.gaps import InferenceGap
from paritrace.inference.result import Source
from paritrace.runs.committed import read_index


def source_of(place: Place, run_id: str, *, files: Files = LOCAL) -> Source:
    """Return the artifact as a source: its committed bytes, and the fold of their digests."""
    index = read_index(place.folder, place.name, files=files)
    if index is None:
        gap: Gap[InferenceGap] = Gap(InferenceGap.NO_INDEX)
        return Source(str(place.path), run_id, files.size(place.path), gap)
    return Source(str(place.path), run_id, index.num_bytes, index.folded_sha256)
