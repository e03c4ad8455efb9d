"""The simulator: runs AMDGPU LLVM IR on the CPU and says what is wrong with it.

`simulate` runs a kernel; `check_module` lists what a module uses that the simulator does not know.
"""

from __future__ import annotations

from .parser import parse_module
from .report import SimReport
from .run import simulate
from .stepper import Simulator
from .support import UnsupportedError, check_module

__all__ = ["SimReport", "Simulator", "UnsupportedError", "check_module", "parse_module", "simulate"]
