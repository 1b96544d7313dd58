"""`paritrace schema`: print the JSON Schema of a format, generated from the code."""

import json
from importlib import import_module
from typing import NamedTuple

import click

from paritrace.cli.options import json_option
from paritrace.cli.output import write_json, write_text


class Format(NamedTuple):
    """A published format: the record types of one document or line, as `module:attribute`."""

    types: tuple[str, ...]
    summary: str


FORMATS = {
    "run": Format(("paritrace.runs.envelope:Envelope",), "run.json, the envelope of a run directory"),
    "request": Format(("paritrace.runs.request:RunRequest",), "the attachment `request`: how a run is run again"),
    "calls": Format(
        ("paritrace.evidence.calls:Mark", "paritrace.evidence.calls:Row"),
        "one line of calls.jsonl, a session's journal",
    ),
    "run-record": Format(
        ("paritrace.runs.record_lines:Start", "paritrace.runs.record_ends:End"), "one line of run-record.jsonl"
    ),
    "invocation": Format(
        ("paritrace.runs.record_lines:Invocation",), "invocation.json: what an invocation had begun, without its input"
    ),
    "plan": Format(("paritrace.capture.plans:Plan",), "plan.json of `paritrace-tools prepare`: what `trace` records"),
    "plan-configuration": Format(
        ("paritrace.automation.plan_configuration:Configuration",), "what a plan is made by, written as YAML"
    ),
    "receipt": Format(("paritrace.runs.envelope:ReceiptDocument",), "receipt.json of a session"),
    "pack": Format(("paritrace.runs.archive:Inventory",), ".pack.json, the inventory of an archive"),
    "comparison": Format(("paritrace.compare.result:Comparison",), "comparison.json and `compare --json`"),
    "comparison-manifest": Format(
        ("paritrace.reports.manifest:Manifest",), "manifest.json of a kept comparison: its sources and files by SHA-256"
    ),
    "last-comparison": Format(
        ("paritrace.reports.manifest:LastComparison",), "last.json: the comparison made last of a candidate"
    ),
    "check": Format(("paritrace.compare.checks_result:Checked",), "`check --json`"),
    "narrowed": Format(("paritrace.automation.narrow_records:Narrowed",), "narrowed.json and `narrow --json`"),
    "judged": Format(("paritrace.compare.judged_result:Judged",), "`judge --json`"),
    "isolated": Format(("paritrace.compare.judged_result:Isolated",), "`isolate --json`"),
    "capsule": Format(("paritrace.reports.capsule_text:CapsuleFacts",), "capsule.json and `capsule --json`"),
    "explanation": Format(("paritrace.reports.explanation:Explanation",), "`explain --json`"),
    "why-not": Format(("paritrace.reports.why_not:WhyNot",), "`why-not --json`"),
    "alignment-map": Format(
        ("paritrace.compare.alignment:AlignmentMap",), "MAP of `align`: a review of the pairs of a kept comparison"
    ),
    "name-map": Format(("paritrace.compare.proposals:NameMap",), "what `propose-map` writes and `compare --map` reads"),
    "policy": Format(("paritrace.compare.policy:Policy",), "a policy of `compare --policy`, written as TOML"),
    "attempts-manifest": Format(
        ("paritrace.attempts.manifest:Manifest",), "MANIFEST of `attempts`: what was planned, and its evidence"
    ),
    "attempts-summary": Format(("paritrace.attempts.result:Summary",), "`attempts summarize --json`"),
    "attempts-comparison": Format(("paritrace.attempts.result:AttemptsComparison",), "`attempts compare --json`"),
    "attempts-explanation": Format(("paritrace.attempts.explaining:Explained",), "`attempts explain --json`"),
    "attempts-directories": Format(
        ("paritrace.reports.attempts.directories:DirectoriesCompared",), "`compare DIR DIR --json` of attempts"
    ),
    "trajectories": Format(("paritrace.reports.trajectories.document:Trajectories",), "`attempts diverge --json`"),
    "attempts-gate": Format(("paritrace.attempts.gate:Gate",), "rules of `attempts --gate`, written as TOML"),
    "rate-card": Format(("paritrace.attempts.rate_card:RateCard",), "a card of `attempts --rate-card`, as TOML"),
    "inference": Format(
        ("paritrace.inference.records:AnyEvent", "paritrace.inference.context:ContextDefinition"),
        "one line of inference.jsonl, an inference artifact",
    ),
    "infer-append": Format(("paritrace.inference.result:AppendReport",), "`infer init`, `append`, `import` --json"),
    "infer-link": Format(("paritrace.inference.result:LinkReport",), "`infer link --json`"),
    "infer-explanation": Format(("paritrace.inference.result:LinkExplanation",), "`infer link --explain ID --json`"),
    "infer-account": Format(("paritrace.inference.result:AccountReport",), "`infer account --json`"),
    "infer-request": Format(("paritrace.inference.served_result:ServedReport",), "`infer show --request ID --json`"),
    "infer-show": Format(("paritrace.inference.result:ShowReport",), "`infer show --json`"),
    "infer-comparison": Format(
        ("paritrace.inference.comparison.result:InferenceComparison",), "`infer compare --json`"
    ),
    "inference-conditions": Format(
        ("paritrace.inference.comparison.conditions:Conditions",),
        "inference-conditions.json of a run: under what it was made, for `infer compare`",
    ),
    "infer-requests": Format(("paritrace.inference.requests_report:RequestsReport",), "`infer requests --json`"),
    "infer-recover": Format(("paritrace.inference.result:RecoverReport",), "`infer recover --json`"),
    "infer-trace": Format(("paritrace.reports.inference.trace_file:TraceFile",), "`infer show -o FILE --json`"),
    "trace-comparison": Format(("paritrace.reports.kernel_screen:TracesCompared",), "`compare TRACE TRACE --json`"),
    "catalog": Format(("paritrace.runs.catalog:Catalog",), "`runs ls --json`"),
    "run-summary": Format(("paritrace.runs.showing:RunSummary",), "`runs show --json`"),
    "session": Format(("paritrace.session.directory:SessionRecord",), "session.json of a resident session's directory"),
    "session-checkpoint": Format(
        ("paritrace.session.checkpoint_records:Manifest",), "manifest.json of a session's checkpoint"
    ),
    "session-comparison": Format(
        ("paritrace.session.segment_comparison:SegmentComparison",), "`compare DIR DIR --json` of two sessions"
    ),
    "session-config": Format(
        ("paritrace.session.configuration:KeptConfig",), "configs/REVISION.json of a session: each value and its source"
    ),
    "session-failure": Format(
        ("paritrace.session.failure:FailureReport",), "failures/G.json of a session: how generation G failed"
    ),
    "session-inputs": Format(
        ("paritrace.session.kept_records:InputsManifest",), "inputs/DIGEST.json of a session: everything that was read"
    ),
    "session-journal": Format(("paritrace.session.journal:Line",), "one line of a session's journal.jsonl"),
    "session-metrics": Format(("paritrace.session.metrics:KeptMetrics",), "`session metrics --json`"),
    "session-preview": Format(("paritrace.session.kept_records:PreviewRecord",), "preview.json of a session's preview"),
    "session-rendezvous": Format(
        ("paritrace.session.engines.rendezvous:Rendezvous",), "rendezvous.json: where ranks join a session"
    ),
    "session-samples": Format(
        ("paritrace.session.metrics:Head", "paritrace.session.metrics:Sample"), "one line of a session's metrics.jsonl"
    ),
    "session-status": Format(("paritrace.session.status:Status",), "`session status --json`"),
    "store-bundle": Format(("paritrace.store.records:Manifest",), "manifest.json, the first member of a bundle"),
    "store-receipt": Format(("paritrace.store.records:Receipt",), "receipt-*.json of a rank in a store"),
    "store-owner": Format(("paritrace.store.records:Owner",), "owner.json of a node in a store"),
    "store-run": Format(("paritrace.store.records:RunMark",), "run.json of a store"),
    "store-node": Format(("paritrace.store.records:NodeFacts",), "node-*.json of a store: what a node is"),
    "store-checkpoint": Format(
        ("paritrace.store.checkpoint:Checkpoint",), "checkpoint.json of a rank in a staging directory"
    ),
    "store-outcome": Format(("paritrace.store.outcomes:Outcome",), "outcome.json of a rank in a staging directory"),
    "store-restored": Format(
        ("paritrace.store.restoring:Restored",), "restore.json of a restored run, and `store restore --json`"
    ),
    "store-sync": Format(("paritrace.store.syncing:SyncReport",), "`store sync --json`"),
    "store-status": Format(("paritrace.store.status:StoreStatus",), "`store status --json`"),
    "store-verification": Format(("paritrace.store.verifying:StoreVerification",), "`store verify --json`"),
    "verification": Format(("paritrace.runs.verify:Verification",), "`runs verify --json`"),
}


@click.command()
@click.argument("name", required=False, type=click.Choice(list(FORMATS)), metavar="[NAME]")
@json_option
def schema(name: str | None, as_json: bool) -> None:
    """Print the JSON Schema of the format NAME; without NAME, list the formats.

    A schema is JSON already: `--json` changes nothing for it.
    """
    if name is not None:
        write_text(schema_text(name).rstrip("\n"))
    elif as_json:
        write_json({key: form.summary for key, form in FORMATS.items()})
    else:
        width = max(map(len, FORMATS))
        write_text("\n".join(f"{key:{width}}  {form.summary}" for key, form in FORMATS.items()))


def schema_text(name: str) -> str:
    """Return the schema of a format as it is published in `schemas/`: sorted, indented, with a last newline."""
    from paritrace.evidence.schemas import schema_of

    form = FORMATS[name]
    kinds = [vars(import_module(module))[attribute] for module, attribute in (item.split(":") for item in form.types)]
    document = schema_of(f"paritrace-{name}", kinds, summary=form.summary)
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
