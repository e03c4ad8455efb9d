"""Packs kernel arguments by the offsets and sizes of the metadata.

The layout is never computed from types: what the code object says is what the kernel reads.

Source: LLVM AMDGPUUsage, "Kernarg Segment" and the ``hidden_*`` value kinds of the metadata.
"""

from __future__ import annotations

import struct

from ..errors import LaunchError
from .kernel import KernelArg, KernelInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# Element type -> struct format; the size is the format's.
_FLOATS = {"f16": "<e", "f32": "<f", "f64": "<d"}
_INT_BITS = {"i1": 8, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "u8": 8, "u16": 16, "u32": 32, "u64": 64, "index": 64}

# Hidden arguments that belong to services of a runtime (printf, device malloc, queues): a kernel that uses
# them cannot run without that runtime, and one that only lists them never reads them.
_SERVICES = frozenset({
    "hidden_none", "hidden_printf_buffer", "hidden_hostcall_buffer", "hidden_default_queue", "hidden_completion_action",
    "hidden_multigrid_sync_arg", "hidden_heap_v1", "hidden_private_base", "hidden_shared_base", "hidden_queue_ptr",
})  # fmt: skip
_MAX_GRID = (1 << 32) - 1
# Sizes of a plain address: in LDS and in device memory.
_ADDRESS_BYTES = (4, 8)


def pack_kernarg(kernel: KernelInfo, values: Sequence[object], types: Sequence[str | None] | None = None) -> bytes:
    """Packs the explicit arguments of a kernel.

    Args:
        kernel: The kernel, with the layout of its arguments.
        values: One value per explicit argument.  A pointer takes an int, an object with ``data_ptr()`` or
            ``__cuda_array_interface__``, or ``None`` for a null pointer.  Any other argument takes an int that fits
            its size, ``bytes`` or an object with the buffer protocol (a ctypes value, a NumPy scalar) of just its
            size, or, where ``types`` tells the type, a float.  A buffer descriptor takes its 16 bytes.
        types: Element type per argument (``f32``, ``bf16``, ``i32``, ...) or ``None`` where it is not known.

    Returns:
        ``kernel.explicit_kernarg_bytes`` bytes; padding is zero.

    Raises:
        LaunchError: Wrong count, kind, size or range.
    """
    if len(values) != len(kernel.args) or (types is not None and len(types) != len(kernel.args)):
        names = ", ".join(a.name for a in kernel.args) or "none"
        got = len(values) if len(values) != len(kernel.args) else f"{len(types or ())} types"
        raise LaunchError(
            f"kernel {kernel.name} takes {len(kernel.args)} arguments, got {got}", fix=f"its arguments are: {names}"
        )
    segment = bytearray(kernel.explicit_kernarg_bytes)
    for i, (arg, value) in enumerate(zip(kernel.args, values, strict=True)):
        where = f"argument {i} ({arg.name}) of kernel {kernel.name}"
        kind = types[i] if types is not None else None
        raw = _pointer(arg, value, where) if arg.is_pointer else _value(arg, value, kind, where)
        segment[arg.offset : arg.offset + arg.size] = raw
    return bytes(segment)


def hidden_args(
    kernel: KernelInfo, grid: tuple[int, int, int], block: tuple[int, int, int], dynamic_lds_bytes: int = 0
) -> bytes:
    """The rest of the kernarg segment, as a runtime fills it.

    ``pack_kernarg(...) + hidden_args(...)`` is the whole segment.  Pointers to services of a runtime are null.

    Args:
        kernel: The kernel.
        grid: Number of workgroups in x, y, z.
        block: Work items in a workgroup in x, y, z.
        dynamic_lds_bytes: LDS asked for at launch, in bytes.

    Raises:
        LaunchError: A size is out of range, or the kernel wants a hidden argument that is not known.
    """
    for name, sizes, limit in (("grid", grid, _MAX_GRID), ("block", block, 0xFFFF)):
        if len(sizes) != 3 or not all(1 <= n <= limit for n in sizes):
            raise LaunchError(
                f"{name} {tuple(sizes)} for kernel {kernel.name}", fix=f"give three sizes from 1 to {limit}"
            )
    known: dict[str, int] = {"hidden_grid_dims": 3, "hidden_dynamic_lds_size": dynamic_lds_bytes}
    for i, axis in enumerate("xyz"):
        known[f"hidden_block_count_{axis}"] = grid[i]
        known[f"hidden_group_size_{axis}"] = block[i]
        # The grid is given in whole workgroups, so there is no partial one and no offset.
        known[f"hidden_remainder_{axis}"] = 0
        known[f"hidden_global_offset_{axis}"] = 0
    start = kernel.explicit_kernarg_bytes
    segment = bytearray(kernel.kernarg_bytes - start)
    for arg in kernel.hidden_args:
        if arg.kind in _SERVICES:
            continue
        if arg.kind not in known:
            raise LaunchError(
                f"kernel {kernel.name} wants {arg.kind}, which is not known here", fix="compile the kernel with flyllvm"
            )
        value = known[arg.kind]
        if not 0 <= value < 1 << 8 * arg.size:
            raise LaunchError(f"{arg.kind} = {value} does not fit {arg.size} bytes", fix="use a smaller launch")
        at = arg.offset - start
        segment[at : at + arg.size] = value.to_bytes(arg.size, "little")
    return bytes(segment)


def _pointer(arg: KernelArg, value: object, where: str) -> bytes:
    if arg.size not in _ADDRESS_BYTES:
        # An address alone would be a descriptor without bounds and format.
        if isinstance(value, bytes) and len(value) == arg.size:
            return value
        raise LaunchError(
            f"a buffer descriptor of {arg.size} bytes is wanted, got {_describe(value)}", where, "pass its bytes"
        )
    address = _address(value)
    if address is None:
        raise LaunchError(
            f"a pointer is wanted, got {_describe(value)}",
            where,
            "pass device memory: an address as int, or an object with data_ptr() or __cuda_array_interface__",
        )
    if not 0 <= address < 1 << 8 * arg.size:
        raise LaunchError(f"address {address:#x} does not fit {arg.size} bytes", where, "pass an address of that size")
    return address.to_bytes(arg.size, "little")


def _address(value: object) -> int | None:
    """Device address that a value stands for, or ``None`` where it stands for none."""
    if value is None:
        return 0
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if getattr(value, "is_cuda", True) is False:  # a tensor of torch in host memory
        return None
    pointer = getattr(value, "data_ptr", None)
    found = pointer() if callable(pointer) else None
    if found is None:
        interface = getattr(value, "__cuda_array_interface__", None)
        if isinstance(interface, dict):
            found = interface["data"][0]
    return found if isinstance(found, int) else None


def _value(arg: KernelArg, value: object, kind: str | None, where: str) -> bytes:
    raw = _raw_bytes(value)
    if raw is not None:
        if len(raw) != arg.size:
            raise LaunchError(
                f"{arg.size} bytes are wanted, got {_describe(value)} of {len(raw)}", where, f"pass {arg.size} bytes"
            )
        return raw
    if kind == "bf16" or kind in _FLOATS:
        if isinstance(value, (int, float)):
            return _float(arg, float(value), str(kind), where)
    elif kind is not None and kind not in _INT_BITS:
        raise LaunchError(f"unknown type {kind!r}", where, f"types are: {', '.join([*_FLOATS, 'bf16', *_INT_BITS])}")
    elif isinstance(value, int):
        return _int(arg, value, kind, where)
    elif isinstance(value, float) and kind is None:
        raise LaunchError(
            f"a Python float has no size of its own, {arg.size} bytes are wanted",
            where,
            "pass a typed value such as ctypes.c_float(x), or say the type: types=[..., 'f32', ...]",
        )
    wanted = f"a value of type {kind}" if kind else f"a value of {arg.size} bytes"
    raise LaunchError(f"{wanted} is wanted, got {_describe(value)}", where, "pass a number, or bytes of just that size")


def _raw_bytes(value: object) -> bytes | None:
    """Bytes of a value that has a size of its own."""
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    try:
        return memoryview(value).tobytes()  # type: ignore[arg-type]
    except (TypeError, ValueError, BufferError):
        # The scalar types of ml_dtypes have no buffer, but the method.
        method = getattr(value, "tobytes", None)
        raw = method() if callable(method) else None
        return raw if isinstance(raw, bytes) else None


def _int(arg: KernelArg, value: int, kind: str | None, where: str) -> bytes:
    bits = 8 * arg.size if kind is None else _INT_BITS[kind]
    if bits != 8 * arg.size:
        raise LaunchError(f"type {kind} has {bits // 8} bytes, the kernel reads {arg.size}", where, "correct the type")
    if isinstance(value, bool) or kind == "i1":
        low, high = 0, 1
    else:
        low = 0 if kind is not None and kind[0] == "u" else -(1 << bits - 1)
        high = (1 << bits - 1) - 1 if kind is not None and kind[0] == "i" and kind != "index" else (1 << bits) - 1
    if not low <= value <= high:
        raise LaunchError(f"{int(value)} does not fit {kind or f'{arg.size} bytes'}", where, f"use {low} to {high}")
    return (int(value) & (1 << bits) - 1).to_bytes(arg.size, "little")


def _float(arg: KernelArg, value: float, kind: str, where: str) -> bytes:
    size = 2 if kind == "bf16" else struct.calcsize(_FLOATS[kind])
    if size != arg.size:
        raise LaunchError(f"type {kind} has {size} bytes, the kernel reads {arg.size}", where, "correct the type")
    try:
        if kind != "bf16":
            return struct.pack(_FLOATS[kind], value)
        return _bf16(value)
    except OverflowError:
        raise LaunchError(
            f"{value} is too large for {kind}", where, "use a smaller number, or float('inf') on purpose"
        ) from None


def _bf16(value: float) -> bytes:
    """A bfloat16, rounded to nearest, ties to even."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    if bits & 0x7FFFFFFF > 0x7F800000:  # keep a NaN one: rounding could carry into the exponent
        return struct.pack("<H", bits >> 16 | 0x40)
    rounded: int = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    if rounded & 0x7FFF == 0x7F80 and bits & 0x7FFFFFFF != 0x7F800000:
        raise OverflowError
    return struct.pack("<H", rounded)


def _describe(value: object) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 40 else text[:37] + '...'}"
