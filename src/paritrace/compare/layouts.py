"""Which groups, meshes, placements and replicas a session tells of (CA-3)."""

from dataclasses import dataclass, field

from paritrace.evidence.distributed import Group, Mesh, Placement, Replicated

LayoutRecord = Group | Mesh | Placement | Replicated


@dataclass(slots=True, kw_only=True)
class Layout:
    """Empty where nothing is distributed. Keys are ids of the session: of a group, a mesh, a kind."""

    groups: dict[int, Group] = field(default_factory=dict[int, Group])
    meshes: dict[int, Mesh] = field(default_factory=dict[int, Mesh])
    placements: dict[int, Placement] = field(default_factory=dict[int, Placement])  # by kind
    replicated: list[Replicated] = field(default_factory=list[Replicated])

    def add(self, record: LayoutRecord) -> None:
        """Take one record in."""
        match record:
            case Group():
                self.groups[record.id] = record
            case Mesh():
                self.meshes[record.id] = record
            case Placement():
                self.placements[record.kind] = record
            case Replicated():
                self.replicated.append(record)
