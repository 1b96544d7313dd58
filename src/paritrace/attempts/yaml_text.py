"""Reads a manifest that a person wrote as YAML: plain values, no anchors, no key twice (ADR 0035)."""

from typing import Any

from paritrace.errors import HostError, RequestError


def plain_of(data: bytes, *, name: str) -> object:
    """Returns the plain value of a YAML document.

    Anchors are refused, because a few lines of them can stand for more than memory holds, and so is a key that is there
    twice, of which YAML itself keeps the last.

    Raises:
        RequestError: Refused, `bad_attempts_manifest`.
        HostError: Refused, `missing_extra`: PyYAML is not installed.
    """
    try:
        import yaml
    except ImportError as error:
        raise HostError(
            "a YAML manifest needs PyYAML, which is not installed",
            code="missing_extra",
            fix="pip install 'paritrace[attempts]', or write the manifest as JSON",
        ) from error

    class Strict(yaml.SafeLoader):  # type: ignore[misc,name-defined,unused-ignore]
        """The safe loader without aliases and repeated keys."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError(f"line {self.peek_event().start_mark.line + 1}: aliases are not read")
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [key.value for key, _ in node.value]
            twice = next((key for key in keys if keys.count(key) > 1), None)
            if twice is not None:
                raise yaml.YAMLError(f"line {node.start_mark.line + 1}: {twice} is there twice")
            return super().construct_mapping(node, deep)

    Strict.yaml_implicit_resolvers = {  # a date is the text that stands there
        first: [(tag, like) for tag, like in found if tag != "tag:yaml.org,2002:timestamp"]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    try:
        return yaml.load(data, Loader=Strict)  # noqa: S506  a subclass of the safe loader
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise RequestError(
            f"{name} is no YAML document: {' '.join(str(error).split())}",
            code="bad_attempts_manifest",
            fix="mend it; `paritrace schema attempts-manifest` prints the format",
        ) from error
