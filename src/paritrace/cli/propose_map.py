"""`paritrace propose-map`: maps of names that equal sums of parameters suggest, for review (CP-5)."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from paritrace.cli.options import json_option
from paritrace.cli.output import note, write_json_bytes, write_text
from paritrace.errors import RequestError

if TYPE_CHECKING:
    from paritrace.compare.proposals import NameMap


@click.command("propose-map")
@click.argument("base", type=click.Path(path_type=Path))
@click.argument("cand", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write the map to this new file.")
@click.option("--strip-prefix", multiple=True, metavar="P", help="Read module names without P; repeatable.")
@json_option
def propose_map(base: Path, cand: Path, output: Path | None, strip_prefix: tuple[str, ...], as_json: bool) -> None:
    """Propose which modules of run BASE are which of run CAND, by the sums of their parameters at the first step.

    Nothing is applied: review every map in FILE (accepted or rejected), name yourself as reviewer, and give it to
    `paritrace compare BASE CAND --map FILE`. Parameters that several could be are listed and not proposed; fused,
    sharded and reordered ones are listed with what relates them.
    """
    from paritrace.compare.proposing_maps import propose
    from paritrace.compare.settings import Settings
    from paritrace.files import LOCAL
    from paritrace.reports.documents import encoded
    from paritrace.runs.reading import open_run

    if output is not None and LOCAL.exists(output):
        raise RequestError(f"{output} is there already", code="already_there", fix="name a new file with -o")
    with open_run(base) as baseline, open_run(cand) as candidate:
        found = propose(baseline, candidate, settings=Settings(strip_prefix=strip_prefix))
    document = encoded(found)
    if output is not None:
        LOCAL.create(output, [document])
        note(f"written: {output}; nothing is applied before every map in it is accepted or rejected")
    if as_json or output is None:
        write_json_bytes(document)
    else:
        write_text("\n".join(_lines(found)))


def _lines(found: "NameMap") -> list[str]:
    from paritrace.reports.harmless import harmless

    lines = [f"--map {one.rule}" for one in found.maps]
    lines += [
        f"{one.relation.value}: {' + '.join(one.baseline)} = {' + '.join(one.candidate)}" for one in found.related
    ]
    lines += [f"ambiguous: {one.why}, such as {one.baseline[0]} and {one.candidate[0]}" for one in found.ambiguous]
    for side, names in (("baseline", found.only_baseline), ("candidate", found.only_candidate)):
        lines += [f"nothing matches {len(names):,} parameters of the {side}, such as {names[0]}"] if names else []
    return [harmless(line) for line in lines] or ["nothing is proposed: all names with equal sums agree already"]
