"""What stood around a run: the facts that are compared before any tensor (CA-30). Lives in the session's row."""

from msgspec import Struct

from paritrace.evidence.gaps import CaptureGap, Gap


class Surroundings(Struct, frozen=True, forbid_unknown_fields=True):
    """Names and versions only; never the value of an environment variable (P7)."""

    argv: tuple[str, ...] | Gap[CaptureGap]  # sensitive values masked
    python: str
    platform: str
    packages: dict[str, str]  # distribution -> version
    environment_names: tuple[str, ...]
    devices: tuple[str, ...]
    num_threads: int | Gap[CaptureGap]
    determinism: dict[str, str]  # the switches of the determinism policy and of torch, as text
    policy: dict[str, tuple[str, str]]  # --deterministic: switch -> (before, after); empty when not asked for
    git_commit: str | Gap[CaptureGap]
    git_diff: str | Gap[CaptureGap]  # attachment id of the diff, "" for a clean checkout
    main_digest: str | Gap[CaptureGap]  # digest of the main script or module
