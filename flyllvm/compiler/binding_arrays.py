"""Arrays of NumPy, torch and others as tensor arguments, without importing any of these libraries.

Per class of values there is a reader (value → ``TensorArg``) and a quick one (value → signature and address) that a
repeated call uses: the signature holds all that the layout, the type and the alignment of the argument are read from.
"""

from __future__ import annotations

from ..errors import LaunchError
from .binding_pointer import PointerArg
from .binding_tensor import TensorArg
from .binding_types import DEVICE, HOST, element_type, row_major

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Reader = Callable[[Any], TensorArg | PointerArg]
    Quick = Callable[[Any], tuple[Any, int]]

#: Class of a value -> (reader, quick reader); ``None`` for classes that are no arrays.
_READERS: dict[type, tuple[Reader, Quick] | None] = {}
#: Class of a value -> its quick reader; classes that were not seen yet, and those that are no arrays, are not in it.
QUICK: dict[type, Quick] = {}


def readers(cls: type) -> tuple[Reader, Quick] | None:
    """How values of a class are read as tensors, or ``None`` when they are none."""
    try:
        return _READERS[cls]
    except KeyError:
        found = _READERS[cls] = _find(cls)
        if found is not None:
            QUICK[cls] = found[1]
        return found


def readers_of(value: Any) -> tuple[Reader, Quick] | None:
    """How a value is read as a tensor: by its class, or by a protocol that this one object speaks."""
    found = readers(type(value))
    own = None if isinstance(value, type) else getattr(value, "__dict__", None)
    if found is None and own:
        for name, reader in _protocols():
            if name in own:
                return reader, _quick_of(reader)
    return found


def as_tensor(value: Any) -> TensorArg | PointerArg | None:
    """A value as a tensor or pointer argument, or ``None`` when it is neither.

    Raises:
        LaunchError: An array with an element type, layout or place that kernels cannot take.
    """
    found = readers_of(value)
    return None if found is None else found[0](value)


def _protocols() -> tuple[tuple[str, Reader], ...]:
    return (
        ("__cuda_array_interface__", _read_cuda_interface),
        ("__array_interface__", _read_interface),
        ("__dlpack__", _read_dlpack),
    )


def _find(cls: type) -> tuple[Reader, Quick] | None:
    if any(base.__name__ == "MaskedArray" for base in cls.__mro__):
        return _refuse_masked, _quick_of(_refuse_masked)
    if issubclass(cls, (TensorArg, PointerArg)):
        return (lambda v: v), (lambda v: (v.key(), v.address))
    if cls.__module__.split(".")[0] == "numpy" and not hasattr(cls, "ctypes"):
        return None  # scalars of NumPy have an array interface too
    if cls.__module__.startswith("flyllvm.runtime"):
        return (_read_device_array, _quick_device_array) if hasattr(cls, "data_ptr") else None
    if hasattr(cls, "ctypes") and hasattr(cls, "strides"):
        return _read_numpy, _quick_numpy
    if hasattr(cls, "data_ptr") and hasattr(cls, "stride"):
        return _read_torch, _quick_torch
    for name, reader in _protocols():
        if hasattr(cls, name):
            return reader, _quick_of(reader)
    return None


def _quick_of(reader: Reader) -> Quick:
    def quick(value: Any) -> tuple[Any, int]:
        made = reader(value)
        return made.key(), made.address

    return quick


def _refuse_masked(value: Any) -> TensorArg:
    raise LaunchError(f"{type(value).__name__}: a masked array", fix="pass the data and the mask as two arrays")


# --- NumPy, and ml_dtypes with it -------------------------------------------------------------------


def _quick_numpy(a: Any) -> tuple[Any, int]:
    address = a.ctypes.data
    return ("np", a.dtype, a.shape, a.strides, address & 15), address


def _read_numpy(a: Any) -> TensorArg:
    dtype = element_type(a.dtype.name if a.dtype.isnative else str(a.dtype), "array")
    return TensorArg(
        dtype,
        a.shape,
        _elements(a.strides, a.dtype.itemsize, a.shape),
        address=a.ctypes.data,
        where=HOST,
        owner=a,
        writable=bool(a.flags.writeable),
    )


def _elements(steps: tuple[int, ...], itemsize: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements from strides in bytes.

    Raises:
        LaunchError: They are negative or no whole elements.
    """
    used = [s if n > 1 else abs(s) // itemsize * itemsize for s, n in zip(steps, shape, strict=True)]
    if any(s % itemsize or s < 0 for s in used):
        raise LaunchError(
            f"strides of {steps} bytes with elements of {itemsize}",
            fix="pass an array with non-negative strides of whole elements",
        )
    return tuple(s // itemsize for s in used)


# --- arrays on the device ---------------------------------------------------------------------------


def _quick_device_array(a: Any) -> tuple[Any, int]:
    # An address of 0 is an empty array or a freed one; data_ptr() tells them apart.
    address = a.address or a.data_ptr()
    return ("hip", a.dtype, a.shape, address & 15, a.device_index), address


def _read_device_array(a: Any) -> TensorArg:
    dtype = element_type(str(a.dtype), "device array")
    return TensorArg(dtype, a.shape, row_major(a.shape), address=a.data_ptr(), where=DEVICE, owner=a)


# --- torch --------------------------------------------------------------------------------------------


def _quick_torch(t: Any) -> tuple[Any, int]:
    try:
        address = t.data_ptr()
        if not address:
            _read_torch(t)
        return ("torch", t.dtype, tuple(t.shape), t.stride(), address & 15, t.is_cuda, t.device), address
    except RuntimeError:
        _read_torch(t)  # says what is wrong
        raise


def _read_torch(t: Any) -> TensorArg:
    kind = getattr(t.device, "type", str(t.device))
    if not t.is_cuda and kind != "cpu":
        raise LaunchError(f"tensor on device {t.device}", fix="move it to host memory or to the GPU")
    if getattr(t, "is_conj", bool)() or getattr(t, "is_neg", bool)():
        raise LaunchError("tensor with a pending conjugation or negation", fix="pass t.resolve_conj().resolve_neg()")
    layout = str(getattr(t, "layout", "torch.strided"))
    if layout != "torch.strided":
        raise LaunchError(f"tensor of layout {layout}", fix="pass a dense tensor: t.to_dense()")
    if getattr(t, "is_nested", False):
        raise LaunchError("nested tensor", fix="pass its parts: t.unbind()")
    dtype = element_type(str(t.dtype), "tensor")
    try:
        shape, stride = tuple(int(n) for n in t.shape), tuple(int(s) for s in t.stride())
        address = t.data_ptr()
    except RuntimeError as e:
        raise LaunchError(
            f"tensor without memory of its own: {e}",
            fix="pass plain tensors: kernels run outside of torch.compile and of transformations such as vmap",
        ) from None
    if not address and 0 not in shape:
        raise LaunchError("tensor without data", fix="pass a tensor that has memory, no fake or freed one")
    return TensorArg(dtype, shape, stride, address=address, where=DEVICE if t.is_cuda else HOST, owner=t)


# --- the array protocols ------------------------------------------------------------------------------

_TYPE_CODES = {"f2": "float16", "f4": "float32", "f8": "float64"}
_TYPE_CODES.update({f"{c}{n // 8}": f"{name}{n}" for c, name in (("i", "int"), ("u", "uint")) for n in (8, 16, 32, 64)})


def _read_cuda_interface(value: Any) -> TensorArg:
    return _from_interface(value, value.__cuda_array_interface__, DEVICE)


def _read_interface(value: Any) -> TensorArg:
    return _from_interface(value, value.__array_interface__, HOST)


def _from_interface(value: Any, interface: Any, where: str) -> TensorArg:
    text = str(interface.get("typestr", "?"))
    name = _TYPE_CODES.get(text[1:]) if text[:1] in "<|=" else None
    dtype = element_type(name or f"type string {text!r}", type(value).__name__)
    data = interface.get("data")
    if not isinstance(data, tuple):
        raise LaunchError(f"{type(value).__name__}: its array interface has no address", fix="pass a NumPy array of it")
    if interface.get("mask") is not None:
        _refuse_masked(value)
    shape = tuple(int(n) for n in interface["shape"])
    steps = interface.get("strides")
    stride = row_major(shape) if steps is None else _elements(tuple(steps), dtype.width // 8, shape)
    return TensorArg(dtype, shape, stride, address=data[0], where=where, owner=value, writable=not data[1])


def _read_dlpack(value: Any) -> TensorArg:
    from .binding_dlpack import from_capsule

    return from_capsule(value.__dlpack__(), value)


def register_argument(cls: type, unwrap: Callable[[Any], Any]) -> None:
    """Lets objects of a class be passed as tensors or pointers.

    Args:
        cls: The class; subclasses are registered on their own.
        unwrap: Gives the array, ``TensorArg`` or ``PointerArg`` that an object stands for.  It is called on every
            launch, and must give another shape, type or address where the object changes.

    Raises:
        LaunchError: The class is taken as an array already.
    """
    if readers(cls) is not None:
        raise LaunchError(f"{cls.__name__} is an argument already", fix="pass its objects as they are")

    def unwrapped(value: Any) -> Any:
        inner = unwrap(value)
        found = readers(type(inner))
        if found is None or type(inner) is cls:
            raise LaunchError(
                f"{cls.__name__} unwraps to a {type(inner).__name__}", fix="register it with what gives an array"
            )
        return found, inner

    def reader(value: Any) -> Any:
        found, inner = unwrapped(value)
        return found[0](inner)

    def quick(value: Any) -> tuple[Any, int]:
        found, inner = unwrapped(value)
        return found[1](inner)  # type: ignore[no-any-return]

    _READERS[cls] = (reader, quick)
    QUICK[cls] = quick


# --- what authors call --------------------------------------------------------------------------------


def from_dlpack(array: Any, *, assumed_align: int | None = None) -> TensorArg:
    """An array as a tensor argument, to mark extents, strides or alignment before the call.

    Args:
        array: A NumPy or torch array, an object with ``__dlpack__`` or an array interface, or a DLPack capsule.
        assumed_align: Alignment of the first element that kernels may rely on, in bytes; by default that of the
            address, up to 16.

    Raises:
        LaunchError: It is no array that kernels can take, or not aligned so.
    """
    if type(array).__name__ == "PyCapsule":
        from .binding_dlpack import from_capsule

        made: TensorArg | PointerArg | None = from_capsule(array, array)
    else:
        made = as_tensor(array)
    if not isinstance(made, TensorArg):
        raise LaunchError(
            f"from_dlpack({array!r:.60})",
            fix="pass an array: NumPy, torch, or one with __dlpack__ or an array interface",
        )
    out = made.for_slot(None, "tensor")
    return out if assumed_align is None else out.assume_aligned(assumed_align)


def from_c_void_p(
    address: Any,
    dtype: Any,
    layout: Any = None,
    *,
    align: int | None = None,
    nbytes: int | None = None,
    where: str = "nowhere",
) -> TensorArg | PointerArg:
    """A raw address as an argument: a pointer, or a tensor when a layout is given.

    Args:
        address: An int or a ``ctypes.c_void_p``.
        dtype: Element type.
        layout: Static layout of ints in elements.
        align: Alignment that kernels may rely on, in bytes; by default that of the address, up to 16.
        nbytes: Bytes behind the address; the simulator needs it where there is no layout.
        where: ``host`` or ``device`` where it is known, so that a launch on the other is refused.

    Raises:
        LaunchError: No address, no static layout, or an address that is not aligned so.
    """
    from .. import layout as L
    from ..expr.layouts import raw_layout
    from ..expr.specs import ScalarSpec

    number = getattr(address, "value", address)
    number = 0 if number is None else number
    if type(number) is not int or number < 0:
        raise LaunchError(f"address {address!r}", fix="pass a non-negative int or a ctypes.c_void_p")
    if where not in ("host", "device", "nowhere"):
        raise LaunchError(f"where={where!r}", fix="use 'host', 'device' or 'nowhere'")
    kind = ScalarSpec(dtype).dtype
    if layout is None:
        return PointerArg(kind, number, align=align, span_bytes=nbytes, where=where)
    made = raw_layout(layout)
    if not isinstance(made, L.Layout) or not L.is_static(made):
        raise LaunchError(f"from_c_void_p with layout {layout}", fix="use a static layout of ints")
    shape = made.shape if isinstance(made.shape, tuple) else (made.shape,)
    stride = made.stride if isinstance(made.stride, tuple) else (made.stride,)
    out = TensorArg(kind, shape, stride, address=number, where=where)
    return out if align is None else out.assume_aligned(align)
