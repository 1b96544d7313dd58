"""The public names of `paritrace.inference` are a list that changes on purpose only (IN-25)."""

import subprocess
import sys

import pytest

import paritrace.inference as inference

NAMES = [
    "Activity",
    "AppendOptions",
    "Artifact",
    "Attribution",
    "Basis",
    "Capabilities",
    "ClockAlignment",
    "ClockKind",
    "Collected",
    "CollectionMode",
    "Committed",
    "Context",
    "ContextFacts",
    "Domain",
    "EngineAdapter",
    "Events",
    "Iteration",
    "Link",
    "LinkReason",
    "Loss",
    "LossReason",
    "LossStatus",
    "Membership",
    "ProfilerTrace",
    "Provenance",
    "Ref",
    "Request",
    "SessionFacts",
    "Stage",
    "TraceCollector",
    "account",
    "append",
    "init",
    "link",
    "read",
    "resolve",
]


def test_the_names_are_these() -> None:
    assert sorted(inference.__all__) == NAMES
    assert all(getattr(inference, name) is not None for name in NAMES)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        vars(inference)["__getattr__"]("nothing")


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, paritrace.inference; sys.exit(any(name in sys.modules for name in ('numpy', 'torch', 'pyarrow')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
