"""Sites: whose code a frame runs, how its file is spelt, and what is kept of it (CA-4, CA-26, CP-19)."""

import hashlib
import linecache
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType, ModuleType

import pytest
import torch
import typing_extensions

from paritrace.capture import sites as module
from paritrace.capture.sites import Place, Sites, workload_root
from paritrace.evidence.calls import Site, SourceKind
from paritrace.evidence.definition import Definition
from paritrace.evidence.gaps import CaptureGap, Gap

SOURCE = "import sys\n\n\ndef here():\n    return sys._getframe()\n\n\ndef call(f):\n    return f()\n"


class Kept:
    """Sites of one session beside every definition they wrote."""

    def __init__(self, root: Path, *, main: str | None = None, keep_sources: bool = True) -> None:
        self.written: list[Definition] = []
        self.sites = Sites(root=root, main=main, emit=self.written.append, keep_sources=keep_sources)

    def of(self, place: Place) -> tuple[Site, Site]:
        by_id = {record.id: record for record in self.written if isinstance(record, Site)}
        return by_id[place.site], by_id[place.workload_site]


def loaded(path: Path, text: str = SOURCE) -> dict[str, Callable[..., FrameType]]:
    """The functions of a file that is written and executed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    names: dict[str, Callable[..., FrameType]] = {}
    exec(compile(text, str(path), "exec"), names)
    return names


def test_a_call_of_the_main_script_is_spelt_main(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    here = loaded(path)["here"]
    kept = Kept(tmp_path, main=str(path))
    site, workload = kept.of(kept.sites.place(here()))
    assert site == workload
    assert (site.kind, site.file, site.line, site.function) == (SourceKind.MAIN, "<main>", 5, "here")
    assert site.digest == hashlib.sha256(SOURCE.encode()).hexdigest()
    assert site.path == str(path)


def test_the_columns_of_two_calls_on_one_line_differ(tmp_path: Path) -> None:
    text = "def both(f):\n    return f(), f()\n"
    both = loaded(tmp_path / "two.py", text)["both"]
    kept = Kept(tmp_path)
    places = both(lambda: kept.of(kept.sites.place(sys._getframe(1)))[0])
    assert [(site.line, site.column) for site in places] == [(2, 11), (2, 16)]  # type: ignore[attr-defined]


def test_a_library_call_has_its_own_site_and_the_workloads(tmp_path: Path) -> None:
    library = loaded(tmp_path / "env" / "lib" / "site-packages" / "zoo" / "model.py")
    workload = loaded(tmp_path / "pkg" / "train.py")
    kept = Kept(tmp_path)
    site, nearest = kept.of(kept.sites.place(workload["call"](library["here"])))
    assert (site.kind, site.file) == (SourceKind.INSTALLED, "zoo/model.py")
    assert (nearest.kind, nearest.file, nearest.line) == (SourceKind.WORKLOAD, "pkg/train.py", 9)


def test_code_outside_the_root_is_other_and_named_by_its_file_alone(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "checkout")
    site, _ = kept.of(kept.sites.place(loaded(tmp_path / "elsewhere" / "lib.py")["here"]()))
    assert (site.kind, site.file) == (SourceKind.OTHER, "lib.py")


def test_a_moved_checkout_is_spelt_the_same(tmp_path: Path) -> None:
    spelt = []
    for place in (tmp_path / "old", tmp_path / "new" / "deeper"):
        kept = Kept(place)
        site, _ = kept.of(kept.sites.place(loaded(place / "pkg" / "model.py")["here"]()))
        spelt.append((site.kind, site.file, site.line, site.column, site.digest))
    assert spelt[0] == spelt[1]


def test_a_root_that_is_the_file_systems(tmp_path: Path) -> None:
    kept = Kept(Path("/"))
    site, _ = kept.of(kept.sites.place(loaded(tmp_path / "model.py")["here"]()))
    assert site.kind is SourceKind.WORKLOAD
    assert "/" + site.file == str(tmp_path / "model.py")


def test_a_folder_whose_name_only_begins_like_the_root_is_outside(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "run")
    site, _ = kept.of(kept.sites.place(loaded(tmp_path / "run2" / "lib.py")["here"]()))
    assert site.kind is SourceKind.OTHER


def test_equal_code_of_two_files_is_two_sites(tmp_path: Path) -> None:
    first, second = loaded(tmp_path / "a" / "layer.py")["here"], loaded(tmp_path / "b" / "layer.py")["here"]
    assert first.__code__ == second.__code__
    kept = Kept(tmp_path)
    files = [kept.of(kept.sites.place(function()))[0].file for function in (first, second)]
    assert files == ["a/layer.py", "b/layer.py"]


def test_paritrace_torch_and_the_standard_library_are_never_sites(tmp_path: Path) -> None:
    frames: list[FrameType] = []
    kept = Kept(tmp_path)

    class Look(torch.nn.Module):
        def forward(self, value: torch.Tensor) -> torch.Tensor:
            frames.append(sys._getframe().f_back)  # type: ignore[arg-type]
            return value

    layer = Look()
    loaded(tmp_path / "train.py")["call"](lambda: layer(torch.zeros(1)))
    inside = frames[0]
    assert "/torch/" in inside.f_code.co_filename
    site, workload = kept.of(kept.sites.place(inside))
    assert site.file == "test_sites.py"  # this file lies outside the root, and is no library
    assert workload.file == "train.py"


def test_a_deprecated_function_of_torch_is_called_where_the_workload_calls_it(tmp_path: Path) -> None:
    """`dist.all_gather_into_tensor` and others go through a wrapper of typing_extensions: nobody's call site."""

    @typing_extensions.deprecated("for this test", category=None)
    def wrapped() -> FrameType:
        return sys._getframe(1)

    call = loaded(tmp_path / "train.py")["call"]
    kept = Kept(tmp_path)
    site, workload = kept.of(kept.sites.place(call(wrapped)))
    assert site == workload
    assert (site.file, site.line) == ("train.py", 9)


def test_no_frame_at_all_is_nowhere(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    place = kept.sites.place(None)
    assert place == Place(kept.sites.nowhere, kept.sites.nowhere)
    assert kept.of(place)[0].kind is SourceKind.OTHER


def test_each_text_is_taken_once(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    here = loaded(tmp_path / "model.py")["here"]
    for _ in range(2):
        kept.sites.place(here())
    ((file, digest, data),) = kept.sites.take_texts()
    assert (file, data, digest) == ("model.py", SOURCE.encode(), hashlib.sha256(data).hexdigest())
    kept.sites.place(here())
    assert kept.sites.take_texts() == []


def test_without_sources_the_digest_is_a_gap_and_no_text_is_kept(tmp_path: Path) -> None:
    kept = Kept(tmp_path, keep_sources=False)
    site, _ = kept.of(kept.sites.place(loaded(tmp_path / "model.py")["here"]()))
    assert isinstance(site.digest, Gap)
    assert site.digest.gap is CaptureGap.NOT_COLLECTED
    assert kept.sites.take_texts() == []


def test_a_source_that_is_gone_is_a_gap_and_a_notebook_cell_is_found_where_python_keeps_it(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    gone = loaded(tmp_path / "gone.py")["here"]
    (tmp_path / "gone.py").unlink()
    site, _ = kept.of(kept.sites.place(gone()))
    assert isinstance(site.digest, Gap)
    assert site.digest.gap is CaptureGap.NOT_OBSERVED
    name = "<ipython-input-1-abc>"
    names: dict[str, Callable[..., FrameType]] = {}
    exec(compile(SOURCE, name, "exec"), names)
    linecache.cache[name] = (len(SOURCE), None, SOURCE.splitlines(True), name)
    try:
        cell, workload = kept.of(kept.sites.place(names["here"]()))
    finally:
        del linecache.cache[name]
    assert (cell.kind, cell.file) == (SourceKind.OTHER, name)
    assert workload == cell, "a notebook's cell is the workload's"
    assert cell.digest == hashlib.sha256(SOURCE.encode()).hexdigest()


class _NoDictionary:
    __slots__ = ()


class _Angry(ModuleType):
    @property
    def __dict__(self) -> dict[str, object]:  # type: ignore[override]
        raise RuntimeError("looked into")


def test_what_stands_among_the_modules_is_no_danger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept(tmp_path)
    (tmp_path / "used.py").write_text("x = 1\n", encoding="utf-8")
    angry, null, plain = _Angry("angry"), ModuleType("null"), ModuleType("plain")
    null.__file__ = str(tmp_path / "a\0b.py")
    plain.__file__ = str(tmp_path / "used.py")
    for name, value in (("x_slots", _NoDictionary()), ("x_angry", angry), ("x_null", null), ("x_plain", plain)):
        monkeypatch.setitem(sys.modules, name, value)
    monkeypatch.setitem(sys.modules, "x_none", None)
    assert kept.sites.workload_files() == {"used.py": hashlib.sha256(b"x = 1\n").hexdigest()}


def test_the_codes_of_a_session_keep_their_identity(tmp_path: Path) -> None:
    """Code that is made and dropped in a loop must not lend its identity to another file's code."""
    kept = Kept(tmp_path)
    for number in range(200):
        name = str(tmp_path / f"made_{number}.py")
        names: dict[str, Callable[..., FrameType]] = {}
        exec(compile(SOURCE, name, "exec"), names)
        assert kept.of(kept.sites.place(names["here"]()))[0].file == f"made_{number}.py"


def checkpoint_and_engine() -> tuple[dict[str, Callable[..., FrameType]], dict[str, Callable[..., FrameType]]]:
    """Functions that pass for torch's own by their place."""
    folder = Path(torch.__file__).parent
    checkpoint: dict[str, Callable[..., FrameType]] = {}
    engine: dict[str, Callable[..., FrameType]] = {}
    exec(compile("def again(f):\n    return f()\n", str(folder / "utils" / "checkpoint.py"), "exec"), checkpoint)
    text = "def _engine_run_backward(f):\n    return f()\n"
    exec(compile(text, str(folder / "autograd" / "graph.py"), "exec"), engine)
    return checkpoint, engine


def test_the_nearest_of_checkpoint_and_engine_says_whether_a_call_recomputes(tmp_path: Path) -> None:
    checkpoint, engine = checkpoint_and_engine()
    here = loaded(tmp_path / "train.py")["here"]
    again, run = checkpoint["again"], engine["_engine_run_backward"]
    sites = Kept(tmp_path).sites
    assert not sites.recomputes(here())
    assert sites.recomputes(again(here))
    assert not sites.recomputes(run(here))
    assert sites.recomputes(run(lambda: again(here)))  # a recompute, asked for by the engine
    assert not sites.recomputes(again(lambda: run(here)))  # the engine of a reentrant checkpoint
    # The workload's frames between do not hide what is above them, met before or not.
    assert sites.recomputes(run(lambda: again(lambda: loaded(tmp_path / "deep.py")["call"](here))))


def test_a_site_outside_of_a_checkpoint_is_told_apart(tmp_path: Path) -> None:
    checkpoint, _ = checkpoint_and_engine()
    workload = loaded(tmp_path / "train.py")
    sites = Kept(tmp_path).sites
    assert not sites.place(workload["here"]()).outside
    assert not sites.place(checkpoint["again"](workload["here"])).outside
    inside: dict[str, Callable[..., FrameType]] = {}
    exec(compile("def run(f):\n    return f()\n", str(Path(torch.__file__).parent / "nn" / "x.py"), "exec"), inside)
    of_torch = partial(inside["run"], sys._getframe)
    place = sites.place(workload["call"](partial(checkpoint["again"], of_torch)))
    assert (place.outside, place.site) == (True, place.workload_site)


def test_the_root_is_the_checkout_or_the_scripts_folder(tmp_path: Path) -> None:
    script = tmp_path / "repo" / "a" / "b" / "train.py"
    script.parent.mkdir(parents=True)
    assert workload_root(script) == script.parent
    (tmp_path / "repo" / ".git").mkdir()
    assert workload_root(script) == tmp_path / "repo"
    assert module.workload_root(tmp_path / "repo" / "x.py") == tmp_path / "repo"


def test_ca26_code_keeps_the_text_it_was_compiled_from_whatever_the_file_says_by_now(tmp_path: Path) -> None:
    path = tmp_path / "edited.py"
    kept = Kept(tmp_path)
    texts = [SOURCE, SOURCE.replace("import sys", "import sys  # edited")]
    frames: list[FrameType] = []
    for text in texts:
        path.write_text("this is no Python any more\n")
        code = compile(text, str(path), "exec")
        digest = kept.sites.compiled(str(path), text.encode(), code)
        assert digest == hashlib.sha256(text.encode()).hexdigest()
        names: dict[str, Callable[[], FrameType]] = {}
        exec(code, names)
        frames.append(names["here"]())
    found = [kept.of(kept.sites.place(frame))[0].digest for frame in frames]
    assert found == [hashlib.sha256(text.encode()).hexdigest() for text in texts]
    assert [data for _, _, data in kept.sites.take_texts()] == [text.encode() for text in texts]
    assert kept.sites.digest(str(path)) == found[1]


def test_ca26_without_sources_the_text_of_rewritten_code_is_a_gap(tmp_path: Path) -> None:
    kept = Kept(tmp_path, keep_sources=False)
    told = kept.sites.compiled(str(tmp_path / "a.py"), b"x = 1", compile("x = 1", "a.py", "exec"))
    assert told == Gap(CaptureGap.NOT_COLLECTED, "--no-sources")
    assert kept.sites.take_texts() == []
