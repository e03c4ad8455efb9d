"""Buffer descriptors, and loads and stores through them."""

from __future__ import annotations

from ... import layout as L
from ...atoms.rocdl.cache_policy import CachePolicy
from ...errors import TraceError
from ...ir import types as t
from ...ir.builder import Builder
from ...ir.core import Value
from ..atoms import located
from ..leaves import from_leaves, to_leaves
from ..numeric import Int64, Numeric, Uint32, integer
from ..pointer import Pointer
from ..reach import narrowed
from ..tensor import Tensor
from ..vector import Vector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The largest extent a 32-bit record count can describe, in bytes.
MAX_RECORDS = (1 << 32) - 1


def make_buffer_ptr(ptr: Pointer, num_records_bytes: Any = None) -> Pointer:
    """A buffer-descriptor pointer over a global one.

    Args:
        ptr: Global pointer.
        num_records_bytes: Bytes from the pointer on that may be accessed; accesses past them read 0 and
            write nothing.  At most 2**32 - 1, which is also the default and means no check.

    Raises:
        TraceError: The pointer is not global, or a known extent is out of range.
    """
    b = Builder.current()
    if not isinstance(ptr, Pointer) or ptr.address_space != "global":
        space = ptr.address_space if isinstance(ptr, Pointer) else repr(ptr)
        raise TraceError(f"a buffer descriptor over a {space} pointer", b.location(), "pass a pointer to global memory")
    records = MAX_RECORDS if num_records_bytes is None else to_leaves(num_records_bytes)
    if isinstance(records, int):
        if not 0 <= records <= MAX_RECORDS:
            raise TraceError(
                f"a buffer of {records} bytes",
                b.location(),
                f"a descriptor reaches at most {MAX_RECORDS} bytes; move its base instead, per block",
            )
        value = b.constant(records, t.I64)
    else:
        wide = num_records_bytes if isinstance(num_records_bytes, Numeric) else from_leaves(records)
        value = Int64(Uint32(wide) if wide.width == 32 else wide).ir_value()
        if wide.width == 64:
            value = _clamp_records(value)
    return Pointer(b.make_buffer(ptr.ir_value(), value), ptr.dtype)


def _clamp_records(value: Value) -> Value:
    """Run-time extents are held inside [0, 2**32 - 1]: never masked to a small number."""
    b = Builder.current()
    low = b.binary("arith.maxsi", value, b.constant(0, t.I64))
    return b.binary("arith.minsi", low, b.constant(MAX_RECORDS, t.I64))


def make_buffer_tensor(tensor: Tensor, max_size: bool = False, *, num_records_bytes: Any = None) -> Tensor:
    """The tensor through a buffer descriptor that ends where the tensor does.

    Args:
        tensor: Tensor in global memory.
        max_size: Whether the descriptor reaches 2**32 - 1 bytes, which checks nothing.
        num_records_bytes: Bytes that may be accessed; by default ``cosize`` of the layout.

    Raises:
        TraceError: A known extent exceeds 2**32 - 1 bytes.
    """
    if not isinstance(tensor, Tensor):
        raise TraceError(
            f"make_buffer_tensor of a {type(tensor).__name__}",
            fix="give a tensor, or use make_buffer_ptr(pointer, bytes)",
        )
    if num_records_bytes is None and not max_size:
        count = L.cosize(tensor.raw_layout)
        if isinstance(count, int):
            num_records_bytes = -(-count * tensor.dtype.width // 8)
        else:
            num_records_bytes = (Int64(from_leaves(count)) * tensor.dtype.width + 7) // 8
    pointer = make_buffer_ptr(tensor.iter, num_records_bytes).ir_value()
    return Tensor(pointer, narrowed(tensor.raw_layout), tensor.dtype)


class Resource:
    """The descriptor itself, for the raw functions: its base pointer and the offset it had in elements."""

    __slots__ = ("ptr",)

    def __init__(self, ptr: Pointer) -> None:
        self.ptr = ptr


def get_buffer_rsrc(x: Any) -> Resource:
    """The descriptor of a buffer pointer or tensor.

    Raises:
        TraceError: It is no buffer.
    """
    ptr = x.iter if isinstance(x, Tensor) else x
    if not isinstance(ptr, Pointer) or ptr.address_space != "buffer_desc":
        raise TraceError(
            f"{x!r} is no buffer", Builder.current().location(), "use make_buffer_ptr or make_buffer_tensor"
        )
    return Resource(ptr)


def _at(rsrc: Any, offset: Any, dtype: type[Numeric]) -> Pointer:
    """The pointer ``offset`` bytes into a buffer, for elements of a type."""
    from ..numeric import Int8
    from ..pointer import recast_iter

    base = rsrc.ptr if isinstance(rsrc, Resource) else get_buffer_rsrc(rsrc).ptr
    return recast_iter(dtype, recast_iter(Int8, base) + offset)


def _policy(aux: Any, store: bool) -> int | str:
    if aux is None:
        return 0
    located(lambda: CachePolicy(aux).bits(Builder.current().target, store))
    return aux  # type: ignore[no-any-return]


def raw_ptr_buffer_load(
    res: Any, rsrc: Any, offset: Any = 0, soffset: Any = 0, aux: Any = None, *, count: int = 1
) -> Any:
    """A number of type ``res``, or a vector of ``count``, at a byte offset of a buffer.

    Args:
        res: Number type.
        rsrc: Buffer pointer, tensor or ``get_buffer_rsrc``.
        offset: Byte offset, per lane.
        soffset: Byte offset that is the same for all lanes.
        aux: Cache policy: names such as ``nt``, or bits.
        count: Elements.
    """
    from ..atoms import make_copy_atom
    from ..calls import copy_atom_call
    from ..tensor import make_rmem_tensor
    from . import BufferCopy

    atom = make_copy_atom(BufferCopy(res.width * count, _policy(aux, False)), res)
    fragment = make_rmem_tensor(count, res)
    source = _at(rsrc, offset, res).view(L.Layout(count, 1))
    copy_atom_call(atom.set_value("soffset", _elements(soffset, res)), source, fragment)
    return fragment.load() if count > 1 else fragment[0]


def raw_ptr_buffer_store(vdata: Any, rsrc: Any, offset: Any = 0, soffset: Any = 0, aux: Any = None) -> None:
    """Writes a number or vector at a byte offset of a buffer; see ``raw_ptr_buffer_load``."""
    from ..atoms import make_copy_atom
    from ..calls import copy_atom_call
    from ..tensor import make_rmem_tensor
    from . import BufferCopy

    count = vdata.count if isinstance(vdata, Vector) else 1
    atom = make_copy_atom(BufferCopy(vdata.dtype.width * count, _policy(aux, True)), vdata.dtype)
    fragment = make_rmem_tensor(count, vdata.dtype)
    fragment.store(vdata)
    target = _at(rsrc, offset, vdata.dtype).view(L.Layout(count, 1))
    copy_atom_call(atom.set_value("soffset", _elements(soffset, vdata.dtype)), fragment, target)


def _elements(size: Any, dtype: type[Numeric]) -> Any:
    """A byte offset in elements, exactly."""
    step = dtype.width // 8
    number = size if isinstance(size, int) else integer(size, "soffset")
    known = number if isinstance(number, int) else number.static_value()
    if known is not None and int(known) % step:
        raise TraceError(
            f"soffset of {known} bytes for elements of {step}", Builder.current().location(), "use whole elements"
        )
    return int(known) // step if known is not None else number // step
