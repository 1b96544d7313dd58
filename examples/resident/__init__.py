"""Resident workloads: `examples.resident:Workload` trains a transformer, `examples.resident:Fit` fits a picture."""

from examples.resident.fit import Fit as Fit
from examples.resident.workload import Workload as Workload
