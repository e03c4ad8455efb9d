"""Passes: fly IR to fly IR.  Each consumes the kernel it is given and returns it at the next stage."""

from .expand import expand
from .ssa import to_ssa

__all__ = ["expand", "to_ssa"]
