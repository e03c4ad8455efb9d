"""What one argument is, by its annotation and its value, with all checks."""

from __future__ import annotations

from ..errors import LaunchError
from ..expr.host import Constexpr, Stream
from ..expr.numeric import Float32, Int32, Numeric
from ..expr.specs import PointerSpec, ScalarSpec, StructSpec
from .binding_arrays import as_tensor, readers_of
from .binding_pointer import PointerArg, from_spec
from .binding_tensor import TensorArg
from .binding_types import TYPE_OF_NAME
from .unknown import Unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..expr.specs import Spec

_NONE = "none"


class Number:
    """A run-time scalar argument.

    Attributes:
        spec: Its type.
        value: The Python number, or an ``Unknown``.
    """

    __slots__ = ("spec", "value")

    def __init__(self, spec: ScalarSpec, value: Any) -> None:
        self.spec, self.value = spec, value


class Fields:
    """A struct argument.

    Attributes:
        spec: Its fields.
        value: The struct, as host code sees it.
        values: The Python number of each leaf.
    """

    __slots__ = ("spec", "value", "values")

    def __init__(self, name: str, spec: StructSpec, value: Any) -> None:
        """Takes a struct apart.

        Raises:
            LaunchError: It is another struct, or one of its numbers is not known.
        """
        if not isinstance(value, spec.kind):
            raise LaunchError(
                f"argument {name}: {type(value).__name__} for {spec}", fix=f"pass a {spec.kind.__name__}(...)"
            )
        self.spec, self.value = spec, value
        self.values: list[Any] = []
        for path, leaf in spec.leaves():
            number = value
            for field in path.split("."):
                number = getattr(number, field)
            self.values.append(check_number(f"{name}.{path}", scalar_spec(name, leaf.dtype).dtype, number))


class Constant:
    """A compile-time argument."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class StreamSlot:
    """The stream that comes in by a parameter."""

    __slots__ = ("slot", "value")

    def __init__(self, slot: int | None, value: Any) -> None:
        self.slot, self.value = slot, value


# --- one argument ---------------------------------------------------------------------------------------


def check_number(name: str, dtype: type[Numeric], value: Any) -> Any:
    """A Python number for a scalar of a type.

    Raises:
        LaunchError: It is no number, or out of the range of the type.
    """
    if isinstance(value, Unknown):
        return value
    if isinstance(value, Numeric):
        value = value.static_value()
    elif hasattr(value, "item") and getattr(value, "shape", ()) == ():
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise LaunchError(f"argument {name}: {value!r:.60} is no number", fix=f"pass a {dtype}")
    if dtype.signed is None:
        return _check_float(name, dtype, value)
    if not isinstance(value, int):
        raise LaunchError(f"argument {name}: {value!r} for {dtype}", fix="pass an int")
    low = -(1 << (dtype.width - 1)) if dtype.signed else 0
    high = low + (1 << dtype.width) - 1
    if not low <= value <= high:
        raise LaunchError(f"argument {name}: {value} does not fit {dtype}", fix=f"pass a value from {low} to {high}")
    return value


#: Largest finite numbers of the float types, after rounding.
_LARGEST = {"Float16": 65520.0, "BFloat16": 3.396e38, "Float32": 3.4028235677973366e38}


def _check_float(name: str, dtype: type[Numeric], value: int | float) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    limit = _LARGEST.get(dtype.__name__, float("inf"))
    if (abs(number) >= limit and number - number == 0) or (isinstance(value, int) and abs(number) == float("inf")):
        raise LaunchError(
            f"argument {name}: {value} is too large for {dtype}",
            fix="pass a smaller number, or float('inf') on purpose",
        )
    return number


def scalar_spec(name: str, dtype: Any) -> ScalarSpec:
    spec = ScalarSpec(dtype)
    if spec.dtype.width > 64 or (spec.dtype.signed is None and spec.dtype.width < 16):
        raise LaunchError(
            f"argument {name}: a {spec.dtype} cannot be passed at run time",
            fix="pass it in a tensor, or its bits as Uint8" if spec.dtype.width < 16 else "pass two Int64",
        )
    return spec


def number_argument(name: str, dtype: Any, value: Any) -> Number:
    """A run-time number of a type.

    Raises:
        LaunchError: It is no number, out of range, or of a type that cannot be passed.
    """
    if isinstance(value, (str, type)):
        raise LaunchError(f"argument {name}: {value!r} is no number", fix=f"pass a {dtype}")
    spec = scalar_spec(name, dtype)
    return Number(spec, check_number(name, spec.dtype, value))


def free_argument(name: str, value: Any) -> Number | Constant:
    """An argument without annotation that is no array: a number, or a compile-time value.

    Raises:
        LaunchError: An int that is no Int32.
    """
    if isinstance(value, Numeric):
        return number_argument(name, type(value), value)
    cls = type(value)
    if cls is int or isinstance(value, Unknown):
        if isinstance(value, int) and not -(1 << 31) <= value < 1 << 31:
            raise LaunchError(
                f"argument {name}: {value} does not fit Int32",
                fix=f"annotate the parameter ({name}: fx.Int64), or pass fx.Int64({value})",
            )
        return Number(ScalarSpec(Int32), value)
    if cls is float:
        return Number(ScalarSpec(Float32), _check_float(name, Float32, value))
    dtype = getattr(value, "dtype", None)
    if dtype is not None and getattr(value, "shape", None) == ():  # a typed number of NumPy
        found = TYPE_OF_NAME.get(str(dtype))
        if found is not None:
            return number_argument(name, found, value)
    return Constant(value)


def constant_argument(name: str, kind: Constexpr, value: Any) -> Constant:
    """A compile-time value.

    Raises:
        LaunchError: It is an array, or of another type than the annotation says.
    """
    if isinstance(value, (TensorArg, PointerArg)) or readers_of(value) is not None:
        raise LaunchError(
            f"argument {name}: an array for {kind}", fix="pass it as a tensor: its data is not known while compiling"
        )
    if isinstance(value, Unknown):
        raise LaunchError(f"argument {name}: {value!r} for {kind}", fix="compile with a known number")
    want = kind.type
    if want in (int, float, str, bool):
        if hasattr(value, "item") and getattr(value, "shape", None) == ():
            value = value.item()
        ok = isinstance(value, want) and (want is bool or not isinstance(value, bool))
        if not ok and not (want is float and type(value) is int):
            raise LaunchError(f"argument {name}: {value!r:.60} for {kind}", fix=f"pass a Python {want.__name__}")
    elif isinstance(want, type) and issubclass(want, Numeric):
        value = check_number(name, want, value)
    elif want is not None and not _is_a(value, want):
        raise LaunchError(f"argument {name}: {value!r:.60} for {kind}", fix=f"pass what {kind} says")
    return Constant(value)


def _is_a(value: Any, want: Any) -> bool:
    """Whether a value is of a type, as annotations write types; what is no type of values is taken for any."""
    if want is None:
        return value is None
    if want is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if isinstance(want, type) and getattr(want, "__origin__", None) is None:
        return isinstance(value, want) and (want is not int or not isinstance(value, bool))
    import types
    import typing

    origin: Any = typing.get_origin(want)
    args = typing.get_args(want)
    if origin in (typing.Union, types.UnionType):
        return any(_is_a(value, None if a is types.NoneType else a) for a in args)
    if origin is typing.Literal:
        return any(type(value) is type(a) and value == a for a in args)
    if not isinstance(origin, type):
        return True
    if not isinstance(value, origin):
        return False
    held: Any = value
    if origin is tuple and args and args[-1] is not Ellipsis:
        return len(held) == len(args) and all(_is_a(v, a) for v, a in zip(held, args))
    if origin in (tuple, list, set, frozenset) and args:
        return all(_is_a(v, args[0]) for v in held)
    if origin is dict and len(args) == 2:
        return all(_is_a(k, args[0]) and _is_a(v, args[1]) for k, v in held.items())
    return True


def array_argument(name: str, kind: Any, value: Any, array: TensorArg | PointerArg | None) -> TensorArg | PointerArg:
    """A tensor or pointer.

    Raises:
        LaunchError: The value is none, or a pointer where a tensor is wanted.
    """
    if array is None:
        if kind == "pointer":
            raise LaunchError(
                f"argument {name}: {type(value).__name__} {value!r:.60} for fx.Pointer",
                fix="pass an array, or flyc.from_c_void_p(address, dtype)",
            )
        raise LaunchError(
            f"argument {name}: {type(value).__name__} {value!r:.60} is no array",
            fix="pass an array (NumPy, torch, a device array, or one with __dlpack__ or an array interface)",
        )
    if kind == "pointer" and isinstance(array, TensorArg):
        span = None if array.where == "nowhere" else array.span_bytes
        made = PointerArg(array.dtype, array.address, span_bytes=span, where=array.where, owner=array.owner)
        made.slot, made.writable, made.offset_bytes = array.slot, array.writable, array.offset_bytes
        array = made
    if kind == "tensor" and isinstance(array, PointerArg):
        raise LaunchError(
            f"argument {name}: a pointer for fx.Tensor", fix="give flyc.from_c_void_p(...) a layout, or use fx.Pointer"
        )
    return array.for_slot(array.slot, name)


def stream_argument(name: str, kind: Any, value: Any) -> StreamSlot:
    """A stream.

    Raises:
        LaunchError: The value is none, or the parameter is for something else.
    """
    if isinstance(value, StreamSlot):
        return value
    if kind not in ("stream", _NONE):
        raise LaunchError(
            f"argument {name}: a stream for {kind}",
            fix="kernels get theirs by launch(stream=...); parameters of host functions are annotated fx.Stream",
        )
    stream_handle(value)
    return StreamSlot(None, value)


def stream_handle(value: Any) -> Any:
    """What the runtime takes as a stream: ``None``, a handle, or a ``runtime.Stream``.

    Raises:
        LaunchError: It is no stream.
    """
    if isinstance(value, (Stream, StreamSlot)):
        value = value.value
        if isinstance(value, Stream):
            value = value.value
    if value is None or type(value) is int or hasattr(value, "live"):
        return value
    for attribute in ("cuda_stream", "ptr", "handle", "value"):
        handle = getattr(value, attribute, None)
        if type(handle) is int:
            return handle
    raise LaunchError(f"{value!r:.60} is no stream", fix="pass fx.Stream(...), a runtime.Stream, or a handle as int")


def of_spec(name: str, spec: Spec) -> Any:
    """An argument that is only a specification.

    Raises:
        LaunchError: A struct: host code would have to know its fields.
    """
    if isinstance(spec, StructSpec):
        raise LaunchError(f"argument {name}: {spec} without a value", fix=f"pass an example: {spec.kind.__name__}(...)")
    if isinstance(spec, ScalarSpec):
        return Number(scalar_spec(name, spec.dtype), Unknown(name))
    return from_spec(spec, name)


def for_spec(name: str, value: Any, spec: Spec) -> Any:
    """An argument for a kernel that is compiled already.

    Raises:
        LaunchError: It does not fit the specification.
    """
    if isinstance(spec, StructSpec):
        return Fields(name, spec, value)
    if isinstance(spec, ScalarSpec):
        return Number(spec, check_number(name, spec.dtype, value))
    array: Any = array_argument(name, "pointer" if isinstance(spec, PointerSpec) else "tensor", value, as_tensor(value))
    return array.fixed(spec, name)
