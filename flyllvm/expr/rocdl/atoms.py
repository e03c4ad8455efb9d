"""Matrix and buffer atoms of AMD GPUs."""

from __future__ import annotations

from ...errors import TraceError
from ...ir.builder import Builder
from ..atoms import located
from ..numeric import Numeric
from ..universal import signed_operation
from .wmma import WMMA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def elem(x: Any) -> Any:
    """The IR type of a number type; names and ``None`` stay."""
    return x.ir if isinstance(x, type) and issubclass(x, Numeric) else x


def _pair(x: Any) -> tuple[Any, Any]:
    a, b = x if isinstance(x, tuple) else (x, x)
    return elem(a), elem(b)


def MFMA(m: int, n: int, k: int, elem_ty_ab: Any, elem_ty_acc: Any = None, *, blocks: int | None = None) -> Any:
    """The MFMA of a shape; ``elem_ty_ab`` is one type, or a pair for A and B.

    Raises:
        AtomError: No such instruction on the target; the fix lists the legal ones.
    """
    from ...atoms.rocdl.cdna3_mfma import find_mfma

    a, b = _pair(elem_ty_ab)
    target = Builder.current().target
    return located(lambda: find_mfma(m, n, k, a, b, elem(elem_ty_acc), target, blocks))


def BufferCopy(bits: int, cache_modifier: int | str = 0) -> Any:
    """A copy of ``bits`` bits a lane between a buffer descriptor and registers.

    Args:
        bits: 8, 16, 32, 64, 96 or 128.
        cache_modifier: Cache policy: names such as ``nt`` or ``sc0|nt``, or raw bits; what exists depends on the chip.
    """
    from ...atoms.rocdl.cdna3_buffer_copy import BufferCopy as Atom

    return located(lambda: Atom(bits, cache_modifier))


def BufferCopyLDS(bits: int, cache_modifier: int | str = 0) -> Any:
    """A copy of ``bits`` bits a lane from a buffer to LDS, past the registers: 32, and 96 or 128 on gfx950."""
    from ...atoms.rocdl.cdna3_buffer_copy_lds import BufferCopyLds as Atom

    made = located(lambda: Atom(bits, cache_modifier))
    located(lambda: made.check_target(Builder.current().target))
    return made


def _sized(make: Any, bits: int) -> Any:
    def run(cache_modifier: int | str = 0) -> Any:
        return make(bits, cache_modifier)

    run.__name__ = run.__qualname__ = f"{make.__name__}{bits}b"
    run.__doc__ = f"``{make.__name__}({bits})``."
    return run


BufferCopy8b, BufferCopy16b, BufferCopy32b = _sized(BufferCopy, 8), _sized(BufferCopy, 16), _sized(BufferCopy, 32)
BufferCopy64b, BufferCopy96b = _sized(BufferCopy, 64), _sized(BufferCopy, 96)
BufferCopy128b = _sized(BufferCopy, 128)
BufferCopyLDS32b, BufferCopyLDS64b = _sized(BufferCopyLDS, 32), _sized(BufferCopyLDS, 64)
BufferCopyLDS96b, BufferCopyLDS128b = _sized(BufferCopyLDS, 96), _sized(BufferCopyLDS, 128)


def BufferAtomic(op: str, dtype: Any) -> Any:
    """An atomic update behind a buffer descriptor with values from registers; used like a copy atom.

    Args:
        op: add, max, min, ...; max and min follow the sign of the type.
        dtype: Element type, or the name of a vector of two.

    Raises:
        AtomError: There is no such instruction.
        TargetError: The target has it not.
    """
    from ...atoms.rocdl.cdna3_buffer_atomic import BufferAtomic as Atom

    name = signed_operation(op, dtype) if isinstance(dtype, type) else op
    made = located(lambda: Atom(name, elem(dtype)))
    located(lambda: made.check_target(Builder.current().target))
    return made


def BufferAtomicAdd(dtype: type[Numeric]) -> Any:
    """``BufferAtomic("add", dtype)``."""
    return BufferAtomic("add", dtype)


def BufferAtomicMax(dtype: type[Numeric]) -> Any:
    """``BufferAtomic("max", dtype)``."""
    return BufferAtomic("max", dtype)


def BufferAtomicMin(dtype: type[Numeric]) -> Any:
    """``BufferAtomic("min", dtype)``."""
    return BufferAtomic("min", dtype)


def BufferAtomicPkAdd(dtype: type[Numeric]) -> Any:
    """The addition of two neighbouring 16-bit floats at once.

    Raises:
        TraceError: The type is neither Float16 nor BFloat16.
    """
    if dtype.ir.text not in ("f16", "bf16"):
        raise TraceError(f"BufferAtomicPkAdd({dtype})", Builder.current().location(), "use Float16 or BFloat16")
    return BufferAtomic("add", f"vector<2x{dtype.ir.text}>")


__all__ = [
    "MFMA", "WMMA", "BufferAtomic", "BufferAtomicAdd", "BufferAtomicMax", "BufferAtomicMin", "BufferAtomicPkAdd",
    "BufferCopy", "BufferCopy8b", "BufferCopy16b", "BufferCopy32b", "BufferCopy64b", "BufferCopy96b", "BufferCopy128b",
    "BufferCopyLDS", "BufferCopyLDS32b", "BufferCopyLDS64b", "BufferCopyLDS96b", "BufferCopyLDS128b",
]  # fmt: skip
