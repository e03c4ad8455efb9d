"""Atoms of gfx1250, and the transposing global loads that it shares with gfx12."""

from __future__ import annotations

from typing import Any

from ...ir.builder import Builder
from ..atoms import located
from .cdna4 import _checked
from .wmma import name_of


def WMMAScale(
    m: int,
    n: int,
    k: int,
    elem_ty_a: Any,
    elem_ty_b: Any = None,
    elem_ty_acc: Any = None,
    *,
    opsel_a: int = 0,
    opsel_b: int = 0,
    mod_c: int = 0,
    reuse_a: bool = False,
    reuse_b: bool = False,
    block_size: int = 32,
) -> Any:
    """The scaled WMMA of a shape; ``scale_a`` and ``scale_b`` must be set before use (a byte 127 is a factor of one).

    Args:
        m, n, k: 16, 16, 128, or 32, 16, 128 for Float4E2M1FN.
        elem_ty_a: Type of A: a small float.
        elem_ty_b: Type of B; by default that of A.
        elem_ty_acc: Type of C and D: Float32, which is also the default.
        opsel_a, opsel_b: Half of the lanes that supplies the scales.
        mod_c: 1 negates C, 2 takes its absolute value, 3 does both.
        reuse_a, reuse_b: The operand registers are those of the call before.
        block_size: Values of K that share a scale: 32 (i32 state) or 16 (i64 state).

    Raises:
        AtomError: No such instruction; the fix lists the legal ones.
        TargetError: Not on this target.
    """
    from ...atoms.rocdl.gfx1250_wmma_scale import TABLE, find_wmma_scale

    a, b = name_of(elem_ty_a), name_of(elem_ty_a if elem_ty_b is None else elem_ty_b)
    target = Builder.current().target
    if elem_ty_acc is not None and name_of(elem_ty_acc) != "f32":
        return located(lambda: TABLE.find((m, n, k), (a, b, name_of(elem_ty_acc)), processor=target.processor))
    given = {
        "opselA": opsel_a, "opselB": opsel_b, "modC": mod_c, "reuseA": int(reuse_a), "reuseB": int(reuse_b),
    }  # fmt: skip
    flags = {name: value for name, value in given.items() if value}
    return located(lambda: find_wmma_scale(m, n, k, a, b, target, block_size, **flags))


def DSLoadTr(granularity: int, bits: int) -> Any:
    """An LDS read of ``bits`` bits a lane that transposes elements of ``granularity`` bits: (16, 128) or (8, 64)."""
    from ...atoms.rocdl.gfx1250_ds_load_tr import DsLoadTr

    return _checked(lambda: DsLoadTr(granularity, bits))


def GlobalLoadTr(granularity: int, bits: int) -> Any:
    """A global load of ``bits`` bits a lane that transposes: (16, 128) on gfx12 and gfx1250, (8, 64) on gfx1250."""
    from ...atoms.rocdl.gfx12_global_load_tr import GlobalLoadTr as Atom

    return _checked(lambda: Atom(granularity, bits))


__all__ = ["DSLoadTr", "GlobalLoadTr", "WMMAScale"]
