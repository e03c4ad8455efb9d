"""A graded set of small kernels that tells whether a GPU does what the simulator says.

`cases` lists them for a target; `run_case` runs one on the device and in the simulator and compares every byte.
"""

from __future__ import annotations

from .case import Case
from .cases import cases
from .runner import Outcome, run_case

__all__ = ["Case", "Outcome", "cases", "run_case"]
