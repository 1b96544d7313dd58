"""Writing a journal of calls: a torn tail is left as it is and named in a record of its own (EV-7)."""

from pathlib import Path

from paritrace.evidence import codec
from paritrace.evidence.calls import LossOfBytes
from paritrace.files import LOCAL, Appender, Files


def write_lines(journal: Appender, lines: bytes) -> int:
    """Append whole lines; what an earlier write left torn is named first. Returns the offset of the first line.

    Raises:
        HostError: Refused when no byte was written, Failed when some were; the next call names them.
    """
    if journal.torn is not None:
        begin, length = journal.torn
        lines = codec.encode_mark(LossOfBytes(offset=begin, length=length)) + lines
    return journal.write(lines)


def continue_journal(path: Path, *, files: Files = LOCAL) -> Appender:
    """Open an existing journal for appending; an incomplete last line is named in a record at once.

    Raises:
        HostError: Refused: `not_found` and what the disk says.
    """
    journal = files.append_existing(path)
    try:
        if journal.torn is not None:
            write_lines(journal, b"")
    except BaseException:
        journal.close()
        raise
    return journal
