"""Calls of kernels and host functions: parameters, what each argument is, and the signature of a call.

| argument | annotation | without annotation |
|---|---|---|
| tensor | ``fx.Tensor`` | any array |
| pointer | ``fx.Pointer`` | ``flyc.from_c_void_p(...)`` |
| run-time number | ``fx.Int32``, ``fx.Float32``, ... | an int (Int32), a float (Float32), a typed number |
| compile-time value | ``fx.Constexpr[T]`` | anything else, and every parameter with a default |
| stream | ``fx.Stream`` | ``fx.Stream(...)`` |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import LaunchError
from ..expr.host import Constexpr, Stream
from ..expr.numeric import Float32, Int32, Numeric
from ..expr.pointer import Pointer
from ..expr.specs import PointerSpec, ScalarSpec, TensorSpec, parse_spec
from ..expr.tensor import Tensor
from .binding_arrays import QUICK, as_tensor, readers
from .binding_tensor import TYPE_OF_NAME, PointerArg, TensorArg, from_spec
from .freeze import Unfreezable, freeze
from .unknown import Unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..expr.specs import Spec

_MISSING = object()
_SPECS = (TensorSpec, PointerSpec, ScalarSpec)
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


class Unkeyed(Exception):
    """A call that has no signature: one of its arguments may change unseen."""


class Parameters:
    """The parameters of a function.

    Attributes:
        name: Name of the function.
        names: Names of the parameters, the keyword-only ones last.
        kinds: Annotation of each: ``tensor``, ``pointer``, ``stream``, a ``Constexpr``, a number type, or ``none``.
        defaults: Default values by name.
        streams: Positions of the streams.
    """

    __slots__ = ("_tails", "count", "defaults", "kinds", "name", "names", "positional_count", "streams")

    def __init__(self, fn: Callable[..., Any], scope: dict[str, Any] | None = None) -> None:
        """Reads the parameters of a function.

        Args:
            fn: The function.
            scope: Local names of the place where it was defined, for annotations that are text.

        Raises:
            LaunchError: It takes ``*args`` or ``**kwargs``, or an annotation is wrong.
        """
        code = fn.__code__
        self.name = fn.__name__
        if code.co_flags & 0x0C:
            raise LaunchError(
                f"{self.name} takes *args or **kwargs",
                f"{code.co_filename}:{code.co_firstlineno}",
                "name every parameter; a tuple or dict of compile-time values is one parameter",
            )
        self.positional_count = code.co_argcount
        self.names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        self.count = len(self.names)
        values = fn.__defaults__ or ()
        self.defaults = dict(zip(self.names[code.co_argcount - len(values) :], values)) | (fn.__kwdefaults__ or {})
        self.kinds = [_kind(fn, n, scope or {}) for n in self.names]
        self.set_defaults({})
        self.streams = frozenset(i for i, k in enumerate(self.kinds) if k == "stream")

    def set_defaults(self, more: dict[str, Any]) -> None:
        """Adds default values."""
        self.defaults = {**self.defaults, **more}
        # Number of arguments given -> the defaults of the rest, where all of these have one.
        self._tails: dict[int, tuple[Any, ...]] = {self.count: ()}
        for i in range(self.count - 1, -1, -1):
            if self.names[i] not in self.defaults:
                break
            if i <= self.positional_count:
                self._tails[i] = tuple(self.defaults[n] for n in self.names[i:])
        if self.count != self.positional_count:
            del self._tails[self.count]

    def positional(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """One value per parameter, in order.

        Raises:
            LaunchError: Too many, unknown, twice given or missing arguments.
        """
        if not kwargs:
            tail = self._tails.get(len(args))
            if tail is not None:
                return (*args, *tail)
        if len(args) > self.positional_count:
            raise LaunchError(
                f"{self.name} takes {self.positional_count} positional arguments, got {len(args)}",
                fix=f"its parameters are: {', '.join(self.names) or 'none'}",
            )
        values = dict(zip(self.names, args))
        for name, value in kwargs.items():
            if name not in self.names:
                raise LaunchError(
                    f"{self.name} has no parameter {name!r}", fix=f"its parameters are: {', '.join(self.names)}"
                )
            if name in values:
                raise LaunchError(f"{self.name}: argument {name} is given twice", fix="give it once")
            values[name] = value
        for name in self.names:
            if name not in values:
                if name not in self.defaults:
                    raise LaunchError(f"{self.name}: argument {name} is missing", fix=f"pass {name}=...")
                values[name] = self.defaults[name]
        return tuple(values[n] for n in self.names)

    def classify(self, i: int, value: Any, spec: Spec | None = None) -> Any:
        """What argument ``i`` is: a tensor or pointer argument, ``Number``, ``Constant`` or ``StreamSlot``.

        Args:
            i: Number of the parameter.
            value: The argument.
            spec: What the kernel was compiled for, where that is fixed.

        Raises:
            LaunchError: It is not what the annotation says, or out of range.
        """
        name, kind = self.names[i], self.kinds[i]
        if spec is not None:
            return for_spec(name, value, spec)
        if isinstance(value, _SPECS):
            return _of_spec(name, value)
        if kind == "stream" or isinstance(value, (Stream, StreamSlot)):
            return _stream(name, kind, value)
        if isinstance(kind, Constexpr):
            return _constant(name, kind, value)
        if isinstance(kind, type):
            return _number(name, kind, value)
        array = as_tensor(value)
        if kind in ("tensor", "pointer") or array is not None:
            return _array(name, kind, value, array)
        if self.names[i] in self.defaults:
            return Constant(value)
        return _unannotated(name, value)

    def expects_constant(self, i: int) -> bool:
        """Whether argument ``i`` is compile-time by its annotation."""
        return isinstance(self.kinds[i], Constexpr)


def signature(values: Sequence[Any], streams: frozenset[int] = frozenset()) -> tuple[tuple[Any, ...], list[int]]:
    """The signature of a call, and the address of each argument (0 for what has none).

    Args:
        values: The arguments.
        streams: Positions of streams, which are no part of it.

    Raises:
        Unkeyed: An argument may change without its key changing.
    """
    key: list[Any] = []
    addresses: list[int] = []
    for i, value in enumerate(values):
        cls = value.__class__
        quick = QUICK.get(cls)
        address = 0
        if quick is not None:
            part, address = quick(value)
            key.append(part)
        elif i in streams or cls is Stream:
            pass
        elif cls is int:
            key += (cls, value)
        elif cls is float:
            key.append(value.hex())
        else:
            found = readers(cls)
            if found is None:
                key.append(_frozen(value))
            else:
                part, address = found[1](value)
                key.append(part)
        addresses.append(address)
    return tuple(key), addresses


def annotation_scope(fn: Any, names: dict[str, Any]) -> dict[str, Any]:
    """Of the local names around a function, those that its annotations use: ``v: dtype`` in a factory."""
    words = " ".join(note for note in fn.__annotations__.values() if isinstance(note, str))
    return {name: value for name, value in names.items() if name in words}


def _kind(fn: Any, name: str, local: dict[str, Any]) -> Any:
    """What the annotation of a parameter says."""
    note = fn.__annotations__.get(name)
    if isinstance(note, str):
        cells = zip(fn.__code__.co_freevars, fn.__closure__ or ())
        scope = dict(local)
        for free, cell in cells:
            try:
                scope[free] = cell.cell_contents
            except ValueError:
                continue
        try:
            note = eval(note, fn.__globals__, scope)
        except NameError:
            # A name that only exists for type checkers says nothing about the argument.
            return _NONE
        except Exception as e:
            code = fn.__code__
            raise LaunchError(
                f"annotation {name}: {note} cannot be read: {e}",
                f"{code.co_filename}:{code.co_firstlineno}",
                "use e.g. fx.Tensor, fx.Int32 or fx.Constexpr[int]",
            ) from None
    if note is Tensor or note is TensorArg:
        return "tensor"
    if note is Pointer or note is PointerArg:
        return "pointer"
    if note is Stream:
        return "stream"
    if note is Constexpr:
        return Constexpr()
    if isinstance(note, Constexpr) or (isinstance(note, type) and issubclass(note, Numeric)):
        return note
    return _NONE


def _frozen(value: Any) -> Any:
    try:
        return freeze(value)
    except Unfreezable as e:
        raise Unkeyed(str(e)) from None


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


def _scalar_spec(name: str, dtype: Any) -> ScalarSpec:
    spec = ScalarSpec(dtype)
    if spec.dtype.width > 64 or (spec.dtype.signed is None and spec.dtype.width < 16):
        raise LaunchError(
            f"argument {name}: a {spec.dtype} cannot be passed at run time",
            fix="pass it in a tensor, or its bits as Uint8" if spec.dtype.width < 16 else "pass two Int64",
        )
    return spec


def _number(name: str, dtype: Any, value: Any) -> Number:
    if isinstance(value, (str, type)):
        raise LaunchError(f"argument {name}: {value!r} is no number", fix=f"pass a {dtype}")
    spec = _scalar_spec(name, dtype)
    return Number(spec, check_number(name, spec.dtype, value))


def _unannotated(name: str, value: Any) -> Number | Constant:
    if isinstance(value, Numeric):
        return _number(name, type(value), value)
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
            return _number(name, found, value)
    return Constant(value)


def _constant(name: str, kind: Constexpr, value: Any) -> Constant:
    if isinstance(value, (TensorArg, PointerArg)) or readers(type(value)) is not None:
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
    return Constant(value)


def _array(name: str, kind: Any, value: Any, array: TensorArg | PointerArg | None) -> TensorArg | PointerArg:
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


def _stream(name: str, kind: Any, value: Any) -> StreamSlot:
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


def _of_spec(name: str, spec: Spec) -> Any:
    if isinstance(spec, ScalarSpec):
        return Number(_scalar_spec(name, spec.dtype), Unknown(name))
    return from_spec(spec, name)


def for_spec(name: str, value: Any, spec: Spec) -> Any:
    """An argument for a kernel that is compiled already.

    Raises:
        LaunchError: It does not fit the specification.
    """
    if isinstance(spec, ScalarSpec):
        return Number(spec, check_number(name, spec.dtype, value))
    array: Any = _array(name, "pointer" if isinstance(spec, PointerSpec) else "tensor", value, as_tensor(value))
    return array.fixed(spec, name)


def as_argument(params: Parameters, i: int, value: Any) -> Any:
    """An argument of ``flyc.compile``: a specification, its text, a number type, or an argument of a call."""
    kind = params.kinds[i]
    if not isinstance(kind, Constexpr):
        if isinstance(value, str):
            return parse_spec(value)
        if isinstance(value, type) and issubclass(value, Numeric):
            return ScalarSpec(value)
    return value


__all__ = ["Constant", "Number", "Parameters", "StreamSlot", "Unkeyed", "as_argument", "signature", "stream_handle"]
