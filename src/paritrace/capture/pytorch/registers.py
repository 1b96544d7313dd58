"""What all observers of one session share on the side of torch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from paritrace.capture.pytorch.dumps import Dumps
from paritrace.capture.pytorch.groups import Groups
from paritrace.capture.pytorch.kinds import Kinds
from paritrace.capture.pytorch.meshes import Meshes
from paritrace.capture.pytorch.names import Names
from paritrace.capture.pytorch.rng import Generators
from paritrace.capture.pytorch.scopes import ScopeStack
from paritrace.capture.pytorch.summarising import Summarising
from paritrace.capture.recorder import Recorder


@dataclass(frozen=True, slots=True)
class Registers:
    """What was met so far, the stack of modules, the summaries of this step."""

    kinds: Kinds
    names: Names
    scopes: ScopeStack
    generators: Generators
    groups: Groups
    meshes: Meshes
    summaries: Summarising
    dumps: Dumps | None = None  # None: no tensor is kept whole

    @classmethod
    def of(cls, recorder: Recorder) -> Registers:
        """Empty registers for a session that begins."""
        groups = Groups(recorder.emit)
        meshes = Meshes(recorder.emit, groups, new_id=partial(recorder.definitions.new_id, "mesh"))
        return cls(
            kinds=Kinds(recorder.emit, meshes),
            names=Names(),
            scopes=ScopeStack(recorder.definitions),
            generators=Generators(),
            groups=groups,
            meshes=meshes,
            summaries=Summarising(recorder.settings.regions),
            dumps=None if recorder.tensors is None else Dumps(recorder, recorder.tensors),
        )
