"""The scores of the suite as text, Markdown or one JSON document."""

import json
from collections.abc import Mapping, Sequence

from benchmarks.faults.case import Answer, Score

NAME_WIDTH = 26  # of the longest name


def summary(scores: Sequence[Score]) -> str:
    faults = [score for score in scores if not score.is_control]
    controls = [score for score in scores if score.is_control]
    named = sum(score.answer in (Answer.EXACT, Answer.ADJACENT) for score in faults)
    unclear = sum(score.answer is Answer.UNDETERMINED for score in faults)
    claimed = sum(not score.good for score in controls)
    return (
        f"faults named exactly or adjacently: {named} of {len(faults)}, said to be undetermined there: {unclear}; "
        f"controls with a false claim: {claimed} of {len(controls)}"
    )


def as_text(scores: Sequence[Score], mechanisms: Mapping[str, str]) -> str:
    del mechanisms
    return "\n".join([*(as_line(score) for score in scores), summary(scores)])


def as_line(score: Score) -> str:
    """One score on a line, so that it can be printed while others are still to come."""
    return (
        f"{score.name:{NAME_WIDTH}}  {score.asked:7}  {score.answer.value:12}  "
        f"{score.undetermined_share:6.1%} undetermined  {score.seconds:5.2f} s  {score.said}"
    )


def as_markdown(scores: Sequence[Score], mechanisms: Mapping[str, str]) -> str:
    lines = [
        "| pair | what is planted | asked | answer | undetermined calls | the first statement |",
        "|---|---|---|---|---|---|",
    ]
    lines.extend(
        f"| {score.name} | {mechanisms[score.name]} | {score.asked} | {score.answer.value} "
        f"| {undetermined(score)} | {cell(score.said)} |"
        for score in scores
    )
    return "\n".join([*lines, "", summary(scores) + "."])


def undetermined(score: Score) -> str:
    if not score.calls:
        return ""
    return f"{score.undetermined:,} of {score.calls:,} ({score.undetermined_share:.1%})"


def cell(text: str) -> str:
    return text.replace("\n", " ").replace("|", "\\|").replace("<", "&lt;")


def as_json(scores: Sequence[Score], mechanisms: Mapping[str, str]) -> str:
    rows = [
        {
            "name": score.name,
            "asked": score.asked,
            "kind": "control" if score.is_control else "fault",
            "mechanism": mechanisms[score.name],
            "answer": score.answer.value,
            "good": score.good,
            "said": score.said,
            "undetermined": score.undetermined,
            "calls": score.calls,
            "seconds": round(score.seconds, 3),
        }
        for score in scores
    ]
    return json.dumps({"summary": summary(scores), "scores": rows}, indent=1)
