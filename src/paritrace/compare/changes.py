"""What changed around the run: code, configuration, arguments, packages, machine (CA-30)."""

from collections.abc import Iterator, Mapping

from paritrace.compare.load import Recorded
from paritrace.compare.result import Change
from paritrace.compare.settings import Settings
from paritrace.compare.sites import Lines
from paritrace.evidence.calls import SourceKind
from paritrace.evidence.gaps import Gap
from paritrace.evidence.surroundings import Surroundings

ABSENT = "absent"
OWN = frozenset({SourceKind.MAIN, SourceKind.WORKLOAD})
WRITTEN_LATE = frozenset({"code", "config", "determinism", "device"})  # kinds of which a session writes more as it goes
MAX_LINES = 3  # of a changed file: enough to recognise the change; the sources are in the runs


def changes(baseline: Recorded, candidate: Recorded, *, lines: Lines, settings: Settings) -> tuple[Change, ...]:
    """List what differs around two sessions, in the order in which an engineer looks.

    Names that the settings read alike are the same name; what they leave out is no change.
    What a session without a receipt had not written when it was cut off is not known to be absent: it is no change.
    """
    found = [*_code(baseline, candidate, lines), *_config(baseline, candidate), *_states(baseline, candidate, settings)]
    ours, theirs = baseline.session.surroundings, candidate.session.surroundings
    if isinstance(ours, Surroundings) and isinstance(theirs, Surroundings):
        found += _around(ours, theirs)
    cut = (baseline.session.receipt is None, candidate.session.receipt is None)
    return tuple(change for change in found if not _unwritten(change, cut))


def _unwritten(change: Change, cut: tuple[bool, bool]) -> bool:
    if change.kind not in WRITTEN_LATE:
        return False
    values = (change.baseline, change.candidate)
    return any(value in (ABSENT, "") for value, is_cut in zip(values, cut, strict=True) if is_cut)


def _code(baseline: Recorded, candidate: Recorded, lines: Lines) -> Iterator[Change]:
    ours, theirs = _files(baseline), _files(candidate)
    for name in sorted(ours.keys() | theirs.keys()):
        left, right = ours.get(name), theirs.get(name)
        if left == right:
            continue
        if left is None or right is None:
            yield Change("code", name, ABSENT if left is None else "present", ABSENT if right is None else "present")
            continue
        diff = lines.changed(left, right)
        if diff is None:
            yield Change("code", name, f"digest {left[:12]}", f"digest {right[:12]}")
        else:
            moved = not diff[0] and not diff[1]
            yield Change("code", name, *(("lines in order", "moved") if moved else (_told(diff[0]), _told(diff[1]))))


def _files(side: Recorded) -> dict[str, str]:
    """The workload's own files; a session that was killed before it could list them is read from its sites."""
    sites = (site for site in side.sites.values() if site.kind in OWN and isinstance(site.digest, str))
    return side.code or {site.file: str(site.digest) for site in sites}


def _told(changed: list[tuple[int, str]]) -> str:
    if not changed:
        return "nothing"
    shown = "; ".join(f"{line}: {text}" for line, text in changed[:MAX_LINES])
    more = len(changed) - MAX_LINES
    return f"{shown}; and {more} more" if more > 0 else shown


def _config(baseline: Recorded, candidate: Recorded) -> Iterator[Change]:
    for source in sorted(baseline.config.keys() | candidate.config.keys()):
        ours, theirs = baseline.config.get(source, {}), candidate.config.get(source, {})
        yield from _mapping("config", ours, theirs, prefix=f"{source}.")


def _states(baseline: Recorded, candidate: Recorded, settings: Settings) -> Iterator[Change]:
    """Parameters and buffers that only one side has: tied, split or renamed ones."""
    sides = (("baseline", baseline), ("candidate", candidate))
    reading = [settings.seen_from(name, side.session.rank) for name, side in sides]
    for group in ("parameter", "buffer"):
        ours, theirs = (
            dict.fromkeys(_names(side, group, read), "present") for (_, side), read in zip(sides, reading, strict=True)
        )
        if ours and theirs:
            yield from _mapping("config", ours, theirs, prefix=f"{group} ")


def _names(side: Recorded, group: str, settings: Settings) -> set[str]:
    names = (name for states in side.state_names.values() if states.group == group for name in states.names)
    return {spelled for name in names if not settings.ignores(spelled := settings.spelled(name))}


def _mapping(kind: str, ours: Mapping[str, str], theirs: Mapping[str, str], *, prefix: str = "") -> Iterator[Change]:
    for name in sorted(ours.keys() | theirs.keys()):
        left, right = ours.get(name, ABSENT), theirs.get(name, ABSENT)
        if left != right:
            yield Change(kind, prefix + name, left, right)


def _around(ours: Surroundings, theirs: Surroundings) -> Iterator[Change]:
    yield from _argv(ours, theirs)
    yield from _mapping("determinism", ours.determinism, theirs.determinism)
    yield from _mapping("determinism", _policy(ours), _policy(theirs), prefix="policy.")
    yield from _mapping("package", ours.packages, theirs.packages)
    yield from _mapping("package", {"python": ours.python}, {"python": theirs.python})
    left, right = dict.fromkeys(ours.environment_names, "set"), dict.fromkeys(theirs.environment_names, "set")
    yield from _mapping("environment", left, right)
    devices = (
        {
            "devices": ", ".join(side.devices),
            "num_threads": "" if isinstance(side.num_threads, Gap) else str(side.num_threads),
        }
        for side in (ours, theirs)
    )
    yield from _mapping("device", next(devices), next(devices))
    yield from _mapping("device", {"platform": ours.platform}, {"platform": theirs.platform})
    yield from _mapping("git", _git(ours), _git(theirs))


def _argv(ours: Surroundings, theirs: Surroundings) -> Iterator[Change]:
    """Arguments by place; the name of the script itself is code, not an argument."""
    if isinstance(ours.argv, Gap) or isinstance(theirs.argv, Gap):
        return
    left, right = ours.argv[1:], theirs.argv[1:]
    if left != right:
        yield Change("argv", "argv", " ".join(left) or "none", " ".join(right) or "none")


def _policy(side: Surroundings) -> dict[str, str]:
    return {name: after for name, (_, after) in side.policy.items()}


def _git(side: Surroundings) -> dict[str, str]:
    return {} if isinstance(side.git_commit, Gap) else {"commit": side.git_commit}
