"""Which tasks two configurations have in common, by id and revision: pure (AT-10)."""

from collections.abc import Iterable

from paritrace.attempts.result import Matching

Task = tuple[str, str]


def matching(baseline: Iterable[Task], candidate: Iterable[Task]) -> Matching:
    """Returns all four lists; together they hold every task of both sides.

    A task of which the two sides have different revisions and none in common is in `revision_differs`, and in no other.
    """
    mine, theirs = set(baseline), set(candidate)
    only_mine, only_theirs = mine - theirs, theirs - mine
    names = {name for name, _ in only_mine} & {name for name, _ in only_theirs}
    return Matching(
        matched=tuple(sorted(mine & theirs)),
        baseline_only=tuple(sorted(one for one in only_mine if one[0] not in names)),
        candidate_only=tuple(sorted(one for one in only_theirs if one[0] not in names)),
        revision_differs=tuple(
            (name, _revisions(name, only_mine), _revisions(name, only_theirs)) for name in sorted(names)
        ),
    )


def _revisions(name: str, tasks: Iterable[Task]) -> tuple[str, ...]:
    return tuple(sorted(revision for task, revision in tasks if task == name))
