"""The readers of sources by kind and name: one line each (IN-10 to IN-15)."""

from paritrace.inference.importing import Reader

READERS: tuple[Reader, ...] = ()
