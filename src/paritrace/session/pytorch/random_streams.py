"""The random streams of this rank as plain values: read, checked, put back (F-15)."""

import random
import sys
from typing import Any

import torch


def streams() -> dict[str, Any]:
    """Return the state of Python's, NumPy's (where it is loaded) and torch's generators, this rank's own."""
    found: dict[str, Any] = {"python": random.getstate(), "torch": torch.get_rng_state()}
    if "numpy.random" in sys.modules:
        _, keys, position, has_gauss, cached = sys.modules["numpy.random"].get_state()
        found["numpy"] = {
            "keys": torch.from_numpy(keys.astype("int64")),
            "position": int(position),
            "has_gauss": int(has_gauss),
            "cached_gaussian": float(cached),
        }
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        found["cuda"] = torch.cuda.get_rng_state_all()
    return found


def reasons_against(stored: Any, /) -> list[str]:
    """Return every reason why stored streams cannot be put back here."""
    if not isinstance(stored, dict):
        return ["random: no streams are stored"]
    ours, reasons = streams(), list[str]()
    for name in ("python", "torch"):
        if name not in stored:
            reasons.append(f"random: no stream of {name}")
    kept = stored.get("torch")
    if isinstance(kept, torch.Tensor) and kept.shape != ours["torch"].shape:
        reasons.append(f"random: torch's stream has {kept.numel()} bytes where {ours['torch'].numel()} belong")
    if "cuda" in ours and len(stored.get("cuda", ())) != len(ours["cuda"]):
        reasons.append(f"random: streams of {len(stored.get('cuda', ()))} devices where there are {len(ours['cuda'])}")
    return reasons


def put_back(stored: dict[str, Any], /) -> None:
    """Set the generators to what was stored."""
    version, words, gauss = stored["python"]
    random.setstate((version, tuple(words), gauss))
    torch.set_rng_state(stored["torch"])
    if "numpy" in stored and "numpy.random" in sys.modules:
        kept = stored["numpy"]
        keys = kept["keys"].numpy().astype("uint32")
        state = ("MT19937", keys, kept["position"], kept["has_gauss"], kept["cached_gaussian"])
        sys.modules["numpy.random"].set_state(state)
    if "cuda" in stored and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(stored["cuda"])
