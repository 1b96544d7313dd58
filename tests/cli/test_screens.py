"""Screens on a terminal and off it: the same words, colours only where they are wanted (SU-5)."""

import re
from io import StringIO

import pytest

from paritrace.cli.screens import takes_colours, write_screen
from paritrace.reports.first_screen import first_screen
from paritrace.reports.layout import MARGIN
from paritrace.reports.painting import NARROWEST, folded, print_painted
from tests.reports import comparisons

ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_su5_no_colours_where_they_are_not_wanted(environment: dict[str, str]) -> None:
    assert not takes_colours(Terminal(), environment)


def test_su5_no_colours_off_a_terminal_and_colours_on_one() -> None:
    assert not takes_colours(StringIO(), {})
    assert takes_colours(Terminal(), {"TERM": "xterm", "NO_COLOR": ""})


def test_su5_off_a_terminal_the_screen_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    screen = first_screen(comparisons.parted())
    write_screen(screen)
    assert capsys.readouterr().out == screen


@pytest.mark.parametrize("width", [1, 40, 80, 100, 200])
def test_su5_a_narrower_terminal_gets_every_word_in_its_columns(width: int) -> None:
    screen = first_screen(comparisons.parted())
    narrow = folded(screen, width=width)
    assert "".join(narrow.split()) == "".join(screen.split())
    assert max(map(len, narrow.splitlines())) <= max(width, MARGIN + NARROWEST)
    assert (narrow == screen) == (width >= 100)


def test_a_painted_screen_has_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = Terminal()
    screen = first_screen(comparisons.parted())
    print_painted(screen, stream=stream)
    assert "\x1b[" in stream.getvalue()
    assert ESCAPES.sub("", stream.getvalue()) == screen


def test_a_painted_screen_takes_names_as_text_and_never_as_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = Terminal()
    print_painted("[F1]  [bold]model[/bold] :smile: http://x\n", stream=stream)
    assert ESCAPES.sub("", stream.getvalue()) == "[F1]  [bold]model[/bold] :smile: http://x\n"
