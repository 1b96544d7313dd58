"""The answers of all tools as tables for the documentation."""

from pathlib import Path

import msgspec

from benchmarks.faults.case import Answer

NO_ANSWER = "no answer"  # the tool ended with an error
KEPT = Path(__file__).parents[1] / "results" / "peers.json"
GOOD = (Answer.EXACT.value, Answer.ADJACENT.value)
HEADS = ("tool", "faults: exact", "exact or adjacent", "no answer", "controls: false claims", "no answer")


class Asked(msgspec.Struct, frozen=True):
    """One tool's answer to one pair. `seconds`: both runs, the recording and the comparison; of paritrace the last."""

    tool: str
    version: str
    pair: str
    is_control: bool
    answer: str
    said: str
    seconds: float


def read(path: Path) -> list[Asked]:
    """The answers that a file keeps."""
    return msgspec.json.decode(path.read_bytes(), type=list[Asked])


def tools_of(found: list[Asked]) -> list[str]:
    return list(dict.fromkeys(asked.tool for asked in found))


def table(found: list[Asked]) -> str:
    """One line per tool."""
    lines = [row(HEADS), "|" + "---|" * len(HEADS)]
    for tool in tools_of(found):
        of = [asked for asked in found if asked.tool == tool]
        version = next((asked.version for asked in of if asked.version), "")
        lines.append(row((f"{tool} {version}".strip(), *counted(of))))
    return "\n".join(lines)


def counted(of: list[Asked]) -> tuple[str, ...]:
    faults, controls = ([asked for asked in of if asked.is_control is wanted] for wanted in (False, True))
    exact = sum(asked.answer == Answer.EXACT.value for asked in faults)
    named = sum(asked.answer in GOOD for asked in faults)
    false = sum(asked.answer == Answer.FALSE_CLAIM.value for asked in controls)
    silent = [str(sum(asked.answer == NO_ANSWER for asked in some)) for some in (faults, controls)]
    return (str(exact), f"{named} of {len(faults)}", silent[0], f"{false} of {len(controls)}", silent[1])


def by_pair(found: list[Asked]) -> str:
    """One line per pair, one column per tool; empty where a tool was not asked."""
    tools = tools_of(found)
    answers = {(asked.tool, asked.pair): asked.answer for asked in found}
    lines = [row(("pair", "", *tools)), "|" + "---|" * (len(tools) + 2)]
    for pair, is_control in dict.fromkeys((asked.pair, asked.is_control) for asked in found):
        kind = "control" if is_control else "fault"
        lines.append(row((pair, kind, *(answers.get((tool, pair), "") for tool in tools))))
    return "\n".join(lines)


def row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"
