"""The attempts, files and lines behind a figure of a summary (AT-17, P9)."""

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from paritrace.attempts.assessing import Assessed
from paritrace.attempts.details import basis_name
from paritrace.attempts.facts import AttemptFacts
from paritrace.attempts.figures import Figure
from paritrace.attempts.json_lines import lines_of_pointers
from paritrace.attempts.manifest import Evaluator, Manifest
from paritrace.attempts.manifest_rules import sources_behind
from paritrace.attempts.origins import Origin
from paritrace.attempts.reading import Unusable
from paritrace.attempts.states import evaluators_of, judged
from paritrace.errors import RequestError

FORMAT = "paritrace-attempts-explanation"
VERSION = "1.0"
MOST_SUGGESTED = 40


class Place(Struct, frozen=True):
    """A place in an evidence file; `line` and `pointer` as far as the format has them."""

    source: str
    path: str
    sha256: str | None
    line: int | None
    pointer: str
    member: str


class Evidence(Struct, frozen=True):
    """What one attempt gives to a figure, in words, and where that was read."""

    attempt_id: str
    said: str
    places: tuple[Place, ...]


class Explained(Struct, frozen=True):
    """Everything behind a figure."""

    format: str
    version: str
    figure: str
    manifest_sha256: str
    evidence: tuple[Evidence, ...]


Said = Callable[[AttemptFacts], str | None]  # what an attempt gives to the figure; None: nothing


def explained(assessed: Assessed, figure: str) -> Explained:
    """Returns what is behind a figure: `CONFIGURATION.tokens.input_tokens`, `.costs`, `.states.missing` …

    Raises:
        RequestError: Refused, `no_such_figure`.
    """
    configuration, said = _resolved(assessed, figure)
    places = _Places(assessed.loaded.head)
    found: list[Evidence] = []
    for facts in assessed.facts():
        if facts.attempt.configuration_id == configuration:
            told = said(facts)
            if told is not None:
                found.append(Evidence(facts.attempt.attempt_id, told, tuple(places.of(facts))))
    found += _of_configuration(assessed, configuration, figure, places)
    found.sort(key=lambda one: one.attempt_id)
    return Explained(FORMAT, VERSION, figure, assessed.loaded.sha256, _with_lines(found, assessed))


def _of_configuration(assessed: Assessed, name: str, figure: str, places: "_Places") -> Iterator[Evidence]:
    """What the configuration itself gives to a figure, and no attempt: gaps that belong to all of them."""
    declared = next(one for one in assessed.loaded.head.configurations if one.id == name)
    for gap in declared.gaps:
        if figure == f"{name}.gaps.{gap.reason}":
            at = () if gap.origin is None else (places.place(gap.origin),)
            yield Evidence("", f"{gap.reason} ({gap.count}): {gap.detail}", at)


def _with_lines(found: list[Evidence], assessed: Assessed) -> tuple[Evidence, ...]:
    """The evidence with the lines that pointers into whole documents lead to, as far as the documents are at hand."""
    wanted: dict[str, set[str]] = {}
    for one in found:
        for place in one.places:
            if place.line is None and not place.member:
                wanted.setdefault(place.source, set()).add(place.pointer)
    lines = {name: _lines(assessed.sources.content(name), pointers) for name, pointers in wanted.items()}
    return tuple(replace(one, places=tuple(_placed(place, lines) for place in one.places)) for one in found)


def _lines(content: bytes | Unusable | None, pointers: set[str]) -> dict[str, int]:
    if not isinstance(content, bytes):
        return {}
    return lines_of_pointers(content.decode("utf-8", "replace"), pointers)


def _placed(place: Place, lines: Mapping[str, Mapping[str, int]]) -> Place:
    if place.line is not None or place.member:
        return place
    return replace(place, line=lines[place.source].get(place.pointer))


def figures_of(assessed: Assessed) -> Iterator[str]:
    """Yields the name of every figure that can be explained."""
    for name, tally in sorted(assessed.tallies.items()):
        yield from (f"{name}.tokens.{kind}" for kind in tally.tokens)
        yield from (f"{name}.{kind}" for kind in ("costs", "repriced", "fractions", "attempts", "durations", "fields"))
        yield from (f"{name}.stops.{kind}" for kind in sorted(tally.stops))
        yield from (f"{name}.states.{kind}" for kind in sorted({s for one in tally.judges for s in one.states}))
        yield from (f"{name}.requests.{kind}" for kind in sorted(tally.requests))
        declared = next(one for one in assessed.loaded.head.configurations if one.id == name)
        reasons = {*tally.gaps, *(str(gap.reason) for gap in declared.gaps)}
        yield from (f"{name}.gaps.{kind}" for kind in sorted(reasons))


def _resolved(assessed: Assessed, figure: str) -> tuple[str, Said]:
    """The configuration that a figure's name begins with, and how an attempt speaks of it."""
    names = sorted(assessed.tallies, key=len, reverse=True)  # ids may have dots in them
    name = next((one for one in names if figure.startswith(f"{one}.")), None)
    kind, _, rest = figure.removeprefix(f"{name}.").partition(".")
    if name is not None and kind in KINDS and (figure in set(figures_of(assessed)) or kind in OPEN):
        return name, KINDS[kind](rest)
    known = list(figures_of(assessed))
    more = "" if len(known) <= MOST_SUGGESTED else ", …"
    raise RequestError(
        f"the summary has no figure {figure}",
        code="no_such_figure",
        fix=f"name one of {', '.join(known[:MOST_SUGGESTED])}{more}",
    )


def _tokens(kind: str) -> Said:
    return lambda facts: _in_words(next(one for name, one in facts.tokens.items() if str(name) == kind))


def _costs(_rest: str) -> Said:
    def said(facts: AttemptFacts) -> str:
        told = [f"{_in_words(one)} ({basis_name(basis)})" for basis, one in facts.costs.items()]
        return ", ".join(sorted(told)) or "no cost is known (cost_absent)"

    return said


def _repriced(_rest: str) -> Said:
    return lambda facts: "no rate card was given" if facts.repriced is None else _in_words(facts.repriced)


def _states(state: str) -> Said:
    def said(facts: AttemptFacts) -> str | None:
        found = {str(judged(facts.attempt, one).state) for one in _judges(facts)}
        return f"{state}; stopped: {facts.attempt.stop.kind}" if state in found else None

    return said


def _fractions(_rest: str) -> Said:
    def said(facts: AttemptFacts) -> str:
        found = sorted(str(judged(facts.attempt, one).state) for one in _judges(facts))
        return ", ".join(found)

    return said


def _stops(kind: str) -> Said:
    def said(facts: AttemptFacts) -> str | None:
        stop = facts.attempt.stop
        return (f"{kind}: {stop.word}" if stop.word else kind) if str(stop.kind) == kind else None

    return said


def _requests(state: str) -> Said:
    def said(facts: AttemptFacts) -> str | None:
        found = [one.request_id for one in facts.requests if str(one.state) == state]
        return f"{state}: {', '.join(found)}" if found else None

    return said


def _gaps(reason: str) -> Said:
    def said(facts: AttemptFacts) -> str | None:
        return f"{reason} ({facts.gaps[reason]})" if facts.gaps.get(reason) else None

    return said


def _durations(_rest: str) -> Said:
    def said(facts: AttemptFacts) -> str:
        times = facts.times
        return f"task {times.task_seconds} s, invocations {list(times.invocations.seconds)} s"

    return said


def _attempts(_rest: str) -> Said:
    return lambda facts: "found" if facts.attempt.present else "planned, and not found"


def _fields(_rest: str) -> Said:
    return lambda facts: ", ".join(f"{name} {value}" for name, value in sorted(facts.attempt.fields.items())) or None


def _judges(facts: AttemptFacts) -> list[Evaluator | None]:
    return [*evaluators_of(facts.attempt)] or [None]


KINDS: Mapping[str, Callable[[str], Said]] = {
    "tokens": _tokens,
    "costs": _costs,
    "repriced": _repriced,
    "states": _states,
    "fractions": _fractions,
    "stops": _stops,
    "requests": _requests,
    "gaps": _gaps,
    "durations": _durations,
    "attempts": _attempts,
    "fields": _fields,
}
OPEN = frozenset({"states", "stops", "requests", "gaps"})  # a state that no attempt has is a figure too: 0


def _in_words(figure: Figure) -> str:
    why = f" ({', '.join(figure.gaps)})" if figure.gaps else ""
    if figure.known:
        return f"{figure.low:,}{why}"
    return f">= {figure.low:,}{why}" if figure.high is None else f"{figure.low:,} to {figure.high:,}{why}"


class _Places:
    """Where the facts of attempts were read, each place once."""

    def __init__(self, head: Manifest) -> None:
        self._sources = {one.id: one for one in head.sources}

    def of(self, facts: AttemptFacts) -> Iterator[Place]:
        """Yields the places behind an attempt, the most exact ones first."""
        attempt = facts.attempt
        origins = [one.origin for one in attempt.evaluations]
        accounts = [attempt.accounting, *(one.accounting for one in facts.requests)]
        for account in accounts:
            if account is not None:
                origins += [
                    account.origin,
                    *(one.origin for one in account.usage),
                    *(one.origin for one in account.costs),
                ]
        origins += [attempt.origin, attempt.stop.origin, *(one.origin for one in attempt.gaps)]
        origins += [origin for one in facts.requests for origin in one.origins]
        seen = dict.fromkeys(one for one in origins if one is not None)
        named = {one.source for one in seen}
        more = (Origin(name) for name in sorted(sources_behind(attempt) - named))
        for one in (*seen, *more):
            yield self.place(one)

    def place(self, origin: Origin) -> Place:
        """Returns a place with its file and digest."""
        source = self._sources[origin.source]
        return Place(source.id, source.path, source.sha256, origin.line, origin.pointer, origin.member)
