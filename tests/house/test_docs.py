"""The documentation is true: internal links lead somewhere, marked code blocks run and print what they say (SU-17)."""

from pathlib import Path

import pytest

from benchmarks import warm
from tests.house.documents import ROOT, anchors_of, blocks_of, links_of, markdown_files
from tests.house.running import run_document

DOCUMENTS = [str(path.relative_to(ROOT)) for path in markdown_files()]
RUNNABLE = [name for name in DOCUMENTS if any({"run", "output"} & set(block.words) for block in blocks_of(ROOT / name))]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_internal_links_lead_somewhere(name: str) -> None:
    path = ROOT / name
    broken = []
    for link in links_of(path):
        target, _, anchor = link.partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        file = (path.parent / target).resolve() if target else path
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors_of(file)):
            broken.append(link)
    assert broken == []


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNNABLE)
def test_code_blocks_run_and_print_what_they_say(name: str, tmp_path: Path) -> None:
    assert run_document(blocks_of(ROOT / name), tmp_path, python=warm.python()) > 0


def test_a_document_that_lies_is_found(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("```sh run\necho one\n```\n\n```text output\ntwo\n```\n")
    with pytest.raises(AssertionError, match="line 5: the document says"):
        run_document(blocks_of(path), tmp_path)


def test_a_block_that_fails_is_found(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("```sh run\nfalse\n```\n")
    with pytest.raises(AssertionError, match="line 1: status 1"):
        run_document(blocks_of(path), tmp_path)


def test_files_and_left_out_parts_of_the_output(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(
        "```python file=a/x.py\nprint(1, 2, 3)\n```\n\n```sh run\npython a/x.py\n```\n\n```text output\n1 ... 3\n```\n"
    )
    assert run_document(blocks_of(path), tmp_path) == 1
