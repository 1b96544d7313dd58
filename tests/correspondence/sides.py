"""Neutral records for tests: written as short tuples, or drawn at random."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from paritrace.correspondence.pairing import Pairing
from paritrace.correspondence.records import Flow, Made, Records, Scopes


@dataclass(frozen=True)
class Item:
    """One record; everything but the key may be left out."""

    key: Hashable
    inputs: Hashable | None = None  # None: not captured, no anchor
    scope: int = 0
    stream: Hashable = "forward"
    layer: int = 0
    link: int = -1
    label: str = ""
    names: tuple[str, ...] = ()
    flow: tuple[Flow, ...] = ()
    entry: bool = False
    wider: Hashable | None = None


@dataclass(frozen=True)
class Tree:
    parents: Sequence[int] = (0,)
    names: Sequence[str] = ("",)
    facts: Sequence[str] = ("",)


@dataclass
class Side:
    items: list[Item]
    tree: Tree = field(default_factory=Tree)

    def records(self) -> Records:
        items = self.items
        return Records(
            streams=[item.stream for item in items],
            layers=[item.layer for item in items],
            scopes=[item.scope for item in items],
            entries=[item.entry for item in items],
            keys=[item.key for item in items],
            inputs=[item.inputs for item in items],
            links=[item.link for item in items],
            replays=[False for _ in items],
            labels=[item.label for item in items],
            tree=Scopes(parents=self.tree.parents, names=self.tree.names, facts=self.tree.facts),
            anchor_inputs=lambda i: items[i].inputs,
            names=lambda i: items[i].names,
            flow=lambda i: items[i].flow,
            wider=lambda i: items[i].wider,
        )


def side(*keys: Hashable) -> Records:
    """Records of one scope; a tuple is (key, inputs), anything else a key without captured inputs."""
    return Side([Item(*key) if isinstance(key, tuple) else Item(key) for key in keys]).records()


def pairs_of(pairing: Pairing) -> list[tuple[int, int]]:
    return [(i, j) for i, j in enumerate(pairing.partner_a) if j >= 0]


TREE = Tree(parents=(0, 0, 0, 1, 1), names=("", "x", "y", "x.p", "x.q"), facts=("", "A", "B", "C", "C"))


@st.composite
def sides(draw: st.DrawFn) -> Side:
    """A side with forward records in a small tree, backward records linked to them, and recorded flow."""
    items: list[Item] = []
    for place in range(draw(st.integers(0, 10))):
        made = [Made(i, 0) for i in range(place)]
        flows = st.one_of(
            st.none(), st.sampled_from(["parameter:w", "batch"]), *([st.sampled_from(made)] if made else [])
        )
        items.append(
            Item(
                key=draw(st.integers(0, 2)),
                inputs=draw(st.none() | st.integers(0, 3)),
                scope=draw(st.integers(0, 4)),
                layer=draw(st.integers(0, 1)),
                names=draw(st.sampled_from([(), ("w",), ("v",)])),
                flow=tuple(draw(st.lists(flows, max_size=2))),
            )
        )
    forward = len(items)
    for _ in range(draw(st.integers(0, 6)) if forward else 0):
        linked = draw(st.booleans())
        items.append(
            Item(
                key=("back", draw(st.integers(0, 1))),
                inputs=draw(st.none() | st.integers(0, 2)),
                stream="backward",
                link=draw(st.integers(0, forward - 1)) if linked else -1,
                label=draw(st.sampled_from(["", "w"])) if not linked else "",
            )
        )
    return Side(items, TREE)


MAKERS = 2
Known = tuple[str, tuple[str, ...], tuple[Flow, ...]]
KNOWN_BY: list[Known] = [
    ("", (), ()),
    ("", (), ("gradient:x",)),
    ("", (), (Made(1, 0),)),
    ("bucket x", ("x",), ()),
    ("bucket xy", ("x", "y"), ()),
    ("bucket yz", ("y", "z"), ()),
]
COLLECTIVES = [
    Item(key, inputs, scope=scope, stream=stream, label=label, names=names, flow=flow, wider="groups")
    for key in ("all_reduce", "broadcast")
    for inputs in (None, 1, 2)
    for scope in (0, 1)
    for stream in ("group world", "group dp")
    for label, names, flow in KNOWN_BY
]
"""Records of a group's own stream: some known by what they hold, the others by key, inputs and recorded flow."""


@st.composite
def grouped_sides(draw: st.DrawFn) -> Side:
    """A side with collectives of two groups; a few records before them make what they read."""
    makers = [Item(key, inputs=key) for key in draw(st.lists(st.integers(0, 2), min_size=MAKERS, max_size=MAKERS))]
    return Side([*makers, *draw(st.lists(st.sampled_from(COLLECTIVES), max_size=6))], TREE)
