"""Runs modules of the standard library's own tests, rewritten or not, and writes what became of every test as JSON.

    python -m tests.capture.rewriting.outcomes (plain | rewritten) OUT MODULE…

A child process per mode: what one test leaves behind in the interpreter is not to reach the other side.
"""

import importlib
import io
import json
import sys
import unittest
from collections.abc import Iterator
from typing import Any

from paritrace.capture.rewriting.importing import RewrittenSource, SourceRewriter
from paritrace.capture.rewriting.probes import Probes, listen

counts = {"files": 0, "calls": 0, "observed": 0}


def observed(number: int, value: Any) -> Any:
    counts["observed"] += 1
    return value


def handed_in(number: int, label: str | int, value: Any) -> Any:
    return value


def seen(file: RewrittenSource) -> None:
    counts["files"] += 1
    counts["calls"] += len(file.made.calls)


def left(path: str, reason: str) -> None:
    raise AssertionError((path, reason))


class Outcomes(unittest.TextTestResult):
    """What became of each test, subtests among them."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.of: dict[str, str] = {}

    def startTest(self, test: unittest.TestCase) -> None:
        self.of[test.id()] = "passed"
        super().startTest(test)

    def addError(self, test: Any, err: Any) -> None:
        self.of[test.id()] = f"error {err[0].__name__}"
        super().addError(test, err)

    def addFailure(self, test: Any, err: Any) -> None:
        self.of[test.id()] = f"failed {err[0].__name__}"
        super().addFailure(test, err)

    def addSkip(self, test: Any, reason: str) -> None:
        self.of[test.id()] = "skipped"
        super().addSkip(test, reason)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self.of[subtest.id()] = f"failed {err[0].__name__}"
        super().addSubTest(test, subtest, err)


def tests(names: list[str]) -> Iterator[unittest.TestSuite]:
    for name in names:
        yield unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(f"test.{name}"))


def main(mode: str, into: str, names: list[str]) -> None:
    if mode == "rewritten":
        listen(Probes(observed, handed_in, handed_in, observed))
        rewriter = SourceRewriter(wants=lambda path: "/test/" in path and "/support/" not in path, seen=seen, left=left)
        rewriter.install()
    told = io.StringIO()
    runner = unittest.TextTestRunner(told, resultclass=Outcomes, verbosity=0)
    result = runner.run(unittest.TestSuite(tests(names)))
    assert isinstance(result, Outcomes)
    with open(into, "w") as file:
        json.dump({"outcomes": result.of, **counts}, file)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
