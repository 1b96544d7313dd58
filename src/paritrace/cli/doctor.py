"""`paritrace doctor`: what this installation, this machine and one directory can do (SU-6)."""

from itertools import chain
from pathlib import Path

import click

from paritrace.automation.probes.directory import probe_directory
from paritrace.automation.probes.installation import probe_installation
from paritrace.automation.probes.machine import probe_machine
from paritrace.automation.probes.probe import Availability, Probe
from paritrace.automation.probes.store import probe_staging, probe_target
from paritrace.cli.options import json_option
from paritrace.cli.output import write_json, write_text

FORMAT = "paritrace-doctor"
VERSION = "1.0"


@click.command()
@click.argument("directory", type=click.Path(path_type=Path), default=".")
@click.option(
    "--staging",
    type=click.Path(path_type=Path),
    envvar=["PARITRACE_STAGING_DIR", "PARITRACE_DOCTOR_STAGING"],
    metavar="DIR",
    help="A node's staging directory too.",
)
@click.option(
    "--store",
    envvar=["PARITRACE_STORE", "PARITRACE_DOCTOR_STORE"],
    metavar="TARGET",
    help="A store's target too; a trial object is put and removed.",
)
@json_option
def doctor(directory: Path, staging: Path | None, store: str | None, as_json: bool) -> None:
    """Say what this installation, this machine and DIRECTORY (where runs would be written) can do."""
    probes = list(chain(probe_installation(), probe_machine(), probe_directory(directory)))
    if staging is not None:
        probes += probe_staging(staging)
    if store is not None:
        probes += probe_target(store)
    if as_json:
        write_json({"format": FORMAT, "version": VERSION, "probes": probes})
        return
    for probe in probes:
        write_text(_line(probe))


def _line(probe: Probe) -> str:
    if probe.status is Availability.AVAILABLE:
        return f"{probe.id:16} {probe.value}"
    mend = f"; {probe.fix}" if probe.fix else ""
    return f"{probe.id:16} {probe.status.value}: {probe.reason}{mend}"
