"""From what was discovered to a plan: what is chosen, what is left out and why, the one text of a configuration."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.automation.observed_sites import Observing
from paritrace.automation.plan_configuration import DEFAULT, Configuration, normalised, read_configuration
from paritrace.automation.planning import planned, require_variables
from paritrace.capture.plans import PlannedSources, Position, changed_files
from paritrace.errors import RequestError
from paritrace.evidence import calls
from paritrace.evidence.callsites import RewrittenFile
from paritrace.evidence.digests import sha256_hex

TEXTS = {
    "train.py": b"def main(step):\n    f(step)\n",
    "net.py": b"class Net:\n    def forward(self, x):\n        g(x)\n",
}
ELSEWHERE = {"numpy/": "an installed package, outside the checkout: 2 files loaded"}


def site(number: int, file: str, line: int, column: int = 4) -> calls.Site:
    kind = calls.SourceKind.MAIN if file == "<main>" else calls.SourceKind.WORKLOAD
    return calls.Site(number, kind, file, line, column, "f", "0" * 64)


def kind(number: int, *shape: int) -> calls.Kind:
    return calls.Kind(number, "float32", shape, (1,) * len(shape), "strided", "cpu", False, 1, 4)


def call(number: int, at: int, *slots: calls.Slot) -> calls.Call:
    return calls.Call(number, number + 1, -1, 0, at, at, 0, 0, 0, 0, -1, -1, 0, 0, 0, slots, ())


def observed(*ranks: int) -> Observing:
    """Two ranks that call the same, the second with another shape; `util.py` is loaded and calls nothing."""
    observing = Observing("train.py")
    for rank in ranks:
        observing.take(
            rank,
            [
                RewrittenFile("<main>", sha256_hex(TEXTS["train.py"]), 1),
                RewrittenFile("net.py", sha256_hex(TEXTS["net.py"]), 1),
                RewrittenFile("util.py", "1" * 64, 3),
                RewrittenFile("early.py", "2" * 64, 0, reason="loaded before the capture began"),
                calls.Function(0, "torch.relu", calls.Level.CALLSITE),
                calls.Name(0, "args[0]"),
                kind(0, 2, rank + 1),
                site(0, "<main>", 2),
                site(1, "net.py", 3, 8),
                call(0, 0, calls.Slot(0, 0, "0" * 16)),
                call(2, 1, calls.Slot(0, 0, "0" * 16)),
                call(4, 1, calls.Slot(0, 0, "0" * 16)),
            ],
        )
    return observing


def test_ca11_sites_are_told_over_ranks_with_counts_dtypes_and_shapes() -> None:
    files = {one.file: one for one in observed(0, 1).files}
    (net,) = files["net.py"].sites
    assert (net.line, net.column, net.functions, net.calls) == (3, 8, ("torch.relu",), 4)
    assert [(slot.name, slot.dtypes, slot.shapes) for slot in net.slots] == [
        ("args[0]", ("float32",), ((2, 1), (2, 2)))
    ]
    assert (files["train.py"].sites[0].calls, files["util.py"].sites) == (2, ())


def test_au10_a_file_of_which_ranks_loaded_unlike_texts_is_named() -> None:
    observing = observed(0)
    observing.take(1, [RewrittenFile("net.py", "f" * 64, 1)])
    assert list(observing.unlike) == ["net.py"]


def test_au5_a_plan_names_every_file_that_it_leaves_out_with_the_reason() -> None:
    plan = planned(observed(0).files, ELSEWHERE, DEFAULT, main="train.py")
    assert [(one.file, one.sites) for one in plan.files] == [
        ("net.py", (Position(3, 8),)),
        ("train.py", (Position(2, 4),)),
    ]
    assert {one.file: one.reason for one in plan.excluded} == {
        "early.py": "loaded before the capture began",
        "util.py": "no call of it carried a tensor",
        **ELSEWHERE,
    }
    assert plan.coverage == "observed_callsites_only"
    assert plan.configuration_sha256 == sha256_hex(normalised(DEFAULT))


def test_ca25_a_configuration_chooses_files_and_variables() -> None:
    chosen = Configuration(version=1, exclude=("net.*",), context_vars=("train.py:main:step",))
    plan = planned(observed(0).files, ELSEWHERE, chosen, main="train.py")
    assert [one.file for one in plan.files] == ["train.py"]
    assert {one.file: one.reason for one in plan.excluded}["net.py"] == "left out by the configuration: exclude net.*"
    require_variables(plan, TEXTS)


def test_au5_an_empty_plan_is_refused_with_every_reason() -> None:
    with pytest.raises(RequestError) as caught:
        planned(observed(0).files, ELSEWHERE, Configuration(version=1, files=("other/*",)), main="train.py")
    assert caught.value.code == "empty_plan"
    assert "net.py: left out by the configuration: none of its files" in caught.value.details


@pytest.mark.parametrize(
    "variable", ["util.py:f:x", "net.py:forward:x", "net.py:Net.forward:y", "x", "net.py::x", "net.py:Net.forward:1"]
)
def test_ca25_a_variable_that_is_not_there_is_refused(variable: str) -> None:
    def asked() -> None:
        chosen = Configuration(version=1, context_vars=(variable,))
        require_variables(planned(observed(0).files, {}, chosen, main="train.py"), TEXTS)

    with pytest.raises(RequestError) as caught:
        asked()
    assert caught.value.code == "bad_context_variable"


def test_au19_a_file_is_the_planned_one_by_its_digest_alone() -> None:
    plan = planned(observed(0).files, ELSEWHERE, DEFAULT, main="train.py")
    sources = PlannedSources(plan)
    assert sources.sites("net.py", TEXTS["net.py"]) == frozenset({(3, 8)})
    assert "the plan has" in str(sources.sites("net.py", TEXTS["net.py"] + b"\n"))
    assert (sources.has("net.py"), sources.has("util.py")) == (True, False)
    assert changed_files(plan, dict(TEXTS)) == {}
    assert list(changed_files(plan, {"train.py": TEXTS["train.py"], "net.py": None})) == ["net.py"]


@given(
    st.builds(
        Configuration,
        version=st.just(1),
        files=st.lists(st.text(min_size=1), min_size=1).map(tuple),
        exclude=st.lists(st.text(min_size=1)).map(tuple),
        steps=st.integers(0, 10**6).flatmap(lambda first: st.tuples(st.just(first), st.integers(first + 1, 10**7))),
        regions=st.integers(1, 64),
        context_vars=st.just(("a b:c.py:f:x",)),
    )
)
def test_ca11_the_normalised_text_of_a_configuration_is_read_as_that_configuration(chosen: Configuration) -> None:
    pytest.importorskip("yaml")
    assert read_configuration(normalised(chosen), name="it") == chosen


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("version: 1\nstatistics: true\nupload: {}\n", "unsupported_section"),
        ("version: 2\n", "bad_configuration"),
        ("- 1\n", "bad_configuration"),
        ("version: 1\nregions: 65\n", "bad_configuration"),
        ("version: 1\nsteps: [3, 3]\n", "bad_steps"),
        ("version: 1\nversion: 1\n", "bad_configuration"),
        ("a: &x [*x]\n", "bad_configuration"),
        ("version: 1\ncontext_vars: [x]\n", "bad_context_variable"),
    ],
)
def test_ca25_what_is_not_supported_is_refused_by_name(text: str, code: str) -> None:
    pytest.importorskip("yaml")
    with pytest.raises(RequestError) as caught:
        read_configuration(text.encode(), name="own.yaml")
    assert caught.value.code == code
    if code == "unsupported_section":
        assert "'statistics', 'upload'" in caught.value.message
