"""Device time of an iteration shared among its requests, by an explicitly named model and no other way (IN-9)."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import assert_never

from paritrace.errors import RequestError
from paritrace.evidence.ids import Ref
from paritrace.inference.records import AnyEvent, Membership
from paritrace.inference.result import IterationTime, RequestShare, SharedWork


class ShareModel(StrEnum):
    """How busy time is shared; what a model cannot give to a request is its remainder."""

    TOKENS = "tokens/1"  # by the tokens that each member put into the iteration
    MEMBERS = "members/1"  # the same to each member


def members_of(events: Iterable[AnyEvent]) -> dict[Ref, dict[Ref, int | None]]:
    """Return the tokens of each iteration's requests; None where one membership does not say its own."""
    members: dict[Ref, dict[Ref, int | None]] = {}
    for event in events:
        if isinstance(event, Membership):
            of = members.setdefault(event.iteration_ref, {})
            before = of.get(event.request_ref, 0)
            of[event.request_ref] = None if before is None or event.tokens is None else before + event.tokens
    return members


def shared(
    iterations: Sequence[IterationTime], members: Mapping[Ref, Mapping[Ref, int | None]], *, model: ShareModel
) -> tuple[SharedWork, ...]:
    """Return the busy time of iterations as shares of their requests.

    Shares are whole nanoseconds, rounded down; the rest is the remainder, as is all of an iteration whose tokens
    are not all known. Shares plus remainder are the measured union, exactly.
    """
    found: list[SharedWork] = []
    for iteration in iterations:
        weights = _weights(members.get(iteration.iteration, {}), model)
        total = sum(weights.values())
        for work in iteration.work:
            shares = tuple(
                RequestShare(request=ref, share_ns=work.busy_ns * weight // total)
                for ref, weight in sorted(weights.items())
                if total
            )
            one = SharedWork(
                model=model.value,
                iteration=iteration.iteration,
                device=work.device,
                clock_domain=work.clock_domain,
                busy_ns=work.busy_ns,
                shares=shares,
                remainder_ns=work.busy_ns - sum(share.share_ns for share in shares),
            )
            require_whole(one, members=weights)
            found.append(one)
    return tuple(found)


def require_whole(shared_work: SharedWork, *, members: Iterable[Ref]) -> None:
    """Check shares of any model: of members alone, each once, none negative, with the remainder equal to the union.

    Raises:
        RequestError: Refused, code `shares_do_not_add_up`.
    """
    named = [share.request for share in shared_work.shares]
    parts = (*(share.share_ns for share in shared_work.shares), shared_work.remainder_ns)
    if len(set(named)) != len(named) or not set(named) <= set(members) or min(parts) < 0:
        raise _wrong(shared_work, "a share is negative, twice, or of a request that took no part")
    if sum(parts) != shared_work.busy_ns:
        raise _wrong(shared_work, f"they and the remainder add up to {sum(parts)} ns")


def _weights(members: Mapping[Ref, int | None], model: ShareModel) -> dict[Ref, int]:
    match model:
        case ShareModel.MEMBERS:
            return dict.fromkeys(members, 1)
        case ShareModel.TOKENS:
            known = {ref: tokens for ref, tokens in members.items() if tokens is not None}
            return known if len(known) == len(members) else {}
        case _:
            assert_never(model)


def _wrong(of: SharedWork, what: str) -> RequestError:
    return RequestError(
        f"shares of iteration {of.iteration.producer_id} {of.iteration.id} by {of.model!r}: {what};"
        f" {of.busy_ns} ns were measured",
        code="shares_do_not_add_up",
        fix="give members alone, and the part that no model explains as the remainder",
    )
