"""Level `callsite` in one process: captures one after the other, threads, greenlets, files left out (CA-1, CA-10)."""

import importlib
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch

import paritrace
from paritrace.capture.callsites import NO_SOURCE, NOT_BY_US
from paritrace.capture.recorder import Recorder
from paritrace.capture.rewriting import probes
from paritrace.evidence.calls import Call, Flag, Function, GapMark, Site
from paritrace.evidence.callsites import RewrittenFile
from paritrace.evidence.gaps import CountedGap
from tests.capture.test_trace import records

T = torch.ones(3)
WAIT_SECONDS = 60.0


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a workload, on the path of imports; what is imported from it is forgotten."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(folder / "notebook.py"), raising=False)
    (folder / "notebook.py").write_text("")
    before = set(sys.modules)
    importlib.invalidate_caches()
    yield folder
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
            del sys.modules[name]
    probes.be_silent()


def loaded(checkout: Path, name: str, text: str) -> ModuleType:
    (checkout / f"{name}.py").write_text(text)
    return importlib.import_module(name)


def called(run: Path) -> list[tuple[str, Call]]:
    found = records(run)
    names = {one.id: one.name for one in found if isinstance(one, Function)}
    return [(names[one.function], one) for one in found if isinstance(one, Call)]


def test_ca1_a_second_capture_observes_what_the_first_rewrote(checkout: Path, tmp_path: Path) -> None:
    names: list[list[str]] = []
    for number, own in enumerate(("kt_first", "kt_second")):
        with paritrace.trace(tmp_path / str(number), level="callsite"):
            both = loaded(checkout, "kt_both", "def double(x):\n    return x.mul(2)\n")
            new = loaded(checkout, own, "import kt_both\ndef f(x):\n    return kt_both.double(x).add(1)\n")
            new.f(both.double(T))
        names.append([name for name, _ in called(tmp_path / str(number))])
        told = {one.file: one.reason for one in records(tmp_path / str(number)) if isinstance(one, RewrittenFile)}
        assert told["kt_both.py"] == told[f"{own}.py"] == ""
    assert names[0] == names[1] == ["torch.Tensor.mul", "torch.Tensor.mul", "kt_both.double", "torch.Tensor.add"]


def test_what_other_threads_call_leaves_no_call_of_this_one_out(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main, told, done = threading.current_thread(), threading.Event(), threading.Event()
    count = Recorder.count

    def counting(self: Recorder, reason: CountedGap, detail: str, *, number: int = 1) -> None:
        if threading.current_thread() is not main:
            told.set()
            done.wait(WAIT_SECONDS)
        count(self, reason, detail, number=number)

    monkeypatch.setattr(Recorder, "count", counting)
    with paritrace.trace(tmp_path / "RUN", level="callsite"):
        module = loaded(checkout, "kt_threads", "def f(x):\n    return x.mul(2)\n")
        other = threading.Thread(target=module.f, args=(T,))
        other.start()
        assert told.wait(WAIT_SECONDS)  # it is in the middle of the probe behind its call
        module.f(T)
        done.set()
        other.join()
    assert [name for name, _ in called(tmp_path / "RUN")] == ["torch.Tensor.mul"]


def test_ca10_other_greenlets_are_a_counted_gap_and_raise_nothing(checkout: Path, tmp_path: Path) -> None:
    greenlet = pytest.importorskip("greenlet")
    text = """
def work(x, switch):
    x.mul(2)
    switch()
    return x.add(1)
def outer(x, switch):
    return work(x, switch).relu()
def drive(x, one, two, switch):
    one.switch(x, switch)
    two.switch(x, switch)
    return x.exp()
"""
    with paritrace.trace(tmp_path / "RUN", level="callsite"):
        module = loaded(checkout, "kt_greenlets", text)
        main = greenlet.getcurrent()
        one, two = greenlet.greenlet(module.outer), greenlet.greenlet(module.outer)
        module.drive(T, one, two, main.switch)
        one.switch()
    found = called(tmp_path / "RUN")
    assert [name for name, _ in found] == ["greenlet.greenlet.switch"] * 2 + ["torch.Tensor.exp"]
    assert not [call for _, call in found if call.flags & Flag.RAISED]
    gaps = {one.detail for one in records(tmp_path / "RUN") if isinstance(one, GapMark)}
    assert "call expressions of greenlets" in gaps


def test_ca10_a_recomputation_that_stops_early_is_recomputation_to_its_last_call(
    checkout: Path, tmp_path: Path
) -> None:
    text = """
from torch.utils.checkpoint import checkpoint
def block(x):
    return x.matmul(x).tanh()
def run(x):
    checkpoint(block, x, use_reentrant=False).sum().backward()
"""
    with paritrace.trace(tmp_path / "RUN", level="callsite"):
        loaded(checkout, "kt_checkpoint", text).run(torch.ones(2, 2, requires_grad=True))
    found = [(name, Flag(call.flags)) for name, call in called(tmp_path / "RUN")]
    assert [flags for name, flags in found if name == "torch.Tensor.matmul"] == [Flag(0), Flag.RECOMPUTE]
    assert [flags for name, flags in found if name == "torch.Tensor.tanh"] == [Flag(0), Flag.RECOMPUTE | Flag.RAISED]


def test_ca2_an_excluded_file_runs_as_it_is_and_is_named(checkout: Path, tmp_path: Path) -> None:
    with paritrace.trace(tmp_path / "RUN", level="callsite", exclude=["file:kt_left*"]):
        module = loaded(checkout, "kt_left", "def f(x):\n    return x.mul(2)\n")
        loaded(checkout, "kt_taken", "def f(x):\n    return x.mul(2)\n").f(T)
        assert module.f.__code__.co_names == ("mul",)
        module.f(T)
    assert len(called(tmp_path / "RUN")) == 1
    told = {one.file: one.reason for one in records(tmp_path / "RUN") if isinstance(one, RewrittenFile)}
    assert (told["kt_left.py"], told["kt_taken.py"]) == ("excluded", "")


def test_ca10_each_file_that_was_loaded_as_it_is_is_named_also_without_its_text(checkout: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(checkout / "kt.zip", "w") as archive:
        archive.writestr("kt_zipped.py", "def f(x):\n    return x.mul(2)\n")
    with paritrace.trace(tmp_path / "RUN", level="callsite", sources=False):
        sys.path.insert(0, str(checkout / "kt.zip"))
        module = importlib.import_module("kt_zipped")
        module.f(T)
        foreign = ModuleType("kt_foreign")
        foreign.__file__ = str(checkout / "kt_foreign.so")
        sys.modules["kt_foreign"] = foreign
        loaded(checkout, "kt_taken", "def f(x):\n    return x.mul(2)\n").f(T)
    assert len(called(tmp_path / "RUN")) == 1
    told = {one.file: one.reason for one in records(tmp_path / "RUN") if isinstance(one, RewrittenFile)}
    assert told == {
        "kt_taken.py": "",
        "kt.zip/kt_zipped.py": NOT_BY_US,
        "kt_foreign.so": NO_SOURCE,
        "<main>": NOT_BY_US,
    }


def test_ca26_a_file_edited_and_loaded_again_has_both_texts(checkout: Path, tmp_path: Path) -> None:
    texts = ["def f(x):\n    return x.mul(2)\n", "# moved\ndef f(x):\n    return x.mul(2.5)\n"]
    with paritrace.trace(tmp_path / "RUN", level="callsite"):
        module = loaded(checkout, "kt_edited", texts[0])
        old = module.f
        (checkout / "kt_edited.py").write_text(texts[1])
        importlib.reload(module)
        (checkout / "kt_edited.py").write_text("")
        old(T)
        module.f(T)
    found = records(tmp_path / "RUN")
    files = [one.digest for one in found if isinstance(one, RewrittenFile) and one.file == "kt_edited.py"]
    sites = [one for one in found if isinstance(one, Site) and one.file == "kt_edited.py"]
    assert len(set(files)) == 2
    assert [(one.line, one.digest) for one in sites] == [(2, files[0]), (3, files[1])]
    assert CountedGap.CAPTURE_ERROR not in {one.reason for one in found if isinstance(one, GapMark)}
