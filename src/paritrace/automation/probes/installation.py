"""Which Python, torch and optional packages this installation has; nothing heavy is imported to find out."""

import platform
import re
from collections.abc import Iterator
from importlib import metadata

from paritrace.automation.probes.probe import Probe, available, unavailable

DISTRIBUTION = "paritrace"
DEVELOPMENT = "dev"

_REQUIREMENT = re.compile(r"""^(?P<name>[A-Za-z0-9._-]+).*;\s*extra\s*==\s*['"](?P<extra>[^'"]+)['"]""")


def probe_installation() -> Iterator[Probe]:
    """Python, paritrace, then every extra with the packages it stands for."""
    yield available("python", platform.python_version())
    try:
        installed = metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        yield unavailable(
            "paritrace", "imported from a folder, not installed, so its extras are not known", fix="pip install -e ."
        )
        return
    yield available("paritrace", installed.version)
    for extra, names in sorted(packages_by_extra(installed.requires or []).items()):
        if extra != DEVELOPMENT:
            yield probe_extra(extra, names)


def packages_by_extra(requirements: list[str]) -> dict[str, list[str]]:
    """The packages of each extra, from the lines of `Requires-Dist`."""
    found: dict[str, list[str]] = {}
    for line in requirements:
        matched = _REQUIREMENT.match(line)
        if matched:
            found.setdefault(matched["extra"], []).append(matched["name"])
    return found


def probe_extra(extra: str, names: list[str]) -> Probe:
    """Available when every package of the extra is installed; otherwise the exact command that installs them."""
    versions = {name: installed_version(name) for name in names}
    missing = [name for name, version in versions.items() if version is None]
    if missing:
        return unavailable(
            f"extra {extra}", f"not installed: {', '.join(missing)}", fix=f'pip install "{DISTRIBUTION}[{extra}]"'
        )
    return available(f"extra {extra}", ", ".join(f"{name} {version}" for name, version in versions.items()))


def installed_version(name: str) -> str | None:
    """The version of an installed distribution, read from its metadata."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
