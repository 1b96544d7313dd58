"""The summary of a step: Markdown within the mebibyte that GitHub takes of all commands of a step (SU-7): pure."""

LIMIT_BYTES = 1 << 20  # of the file of one step; GitHub drops the whole of a larger one
SPARE_BYTES = 1 << 10  # for the sentence that says what is missing


def within(markdown: str, /, *, there: int) -> str | None:
    """Returns as much of a summary as fits, cut at a paragraph, with what was left out counted; None when none fits.

    Args:
        there: bytes that the step's file holds already.
    """
    data = markdown.encode()
    room = LIMIT_BYTES - there
    if len(data) <= room:
        return markdown
    if room <= SPARE_BYTES:
        return None
    shown = data[: room - SPARE_BYTES].decode("utf-8", "ignore")
    whole = _closed(shown[: shown.rfind("\n\n")] if "\n\n" in shown else shown)
    rest = len(data) - len(whole.encode())
    return f"{whole}\n\n{rest:,} of {len(data):,} bytes are left out: the summary of a step may hold 1 MiB\n"


def _closed(text: str) -> str:
    """Ends a block of code that the cut left open: its fence is the only line that begins with three backticks."""
    fence = ""
    for line in text.split("\n"):
        run = line[: len(line) - len(line.lstrip("`"))]
        if len(run) >= 3 and (not fence or line == fence):
            fence = "" if fence else run
    return f"{text}\n{fence}" if fence else text
