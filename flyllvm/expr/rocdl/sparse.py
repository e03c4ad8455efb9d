"""Products with a 2:4 sparse A: ``SMFMAC`` and ``SWMMAC``.

The packed A and its index come from the author: the atom's state field ``index`` says which columns A holds.  Call the
atom with ``mma_atom_call``; a tiled mma has no place for a packed A.
"""

from __future__ import annotations

from ...errors import TargetError
from ...ir.builder import Builder
from ..atoms import located
from .wmma import is_signed, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...atoms.flags import FlaggedRowMma
    from ...target import Target


def _find(
    kind: type[FlaggedRowMma],
    shape: tuple[int, int, int],
    elements: tuple[Any, Any],
    acc: Any,
    target: Target,
    variant: str,
    flags: dict[str, int],
) -> FlaggedRowMma:
    from ...atoms.flags import accumulator_of

    a, b = (name_of(x) for x in elements)
    kept = accumulator_of(kind.table, a, b) if acc is None else name_of(acc)
    row = kind.table.find(shape, (a, b, kept), None, target.processor, variant)
    found = kind(row, {name: value for name, value in flags.items() if value})
    found.check_target(target)
    return found


def _pair(elem_ty_ab: Any) -> tuple[Any, Any]:
    return elem_ty_ab if isinstance(elem_ty_ab, tuple) else (elem_ty_ab, elem_ty_ab)


def SMFMAC(
    m: int, n: int, k: int, elem_ty_ab: Any, elem_ty_acc: Any = None, *, cbsz: int = 0, abid: int = 0
) -> FlaggedRowMma:
    """The sparse MFMA of a shape (gfx942, gfx950); K is that of the dense product.

    Args:
        m, n, k: Shape.
        elem_ty_ab: One type, or a pair for A and B.
        elem_ty_acc: Type of C and D; by default f32, or i32 for integers.
        cbsz: 1: index set 0, whatever ``abid`` says.
        abid: Set of index bits.

    Raises:
        AtomError: No such instruction, or a flag out of range; the fix lists the legal ones.
        TargetError: Not on this target.
    """
    from ...atoms.rocdl.cdna3_smfmac import Smfmac

    target, flags = Builder.current().target, {"cbsz": cbsz, "abid": abid}
    made: FlaggedRowMma = located(lambda: _find(Smfmac, (m, n, k), _pair(elem_ty_ab), elem_ty_acc, target, "", flags))
    return made


def SWMMAC(
    m: int,
    n: int,
    k: int,
    elem_ty_ab: Any,
    elem_ty_acc: Any = None,
    *,
    index: str = "",
    clamp: bool = False,
    neg_a: bool = False,
    neg_b: bool = False,
    reuse_a: bool = False,
    reuse_b: bool = False,
) -> FlaggedRowMma:
    """The sparse WMMA of a shape, of the family and wave size of the target; K is that of the dense product.

    Args:
        m, n, k: Shape.
        elem_ty_ab: One type, or a pair for A and B; ``Int8`` and ``Uint8`` (and the 4-bit types) decide the signs.
        elem_ty_acc: Type of C and D; by default f32, or i32 for integers.
        index: gfx1250: ``"lane"``, which assumes that the index bits of a value are in its lane; sources contradict
            each other there, so it must be said.
        clamp: Integers: saturate the result.
        neg_a, neg_b: gfx1250, 16-bit floats: negate A or B.
        reuse_a, reuse_b: gfx1250: the operand registers are those of the call before.

    Raises:
        AtomError: No such instruction or modifier, or an unsaid index; the fix says what is legal.
        TargetError: The target has no sparse WMMA.
    """
    target = Builder.current().target
    pair = _pair(elem_ty_ab)
    integer = name_of(pair[0]).startswith(("i", "u"))
    flags = {
        "signA": int(integer and is_signed(pair[0])), "signB": int(integer and is_signed(pair[1])),
        "clamp": int(clamp), "negA": int(neg_a), "negB": int(neg_b), "reuseA": int(reuse_a), "reuseB": int(reuse_b),
    }  # fmt: skip

    def make() -> FlaggedRowMma:
        if target.processor == "gfx1250":
            from ...atoms.rocdl.gfx1250_swmmac import SwmmacGfx1250, check_index

            check_index(index)
            return _find(SwmmacGfx1250, (m, n, k), pair, elem_ty_acc, target, f"index = {index}", flags)
        if target.chip.family != "rdna4":
            raise TargetError(
                f"{target.processor} has no sparse WMMA", fix="targets with it: gfx1200, gfx1201, gfx1250"
            )
        from ...atoms.rocdl.gfx120x_swmmac import Swmmac

        variant = "wave = 64" if target.wave_size == 64 else ""
        return _find(Swmmac, (m, n, k), pair, elem_ty_acc, target, variant, flags)

    made: FlaggedRowMma = located(make)
    return made


__all__ = ["SMFMAC", "SWMMAC"]
