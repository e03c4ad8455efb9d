"""Atoms of gfx1250."""

from __future__ import annotations

from ...errors import TraceError
from ...ir.builder import Builder
from ..atoms import located
from ..numeric import Float8E8M0FNU, Float32
from .atoms import elem
from .wmma import name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _scale_format(scale_type: Any) -> int:
    found = {"f8E8M0FNU": 0, "e5m3": 1, "f8E4M3FN": 2}.get(name_of(scale_type))
    if found is None:
        raise TraceError(
            f"scales of {scale_type}", Builder.current().location(), "use Float8E8M0FNU, Float8E4M3FN or 'e5m3'"
        )
    return found


def WMMAScale(
    m: int, n: int, k: int, elem_ty_a: Any, elem_ty_b: Any = None, elem_ty_acc: Any = None, *,
    opsel_a: int = 0, opsel_b: int = 0, mod_c: int = 0, reuse_a: bool = False, reuse_b: bool = False,
    block_size: int = 32, scale_type_a: Any = Float8E8M0FNU, scale_type_b: Any = Float8E8M0FNU,
) -> Any:  # fmt: skip
    """The block-scaled WMMA of a shape; its scales are state: ``gemm(..., scale_a=, scale_b=)``.

    Args:
        m, n, k: Shape.
        elem_ty_a: Element type of A.
        elem_ty_b: Element type of B; A's by default.
        elem_ty_acc: Float32, which is all there is.
        opsel_a, opsel_b: Row of the scales.
        mod_c: Modifier of C: 0 none, 1 negative, 2 magnitude, 3 both.
        reuse_a, reuse_b: Hints that the next call has the same operand.
        block_size: Elements that share a scale: 32 or 16.
        scale_type_a, scale_type_b: ``Float8E8M0FNU``, ``Float8E4M3FN``, or ``"e5m3"`` (unsigned, no type of its own).

    Raises:
        AtomError: No such instruction, or a flag out of range.
        TargetError: Not on this target.
        TraceError: Another accumulator or scale type.
    """
    from ...atoms.rocdl.gfx1250_wmma_scale import find_wmma_scale

    if elem_ty_acc is not None and elem_ty_acc is not Float32:
        raise TraceError(f"WMMAScale into {elem_ty_acc}", Builder.current().location(), "the accumulator is Float32")
    flags = {"opselA": opsel_a, "opselB": opsel_b, "modC": mod_c, "reuseA": int(reuse_a), "reuseB": int(reuse_b)}
    flags |= {"fmtScaleA": _scale_format(scale_type_a), "fmtScaleB": _scale_format(scale_type_b)}
    given = {name: value for name, value in flags.items() if value}
    target, b = Builder.current().target, elem(elem_ty_b)
    return located(lambda: find_wmma_scale(m, n, k, elem(elem_ty_a), b, target, block_size, **given))
