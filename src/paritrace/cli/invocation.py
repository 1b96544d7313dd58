"""What one call of the command line was asked for as a whole: shared through click's context object."""

from dataclasses import dataclass


@dataclass(slots=True)
class Invocation:
    """`json`: errors are also due as a document on stdout; `debug`: show the traceback of an error."""

    json: bool = False
    debug: bool = False
