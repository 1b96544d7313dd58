"""The screens of `paritrace infer`: bounded, numbers with their denominators, gaps by name."""

from collections.abc import Iterable, Iterator
from typing import assert_never

from paritrace.evidence.coverage import in_words, state
from paritrace.evidence.gaps import Gap
from paritrace.evidence.ids import Ref
from paritrace.inference.result import (
    AccountReport,
    AppendReport,
    DeviceTime,
    IterationTime,
    LinkCounts,
    LinkExplanation,
    LinkReport,
    LossLine,
    RecoverReport,
    ShowReport,
    StepsOfTrace,
)
from paritrace.inference.vocabulary import Basis, LinkReason, LossStatus
from paritrace.inference.words import of_basis, of_reason
from paritrace.reports.harmless import harmless

MOST_ROWS = 20


def append_screen(report: AppendReport) -> str:
    """Return what an append wrote."""
    lines = [f"{harmless(report.artifact.path)}: {report.num_written:,} events written"]
    lines += [f"  {name}: {count:,}" for name, count in report.written.items()]
    if report.already_present:
        lines.append(f"  already present: {report.already_present:,}")
    lines += recovered_words(report.recovered)
    if report.complete is False:
        lines.append("  the source was not read to its end, or says that it is not whole")
    lines += [f"  limit: {harmless(limit)}" for limit in report.limits[:MOST_ROWS]]
    lines += _more(len(report.limits))
    return "\n".join(lines)


def link_screen(report: LinkReport) -> str:
    """Return the links by basis and reason; device work first, since the fraction is of it."""
    gpu = report.gpu
    lines = [f"device work linked to an iteration: {gpu.linked:,} of {gpu.activities:,}{_percent(gpu.linked_fraction)}"]
    lines += _counts(gpu)
    for name, counts in report.by_domain.items():
        if name != "gpu":
            lines.append(f"{name} activities linked: {counts.linked:,} of {counts.activities:,}")
            lines += _counts(counts)
    seen = report.coverage
    told = "; ".join(f"{harmless(reason)} {count:,}" for reason, count in seen.gaps.items())
    lines.append(f"device activities seen: {in_words(seen)}, {state(seen).value}{f' ({told})' if told else ''}")
    written = f"{report.written:,} links written, {report.already_present:,} already present"
    lines.append(f"{written}, {report.superseded:,} superseded, by rule {report.rule}")
    return "\n".join(lines)


def explanation_screen(report: LinkExplanation) -> str:
    """Return one activity's link with the lines it rests on."""
    link = report.link
    where = "undetermined" if link.iteration_ref is None else f"iteration {_ref(link.iteration_ref)}"
    said = link.basis.value if link.basis is not None else link.reason.value if link.reason is not None else ""
    lines = [
        f"activity {_ref(link.activity_ref)}, line {report.activity_line}: {where}",
        f"  {said}: {report.because}",
    ]
    if link.candidates:
        lines.append(f"  candidates, {len(link.candidates)} of {link.num_candidates}:")
        lines += [f"    {_ref(ref)}" for ref in link.candidates]
    lines += [f"  line {line}: {harmless(event)}" for event, line in list(report.evidence_lines.items())[:MOST_ROWS]]
    return "\n".join(lines)


def account_screen(report: AccountReport) -> str:
    """Return device time; devices and clocks stand apart and are not added up."""
    lines: list[str] = []
    for device in report.devices[:MOST_ROWS]:
        lines += _device(device)
    lines += _more(len(report.devices))
    if not report.devices:
        lines.append("no device work was measured")
    if report.unmeasured_without_device:
        lines.append(f"device work of which not even the device is known: {report.unmeasured_without_device:,}")
    lines.append(f"iterations: {report.num_iterations:,}")
    for iteration in report.iterations[:MOST_ROWS]:
        lines += _iteration(iteration)
    lines += _more(report.num_iterations)
    lines += _losses(report.loss, report.loss_left_out)
    for one in report.shares[:MOST_ROWS]:
        lines.append(f"by model {one.model}, {_ref(one.iteration)} on {harmless(one.device)}: {one.busy_ns:,} ns")
        lines += [f"  {_ref(share.request)}: {share.share_ns:,} ns" for share in one.shares[:MOST_ROWS]]
        lines.append(f"  remainder: {one.remainder_ns:,} ns")
    for steps in report.steps[:MOST_ROWS]:
        lines += _steps(steps)
    return "\n".join(lines)


def _steps(steps: StepsOfTrace) -> list[str]:
    """Which ranges of a trace are iterations of a log; nothing is chosen where it is not determined."""
    why = ", ".join(f"{reason} {count:,}" for reason, count in steps.undetermined.items())
    undetermined = f"; undetermined: {why}" if why else ""
    of = f"steps of {harmless(steps.trace)} in the log of {harmless(steps.engine)}"
    lines = [
        f"{of}: {steps.num_pairs:,} of {steps.ranges:,} ranges are one of {steps.iterations:,} iterations{undetermined}"
    ]
    if steps.in_order:
        lines.append(f"  {steps.in_order:,} more stand in equal order: an estimate, which joins nothing")
    return lines


def show_screen(report: ShowReport) -> str:
    """Return what an artifact holds."""
    source = report.artifact
    lines = [
        f"{harmless(source.path)}: run {harmless(source.run_id)}, {source.num_bytes:,} bytes, index {report.index}"
    ]
    lines.append(f"  sessions: {', '.join(map(harmless, report.sessions[:MOST_ROWS]))}; contexts: {report.contexts:,}")
    lines += [f"  {name}: {count:,}" for name, count in report.events.items()]
    for one in report.components[:MOST_ROWS]:
        state_word = f"{one.collected} of {one.supported} collected" if one.available else "unavailable"
        why = f": {harmless(one.reason)}" if one.reason else ""
        lines.append(f"  {harmless(one.component)} ({harmless(one.session_id)}): {state_word}{why}")
    lines += [
        f"  conflict: {harmless(one.identity)}: {', '.join(map(harmless, one.event_ids[:MOST_ROWS]))}"
        for one in report.conflicts[:MOST_ROWS]
    ]
    num_dangling = len(report.dangling) + report.dangling_left_out
    if num_dangling:
        lines.append(f"  references to what nobody reports: {num_dangling:,}")
        lines += [f"    {one.kind} {_ref(one.ref)}, by {harmless(one.event_id)}" for one in report.dangling[:MOST_ROWS]]
    lines += _losses(report.loss, report.loss_left_out)
    return "\n".join(lines)


def recover_screen(report: RecoverReport) -> str:
    """Return what was kept of bytes that are no events."""
    path = harmless(report.artifact.path)
    lines = [f"{path}: every line is an event, nothing to keep" if not report.kept else f"{path}: can be read again"]
    lines += [
        f"  {one.num_bytes:,} bytes from byte {one.first_byte:,} on ({one.reason.value}) are kept as attachment"
        f" {one.attachment_id}"
        for one in report.kept[:MOST_ROWS]
    ]
    return "\n".join([*lines, *_more(len(report.kept)), *recovered_words(report.recovered)])


def _device(of: DeviceTime) -> Iterator[str]:
    yield f"device {harmless(of.device)}, clock {harmless(of.clock_domain)}"
    yield f"  busy {of.busy_ns:,} ns; summed {of.summed_ns:,} ns; {of.activities:,} activities"
    kinds = ", ".join(f"{harmless(kind)} {count:,}" for kind, count in of.by_kind.items())
    yield f"  {kinds}"
    if of.graph_level:
        yield f"  of the busy time {of.graph_level_ns:,} ns are known of whole graphs only, {of.graph_level:,} of them"
    yield f"  in no iteration: {of.unlinked:,} of {of.activities:,}, busy {of.unlinked_busy_ns:,} ns"
    yield f"  without usable times: {of.unmeasured:,} of {of.activities:,}"


def _iteration(of: IterationTime) -> Iterator[str]:
    elapsed = f"elapsed unknown ({of.elapsed_ns.gap.value})" if isinstance(of.elapsed_ns, Gap) else _ns(of.elapsed_ns)
    yield f"  {_ref(of.iteration)}: {elapsed}"
    for work in of.work:
        num = f"{work.activities:,} activit{'y' if work.activities == 1 else 'ies'}"
        of_device = f"busy {_ns(work.busy_ns)}, summed {_ns(work.summed_ns)}, {num}"
        yield f"    {harmless(work.device)}: {of_device}"


def _losses(losses: Iterable[LossLine], left_out: int) -> Iterator[str]:
    shown = list(losses)
    for one in shown[:MOST_ROWS]:
        yield f"loss of {harmless(one.what)} ({one.reason.value}): {loss_said(one)}; {harmless(one.source)}"
    yield from _more(len(shown) + left_out)


def loss_said(loss: LossLine) -> str:
    """Return how much was lost, in the words of the source: nothing lost is not the same as nothing said."""
    match loss.status:
        case LossStatus.ZERO_REPORTED:
            return "none, as the source says"
        case LossStatus.NOT_REPORTED:
            return "the source does not say"
        case LossStatus.REPORTED:
            return "some, no number given" if isinstance(loss.count, Gap) else f"{loss.count:,}"
        case _:
            assert_never(loss.status)


def _counts(counts: LinkCounts) -> Iterator[str]:
    for basis, count in counts.by_basis.items():
        yield f"  {count:>9,}  {basis}: {of_basis(Basis(basis))}"
    for reason, count in counts.by_reason.items():
        yield f"  {count:>9,}  {reason}: {of_reason(LinkReason(reason))}"


def recovered_words(word: str) -> Iterator[str]:
    """Yield what became of an earlier change that was killed; nothing where there was none."""
    match word:
        case "rolled_forward":
            yield "  an earlier change was cut off after its promise: it was finished first"
        case "rolled_back":
            yield "  an earlier change was cut off before its promise: nothing of it is there"
        case _:
            return


def _more(total: int) -> Iterator[str]:
    if total > MOST_ROWS:
        yield f"  showing {MOST_ROWS:,} of {total:,}; --json has more"


def _percent(fraction: object) -> str:
    return f" ({fraction:.1%})" if isinstance(fraction, float) else ""


def _ns(number: int) -> str:
    return f"{number:,} ns"


def _ref(ref: Ref) -> str:
    return f"{harmless(ref.producer_id)} {harmless(ref.id)}"
