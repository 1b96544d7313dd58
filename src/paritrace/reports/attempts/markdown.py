"""Parts of a report of attempts as Markdown for a pull request (AT-17)."""

from collections.abc import Iterable

from paritrace.reports.attempts.sections import Part
from paritrace.reports.markdown.spelling import plain, table


def markdown_of(parts: Iterable[Part]) -> str:
    """Returns the same parts as headings and tables; nothing that was recorded is markup."""
    blocks: list[str] = []
    for part in parts:
        blocks.append(f"{'#' * (part.level + 1)} {plain(part.title)}")
        if part.notes:
            blocks.append("\n".join(f"- {plain(note)}" for note in part.notes))
        if part.rows:
            rows = ((plain(name.strip()), plain(said)) for name, said in part.rows)
            blocks.append(table(("", ""), rows))
    return "\n\n".join(blocks) + "\n"
