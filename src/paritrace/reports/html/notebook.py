"""What a notebook shows of a comparison or a run: a part of its page, with a style of its own and no script (SU-14)."""

from paritrace.compare.result import Comparison
from paritrace.reports.html.comparison_page import comparison_page
from paritrace.reports.html.links import InFile
from paritrace.reports.html.run_page import run_page
from paritrace.reports.html.templates import asset, render
from paritrace.runs.showing import RunSummary


def comparison_cell(comparison: Comparison, /) -> str:
    """Returns the finding, its strength, the ladder, where both sides part and what was not seen."""
    page = comparison_page(comparison)
    return render("notebook_comparison.html", page=page, links=InFile(anchors=()), style=asset("notebook.css"))


def run_cell(summary: RunSummary, /) -> str:
    """Returns the sessions by steps, and what is missing."""
    return render("notebook_run.html", page=run_page(summary), links=InFile(anchors=()), style=asset("notebook.css"))
