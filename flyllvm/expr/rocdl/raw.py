"""Instructions by the name of their LLVM intrinsic, and direct moves from memory to LDS."""

from __future__ import annotations

from ...atoms.rocdl.cache_policy import CachePolicy
from ...errors import TargetError, TraceError
from ...ir import types as t
from ...ir.builder import Builder
from ...ir.core import Value
from ..atoms import located
from ..numeric import Int32, Numeric, NumericMeta, as_numeric, count_of, integer
from ..pointer import Pointer
from ..vector import Vector
from .buffers import Resource, get_buffer_rsrc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def intrinsic(name: str, result: Any, *args: Any, imm_bits: Any = 32, pure: bool = False) -> Any:
    """Calls an LLVM intrinsic; name, operands and target are checked against LLVM's own table before LLVM sees it.

    Args:
        name: Full name with its type suffixes: ``llvm.amdgcn.mfma.f32.16x16x16f16``.
        result: A number type, ``(number type, count)`` for a vector, or ``None``.
        args: Numbers, vectors and pointers of the types the intrinsic takes; a Python int is an immediate.
        imm_bits: Width of the immediates: one for all, or one for each.
        pure: Whether it touches neither memory nor other lanes.
    """
    b = Builder.current()
    operands: list[Value | int] = []
    for a in args:
        if type(a) in (int, bool):
            operands.append(int(a))
        elif isinstance(a, (Numeric, Vector, Pointer)):
            operands.append(a.ir_value())
        elif isinstance(a, Resource):
            operands.append(a.ptr.ir_value())
        else:
            raise TraceError(f"{a!r} as an operand of {name}", b.location(), "pass a number, a vector or a pointer")
    count = 0
    if isinstance(result, tuple):
        result, count = result
    if result is not None and not isinstance(result, NumericMeta):
        where = b.location()
        raise TraceError(f"result {result!r} of {name}", where, "give a number type, (type, count), or None")
    ir = None if result is None else t.VectorType(count, result.ir) if count else result.ir  # type: ignore[attr-defined]
    full = name if name.startswith("llvm.") else f"llvm.{name}"
    made = b.intrinsic(full, ir, operands, imm_bits, pure)
    if made is None or result is None:
        return None
    return Vector(made, result) if count else result.wrap(made)  # type: ignore[attr-defined, arg-type]


def _descriptor(rsrc: Any) -> Pointer:
    return rsrc.ptr if isinstance(rsrc, Resource) else get_buffer_rsrc(rsrc).ptr


def _offset(x: Any, what: str) -> Any:
    """A byte offset behind a descriptor: offsets count up from its base."""
    made = integer(x, what)
    if made.is_static:
        count_of(made, what, 0, (1 << 31) - 1)
    return made


def raw_ptr_buffer_load_lds(
    rsrc: Any, lds_ptr: Pointer, size: int, voffset: Any = 0, soffset: Any = 0, offset: int = 0, aux: Any = None
) -> None:
    """Moves ``size`` bytes a lane from a buffer to LDS, past the registers.

    Lane t writes at ``lds_ptr + offset + t * size``, where ``lds_ptr`` is the first lane's: the same for the wave.

    Args:
        rsrc: A buffer without an offset of its own.
        lds_ptr: Where the wave writes.
        size: Bytes a lane: 1, 2, 4; also 12 and 16 on gfx950.
        voffset: Byte offset of the lane in the buffer.
        soffset: Byte offset that is the same for all lanes.
        offset: Bytes added to both addresses, 0 to 4095.
        aux: Cache policy.

    Raises:
        TargetError: The target has no such move.
    """
    b = Builder.current()
    legal = {"cdna2": (1, 2, 4), "cdna3": (1, 2, 4), "cdna4": (1, 2, 4, 12, 16)}.get(b.target.chip.family, ())
    if size not in legal:
        raise TargetError(
            f"{b.target.processor} moves no {size} bytes a lane from a buffer to LDS",
            b.location(),
            f"use {', '.join(map(str, legal))} bytes" if legal else "load to registers and store",
        )
    if type(offset) is not int or not 0 <= offset < 1 << 12:
        raise TraceError(f"offset {offset!r} of a move to LDS", b.location(), "use a compile-time number of 0 to 4095")
    if not isinstance(lds_ptr, Pointer) or lds_ptr.address_space != "shared":
        raise TraceError(f"{lds_ptr!r} is not in LDS", b.location(), "pass a pointer to shared memory")
    policy = 0 if aux is None else located(lambda: CachePolicy(aux).bits(b.target, False))
    offsets = _offset(voffset, "voffset"), _offset(soffset, "soffset"), offset
    intrinsic("llvm.amdgcn.raw.ptr.buffer.load.lds", None, _descriptor(rsrc), lds_ptr, size, *offsets, policy)


def buffer_load_to_lds(
    rsrc: Any, lds_ptr: Pointer, voffset: Any, size_bytes: int = 4, soffset: Any = 0, offset: int = 0
) -> None:
    """``raw_ptr_buffer_load_lds`` with the arguments in another order."""
    raw_ptr_buffer_load_lds(rsrc, lds_ptr, size_bytes, voffset, soffset, offset)


def _atomic(name: str, vdata: Any, rsrc: Any, offset: Any, soffset: Any) -> Any:
    from .atoms import BufferAtomic

    value = as_numeric(vdata) if not isinstance(vdata, Vector) else vdata
    kind = value.ir_value().type
    # The atom knows what each chip has.
    BufferAtomic(name, value.dtype if isinstance(value, Numeric) else str(kind))
    suffix = f"v{value.count}{value.dtype.ir.text}" if isinstance(value, Vector) else value.dtype.ir.text
    result: Any = (value.dtype, value.count) if isinstance(value, Vector) else value.dtype
    offsets = _offset(offset, "offset"), _offset(soffset, "soffset")
    full = f"llvm.amdgcn.raw.ptr.buffer.atomic.f{name}.{suffix}"
    return intrinsic(full, result, value, _descriptor(rsrc), *offsets, 0)


def raw_ptr_buffer_atomic_fadd(vdata: Any, rsrc: Any, offset: Any = 0, soffset: Any = 0) -> Any:
    """Adds a float, or two 16-bit floats, at a byte offset of a buffer; returns the old value."""
    return _atomic("add", vdata, rsrc, offset, soffset)


def raw_ptr_buffer_atomic_fmax(vdata: Any, rsrc: Any, offset: Any = 0, soffset: Any = 0) -> Any:
    """The larger of a float and what is at a byte offset of a buffer; returns the old value."""
    return _atomic("max", vdata, rsrc, offset, soffset)


def _cluster(axis: str) -> Any:
    def run() -> Int32:
        b = Builder.current()
        if b.target.chip.family != "gfx1250":
            raise TargetError(f"{b.target.processor} has no clusters", b.location(), "they exist on gfx1250")
        made: Int32 = intrinsic(f"llvm.amdgcn.cluster.workgroup.id.{axis}", Int32)
        return made

    run.__name__ = run.__qualname__ = f"cluster_workgroup_id_{axis}"
    run.__doc__ = f"Index of the workgroup in its cluster along {axis} (gfx1250)."
    return run


cluster_workgroup_id_x, cluster_workgroup_id_y = _cluster("x"), _cluster("y")
cluster_workgroup_id_z = _cluster("z")
