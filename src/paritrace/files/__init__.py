"""Every write there is, and the reads that go with them (EV-7, EV-10)."""

from paritrace.files.appender import Appender
from paritrace.files.local import LOCAL, TEMPORARY_PREFIX, Files
from paritrace.files.opened import CHUNK_BYTES
from paritrace.files.primitives import Primitives

__all__ = ["CHUNK_BYTES", "LOCAL", "TEMPORARY_PREFIX", "Appender", "Files", "Primitives"]
