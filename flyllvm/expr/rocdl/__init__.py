"""AMD names of the authoring language: matrix and buffer atoms, buffer descriptors."""

from __future__ import annotations

from typing import Any

from ... import layout as L
from ...errors import TraceError
from ...ir import types as t
from ...ir.builder import Builder
from ..gpu import readfirstlane
from ..leaves import to_leaves
from ..numeric import Int64, Numeric, Uint32
from ..tensor import Pointer, Tensor

#: The largest extent a 32-bit record count can describe, in bytes.
MAX_RECORDS = (1 << 32) - 1


def _elem(x: Any) -> Any:
    return x.ir if isinstance(x, type) and issubclass(x, Numeric) else x


def MFMA(m: int, n: int, k: int, elem_ty_ab: Any, elem_ty_acc: Any = None, *, blocks: int | None = None) -> Any:
    """The MFMA of a shape; ``elem_ty_ab`` is one type, or a pair for A and B.

    Raises:
        AtomError: No such instruction on the target; the fix lists the legal ones.
    """
    from ...atoms.rocdl.cdna3_mfma import find_mfma

    a, b = elem_ty_ab if isinstance(elem_ty_ab, tuple) else (elem_ty_ab, elem_ty_ab)
    builder = Builder.current()
    acc = None if elem_ty_acc is None else _elem(elem_ty_acc)
    return find_mfma(m, n, k, _elem(a), _elem(b), acc, builder.target, blocks)


def BufferCopy(bits: int, cache_modifier: int | str = 0) -> Any:
    """A copy of ``bits`` bits a lane between a buffer descriptor and registers."""
    from ...atoms.rocdl.cdna3_buffer_copy import BufferCopy as Atom

    return Atom(bits, cache_modifier)


def _sized(bits: int) -> Any:
    def make(cache_modifier: int | str = 0) -> Any:
        return BufferCopy(bits, cache_modifier)

    make.__name__ = f"BufferCopy{bits}b"
    make.__doc__ = f"A buffer copy of {bits} bits a lane."
    return make


BufferCopy8b, BufferCopy16b, BufferCopy32b = _sized(8), _sized(16), _sized(32)
BufferCopy64b, BufferCopy96b, BufferCopy128b = _sized(64), _sized(96), _sized(128)


def make_buffer_ptr(ptr: Pointer, num_records_bytes: Any) -> Pointer:
    """A buffer-descriptor pointer over a global one.

    Args:
        ptr: Global pointer.
        num_records_bytes: Bytes from the pointer on that may be accessed; accesses past them read 0 and
            write nothing.  At most 2**32 - 1.

    Raises:
        TraceError: The pointer is not global, or a known extent is out of range.
    """
    b = Builder.current()
    if ptr.address_space != "global":
        raise TraceError(
            f"a buffer descriptor over a {ptr.address_space} pointer", b.location(), "pass a pointer to global memory"
        )
    records = to_leaves(num_records_bytes)
    if isinstance(records, int):
        if not 0 <= records <= MAX_RECORDS:
            raise TraceError(
                f"a buffer of {records} bytes",
                b.location(),
                f"a descriptor reaches at most {MAX_RECORDS} bytes; move its base instead, per block",
            )
        value = b.constant(records, t.I64)
    else:
        wide = num_records_bytes if isinstance(num_records_bytes, Numeric) else Int64(records)
        value = Int64(Uint32(wide) if wide.width == 32 else wide).ir_value()
        if wide.width == 64:
            value = _clamp_records(value)
    return Pointer(b.make_buffer(ptr.ir_value(), value), ptr.dtype)


def _clamp_records(value: Any) -> Any:
    """Run-time extents are held inside [0, 2**32 - 1]: never masked to a small number."""
    b = Builder.current()
    low = b.binary("arith.maxsi", value, b.constant(0, t.I64))
    return b.binary("arith.minsi", low, b.constant(MAX_RECORDS, t.I64))


def make_buffer_tensor(tensor: Tensor, *, num_records_bytes: Any = None) -> Tensor:
    """The tensor through a buffer descriptor that ends where the tensor does.

    Args:
        tensor: Tensor in global memory.
        num_records_bytes: Bytes that may be accessed; by default ``cosize`` of the layout.
    """
    if num_records_bytes is None:
        count = L.cosize(tensor.layout)
        if isinstance(count, int):
            num_records_bytes = -(-count * tensor.dtype.width // 8)
        else:
            from ..leaves import from_leaves

            num_records_bytes = Int64(from_leaves(count)) * tensor.dtype.width // 8
    return Tensor(make_buffer_ptr(tensor.iter, num_records_bytes).ir_value(), tensor.layout, tensor.dtype)


__all__ = [
    "MAX_RECORDS", "MFMA", "BufferCopy", "BufferCopy8b", "BufferCopy16b", "BufferCopy32b", "BufferCopy64b",
    "BufferCopy96b", "BufferCopy128b", "make_buffer_ptr", "make_buffer_tensor", "readfirstlane",
]  # fmt: skip
