"""The readers of sources by kind and name: one line each (IN-10 to IN-15)."""

from paritrace.inference.importers.kineto import KINETO
from paritrace.inference.importing import Reader

READERS: tuple[Reader, ...] = (KINETO,)
