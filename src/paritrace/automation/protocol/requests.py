"""Reads requests strictly: everything that is wrong with one is found at once (AU-1)."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn, cast

import msgspec
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from msgspec import Struct

from paritrace.automation.protocol.digests import digest_of
from paritrace.automation.protocol.records import PROTOCOL_VERSION, Action, Request, Result
from paritrace.automation.protocol.schemas import request_schema
from paritrace.errors import RequestError

MAX_NAME = 200  # characters of a caller's own text in a message (AU-13)


class Problem(Struct, frozen=True):
    """One thing that is wrong. `at`: a JSON Pointer into the request, `""` for the whole. Never a value (AU-22)."""

    at: str
    message: str


class BadRequestError(RequestError):
    """A request that is refused for its form, with every problem."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(dict.fromkeys(problems))
        several = f"{len(self.problems)} things are wrong" if len(self.problems) > 1 else "something is wrong"
        super().__init__(
            f"{several} with the request",
            code="bad_request",
            fix="mend every problem named; `paritrace-tools capabilities` names the schema of each request",
            details=tuple(f"{problem.at or 'the request'}: {problem.message}" for problem in self.problems),
        )


def read_request(data: bytes, action: Action) -> Request:
    """Return the request of an action that a document holds.

    Raises:
        BadRequestError: Refused, `bad_request`: no JSON, not of the schema, or a result in it is not as it left.
    """
    if action.request is None:
        raise BadRequestError([Problem("", f"{action.name} takes no request")])
    document = _parsed(data)
    validator: Any = Draft202012Validator(request_schema(action) or False)
    problems = list(_problems(validator.iter_errors(document)))
    problems += _altered(document, at="")
    if problems:
        raise BadRequestError(sorted(problems, key=lambda problem: problem.at))
    return msgspec.convert(document, action.request)


def _parsed(data: bytes) -> object:
    try:
        found = json.loads(data.decode("utf-8"), object_pairs_hook=_without_repeats, parse_constant=_no_number)
        json.dumps(found, ensure_ascii=False).encode()  # half a surrogate pair is text that nothing can be named by
        return found
    except BadRequestError:
        raise
    except (ValueError, RecursionError) as error:
        raise BadRequestError([Problem("", f"it is not JSON in UTF-8: {_cause(error)}")]) from error


def _cause(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg}, line {error.lineno}, column {error.colno}"
    return "it is nested too deeply" if isinstance(error, RecursionError) else "a character or a number cannot be read"


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        repeated = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise BadRequestError([Problem("", f"the name {_short(repeated)} stands twice in one object")])
    return found


def _no_number(text: str) -> NoReturn:
    raise BadRequestError([Problem("", f"{text} is no number in JSON")])


def _problems(errors: Iterable[ValidationError]) -> Iterator[Problem]:
    for error in errors:
        at = _pointer(error.absolute_path)
        instance = cast("object", error.instance)
        wanted: Any = error.validator_value
        match str(error.validator):
            case "required" if isinstance(instance, dict):
                yield from (Problem(f"{at}/{name}", "is missing") for name in wanted if name not in instance)
            case "additionalProperties" if isinstance(instance, dict):
                schema = cast("dict[str, dict[str, object]]", error.schema)
                known = schema.get("properties", {})
                names = cast("dict[str, object]", instance)
                yield from (
                    Problem(f"{at}/{_escaped(name)}", f"is no field; known are {', '.join(sorted(known))}")
                    for name in names
                    if name not in known
                )
            case "anyOf":
                yield from _of_choices(error, at)
            case keyword:
                yield Problem(at, _words(keyword, wanted, at))


def _of_choices(error: ValidationError, at: str) -> Iterator[Problem]:
    """Tell of the one choice that the value was meant to be; where none or several could be, of all."""
    choices: dict[int, list[ValidationError]] = {}
    for found in error.context or ():
        choices.setdefault(int(found.relative_schema_path[0]), []).append(found)
    meant = [found for found in choices.values() if not any(_excludes(each, error) for each in found)]
    if len(meant) == 1:
        yield from _problems(meant[0])
    else:
        choices_named = cast("list[dict[str, str]]", error.validator_value)
        kinds = [choice.get("type") or f"a {choice['$ref'].rpartition('/')[2]}" for choice in choices_named]
        yield Problem(at, f"must be one of: {', '.join(kinds)}")


def _excludes(found: ValidationError, of: ValidationError) -> bool:
    """Whether a problem shows that another choice was meant: the wrong JSON type, or another action's result."""
    beneath = list(found.absolute_path)[len(of.absolute_path) :]
    tag = beneath == ["action"] or (str(found.validator) == "required" and "'action'" in str(found.message))
    return (not beneath and str(found.validator) == "type") or tag


def _words(keyword: str, wanted: object, at: str) -> str:
    match keyword:
        case "type":
            return f"must be of type {wanted}"
        case "enum" if at == "/protocol_version":
            return f"must be {PROTOCOL_VERSION}: this program speaks version {PROTOCOL_VERSION} only"
        case "enum" if isinstance(wanted, list):
            return f"must be one of {', '.join(json.dumps(value) for value in cast('list[object]', wanted))}"
        case "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum":
            return f"must be {_BOUNDS[keyword]} {wanted}"
        case "minLength" | "maxLength":
            return f"must have at {'least' if keyword == 'minLength' else 'most'} {wanted} characters"
        case "minItems" | "maxItems":
            return f"must have at {'least' if keyword == 'minItems' else 'most'} {wanted} entries"
        case "uniqueItems":
            return "must not hold anything twice"
        case "pattern":
            return f"must match {wanted}"
        case _:
            return f"breaks the rule {keyword} of its schema"


_BOUNDS = {"minimum": ">=", "maximum": "<=", "exclusiveMinimum": ">", "exclusiveMaximum": "<"}


def _altered(value: object, *, at: str) -> Iterator[Problem]:
    """Results in a request that are not what they were when they left."""
    if isinstance(value, list):
        for index, item in enumerate(cast("list[object]", value)):
            yield from _altered(item, at=f"{at}/{index}")
    if not isinstance(value, dict):
        return
    found = cast("dict[str, object]", value)
    if at and found.keys() >= _RESULT_FIELDS:
        if digest_of(found) != found["digest"]:
            yield Problem(at, "is not intact: its digest is not that of what it holds")
        return
    for name, item in found.items():
        yield from _altered(item, at=f"{at}/{_escaped(name)}")


_RESULT_FIELDS = {*Result.__struct_fields__, "action"}


def _pointer(path: Iterable[object]) -> str:
    return "".join(f"/{_escaped(str(part))}" for part in path)


def _escaped(name: str) -> str:
    """A name as a part of a JSON Pointer (RFC 6901)."""
    return _short(name).replace("~", "~0").replace("/", "~1")


def _short(name: str) -> str:
    return name if len(name) <= MAX_NAME else name[:MAX_NAME] + "…"
