"""The WMMA of a target's own family, with its modifiers."""

from __future__ import annotations

from ...ir.builder import Builder
from ..atoms import located
from ..numeric import Numeric

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def name_of(x: Any) -> str:
    """Element name of a number type."""
    return str(x.ir) if isinstance(x, type) and issubclass(x, Numeric) else str(x)


def is_signed(x: Any) -> bool:
    """Whether a number type is a signed integer; an IR type counts as signed, as it has no sign of its own."""
    signed = x.signed if isinstance(x, type) and issubclass(x, Numeric) else True
    return signed is not False and name_of(x).startswith("i")


def WMMA(
    m: int,
    n: int,
    k: int,
    elem_ty_ab: Any,
    elem_ty_acc: Any = None,
    *,
    elem_ty_result: Any = None,
    clamp: bool = False,
    neg_a: bool = False,
    neg_b: bool = False,
    mod_c: int = 0,
    reuse_a: bool = False,
    reuse_b: bool = False,
) -> Any:
    """The WMMA of a shape, of the family and wave size that the target has (gfx11, gfx12 or gfx1250).

    Args:
        m, n, k: Shape.
        elem_ty_ab: One type, or a pair for A and B; ``Int8`` and ``Uint8`` (and the 4-bit types) decide the signs.
        elem_ty_acc: Type of C and D; by default f32, or i32 for integers.
        elem_ty_result: Type of D where it is not that of C: gfx1250 has a bf16 D for an f32 C.
        clamp: Integers: saturate the result.
        neg_a, neg_b: gfx1250 floats: negate A or B.
        mod_c: gfx1250 floats: 1 negates C, 2 takes its absolute value, 3 does both.
        reuse_a, reuse_b: gfx1250: the operand registers are those of the call before.

    Raises:
        AtomError: No such instruction or modifier; the fix lists the legal ones.
        TargetError: The target has no WMMA.
    """
    from ...atoms.rocdl.wmma import find_wmma

    a, b = elem_ty_ab if isinstance(elem_ty_ab, tuple) else (elem_ty_ab, elem_ty_ab)
    flags = {
        "signA": int(is_signed(a)), "signB": int(is_signed(b)), "clamp": int(clamp), "negA": int(neg_a),
        "negB": int(neg_b), "modC": mod_c, "reuseA": int(reuse_a), "reuseB": int(reuse_b),
    }  # fmt: skip
    acc = None if elem_ty_acc is None else name_of(elem_ty_acc)
    result = None if elem_ty_result is None else name_of(elem_ty_result)
    target = Builder.current().target
    return located(lambda: find_wmma(m, n, k, name_of(a), name_of(b), acc, target, flags, result))


__all__ = ["WMMA"]
