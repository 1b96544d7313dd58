"""From what was discovered and what was chosen to a plan: a rule that reads no file (AU-5, CA-11, CA-25)."""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from types import CodeType

from paritrace.automation.observed_sites import ObservedFile
from paritrace.automation.plan_configuration import Configuration, normalised
from paritrace.capture import plans
from paritrace.capture.plans import (
    ContextVariable,
    ExcludedFile,
    Plan,
    PlannedFile,
    Position,
    Steps,
    parse_context_variable,
)
from paritrace.errors import RequestError
from paritrace.evidence.digests import sha256_hex

NO_TENSORS = "no call of it carried a tensor"
NO_TEXT = "its text could not be read"


def planned(
    files: Sequence[ObservedFile], elsewhere: Mapping[str, str], configuration: Configuration, *, main: str
) -> Plan:
    """Return the plan of what was observed.

    Raises:
        RequestError: Refused: `empty_plan`, with the reason of every file; `bad_context_variable`.
    """
    reasons = {one.file: _reason(one, configuration) for one in files}
    chosen = tuple(
        PlannedFile(one.file, one.sha256, tuple(Position(site.line, site.column) for site in one.sites))
        for one in files
        if not reasons[one.file]
    )
    left_out = {file: reason for file, reason in reasons.items() if reason} | dict(elsewhere)
    excluded = tuple(ExcludedFile(file, reason) for file, reason in sorted(left_out.items()))
    if not chosen:
        raise RequestError(
            "the plan would be empty: no file of the checkout is left that has calls with tensors",
            code="empty_plan",
            fix="discover a run in which the checkout's own code calls something with tensors, or choose other files",
            details=tuple(f"{one.file}: {one.reason}" for one in excluded),
        )
    variables = tuple(parse_context_variable(one) for one in configuration.context_vars)
    _require_selected(variables, {one.file for one in chosen})
    return Plan(
        format=plans.FORMAT,
        version=plans.VERSION,
        main=main,
        configuration_sha256=sha256_hex(normalised(configuration)),
        files=chosen,
        excluded=excluded,
        context_vars=variables,
        steps=Steps(*configuration.steps),
        regions=configuration.regions,
    )


def _reason(file: ObservedFile, configuration: Configuration) -> str:
    """Why a file is left out, empty where it is not."""
    pattern = next((one for one in configuration.exclude if fnmatchcase(file.file, one)), None)
    if pattern is not None:
        return f"left out by the configuration: exclude {pattern}"
    if not any(fnmatchcase(file.file, one) for one in configuration.files):
        return "left out by the configuration: none of its files"
    if file.reason:
        return file.reason
    if not file.sha256:
        return NO_TEXT
    return "" if file.sites else NO_TENSORS


def _require_selected(variables: Sequence[ContextVariable], files: set[str]) -> None:
    outside = [one for one in variables if one.file not in files]
    if outside:
        raise _no_variable(outside[0], "its file is not in the plan", f"name one of {', '.join(sorted(files))}")


def require_variables(plan: Plan, sources: Mapping[str, bytes]) -> None:
    """Refuse a variable that its function does not have.

    Raises:
        RequestError: Refused, `bad_context_variable`.
    """
    for one in plan.context_vars:
        code = compile(sources[one.file], one.file, "exec", dont_inherit=True)
        functions = {inner.co_qualname: inner for inner in _all_of(code)}
        found = functions.get(one.function)
        if found is None:
            raise _no_variable(
                one, f"{one.file} has no function {one.function}", "give its qualified name: Net.forward"
            )
        own = (*found.co_varnames, *found.co_cellvars, *found.co_freevars)
        if found is not code and one.name not in own:
            raise _no_variable(one, f"{one.function} has no variable {one.name}", f"name one of {', '.join(own)}")


def _all_of(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _all_of(constant)


def _no_variable(of: ContextVariable, why: str, fix: str) -> RequestError:
    return RequestError(
        f"{of.file}:{of.function}:{of.name} cannot be recorded: {why}", code="bad_context_variable", fix=fix
    )
