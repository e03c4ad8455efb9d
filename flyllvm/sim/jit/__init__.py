"""The second engine: the same LLVM IR, lowered to code of the host that handles many lanes at once.

A workgroup runs as one program over all of its lanes, with masks where lanes diverge, in the order in which the NumPy
engine runs it.  Values that differ between lanes are arrays over lanes; element-wise operations on them become loops
over vectors.  Checkers do not run here; bounds, division by zero and the like are compiled in.
"""

from __future__ import annotations

from .engine import Runner, host_code

__all__ = ["Runner", "host_code"]
