"""Conversions of small floats by the name of the instruction: ``cvt.convert("cvt_scalef32_pk32_f32_fp6", x, scale)``.

The table of names, signatures and chips is `flyllvm.atoms.rocdl.conversions`.  Small data is held in integers: a word
of four fp8, ``<6 x i32>`` of 32 fp6.
"""

from __future__ import annotations

from ...errors import TraceError
from ...ir import lltype as ll, types as t
from ...ir.builder import Builder
from ..atoms import located
from ..numeric import BY_IR, Numeric, integer
from ..vector import Vector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...atoms.rocdl.conversions import Conversion
    from ...ir.core import Value

_SCALARS: dict[str, t.ScalarType] = {
    "float": t.F32, "half": t.F16, "bfloat": t.BF16, "i32": t.I32, "i16": t.I16,
}  # fmt: skip


def _type(text: str) -> t.ScalarType | t.VectorType:
    found = ll.parse(text)
    scalar = _SCALARS[found.elem.text]
    return t.VectorType(found.count, scalar) if found.kind == "vector" else scalar


def _argument(row: Conversion, position: int, x: Any) -> Value | int:
    """An operand in the type of the signature; vectors of as many bits are reinterpreted."""
    b = Builder.current()
    if position in row.imms:
        legal = row.imms[position]
        if not isinstance(x, int) or int(x) not in legal:
            whole = legal == tuple(range(len(legal)))
            fix = f"a constant, 0 to {legal[-1]}" if whole else f"a constant, one of {', '.join(map(str, legal))}"
            raise TraceError(f"{row.python_name}: argument {position} is {x!r}", b.location(), fix)
        return int(x)
    wanted = _type(row.args[position])
    if isinstance(wanted, t.ScalarType):
        kind = BY_IR[str(wanted)]
        bits = kind.signed is not None
        return (integer(x, f"argument {position} of {row.python_name}", kind) if bits else kind(x)).ir_value()
    given = x.ir_value() if isinstance(x, (Vector, Numeric)) else None
    if given is None or t.storage(given.type).bits != t.storage(wanted).bits:
        raise TraceError(
            f"{row.python_name}: argument {position} is {x!r}", b.location(), f"pass a vector of {row.args[position]}"
        )
    return given if given.type == wanted else b.bitcast(given, wanted)


def convert(name: str, *args: Any, element: Any = None) -> Any:
    """One conversion.

    Args:
        name: ``cvt_pk_fp8_f32``, ``cvt_scalef32_sr_pk_fp4_f16``, ...
        args: Its operands, in LLVM's order.
        element: Number type of the small data, to have its flavour checked against the chip.

    Raises:
        AtomError: No such conversion, or small data of another format or flavour than the chip's.
        TargetError: Not on this target.
        TraceError: Wrong operands.
    """
    from ...atoms.rocdl.conversions import find

    b = Builder.current()
    row: Conversion = located(lambda: find(name))
    located(lambda: row.check_target(b.target))
    if element is not None:
        located(lambda: row.check_element(str(getattr(element, "ir", element)), b.target))
    if len(args) != len(row.args):
        signature = ", ".join(row.args)
        raise TraceError(f"{row.python_name} of {len(args)} operands", b.location(), f"pass {signature}")
    values = [_argument(row, i, x) for i, x in enumerate(args)]
    widths = tuple(1 if row.args[i] == "i1" else 32 for i in row.imms)
    result = _type(row.result)
    made = b.intrinsic(f"llvm.amdgcn.{row.name}", result, values, widths, pure=not row.crosses_lanes)
    if made is None:
        raise TraceError(f"{row.python_name} gave no result", b.location(), "report this as a defect")
    elem = result.elem if isinstance(result, t.VectorType) else result
    kind = BY_IR[str(elem)]
    return Vector(made, kind) if isinstance(result, t.VectorType) else kind.wrap(made)


__all__ = ["convert"]
