"""Calls of kernels and host functions: parameters, what each argument is, and the signature of a call.

| argument | annotation | without annotation |
|---|---|---|
| tensor | ``fx.Tensor`` | any array |
| pointer | ``fx.Pointer`` | ``flyc.from_c_void_p(...)`` |
| run-time number | ``fx.Int32``, ``fx.Float32``, ... | an int (Int32), a float (Float32), a typed number |
| struct | its class, made with ``@fx.struct`` | a value of such a class |
| compile-time value | ``fx.Constexpr[T]`` | anything else, and every parameter with a default |
| stream | ``fx.Stream`` | ``fx.Stream(...)`` |
"""

from __future__ import annotations

from operator import is_

from ..errors import LaunchError
from ..expr.composite import Struct
from ..expr.host import Constexpr, Stream
from ..expr.numeric import Numeric
from ..expr.pointer import Pointer
from ..expr.specs import PointerSpec, ScalarSpec, StructSpec, TensorSpec, parse_spec
from ..expr.tensor import Tensor
from .binding_arrays import QUICK, as_tensor, readers_of
from .binding_pointer import PointerArg
from .binding_tensor import TensorArg
from .binding_values import (
    Constant,
    Fields,
    StreamSlot,
    array_argument,
    constant_argument,
    for_spec,
    free_argument,
    number_argument,
    of_spec,
    stream_argument,
)
from .freeze import Unfreezable, freeze

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ..expr.specs import Spec

_SPECS = (TensorSpec, PointerSpec, ScalarSpec, StructSpec)
_NONE = "none"


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

    __slots__ = (
        "_code",
        "_defaults",
        "_kwdefaults",
        "_tails",
        "count",
        "defaults",
        "kinds",
        "name",
        "names",
        "positional_count",
        "streams",
    )

    def __init__(self, fn: Callable[..., Any], scope: dict[str, Any] | None = None) -> None:
        """Reads the parameters of a function.

        Args:
            fn: The function.
            scope: Local names of the place where it was defined, for annotations that are text.

        Raises:
            LaunchError: It takes ``*args`` or ``**kwargs``, or an annotation is wrong.
        """
        code = self._code = fn.__code__
        self._defaults, self._kwdefaults = fn.__defaults__, list((fn.__kwdefaults__ or {}).values())
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

    def are_of(self, fn: Callable[..., Any]) -> bool:
        """Whether a function still has the code and the defaults that these were read from."""
        if fn.__code__ is not self._code or fn.__defaults__ is not self._defaults:
            return False
        now = fn.__kwdefaults__
        if not now:
            return not self._kwdefaults
        return len(now) == len(self._kwdefaults) and all(map(is_, now.values(), self._kwdefaults))

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
            return of_spec(name, value)
        if kind == "stream" or isinstance(value, (Stream, StreamSlot)):
            return stream_argument(name, kind, value)
        if isinstance(kind, Constexpr):
            return constant_argument(name, kind, value)
        if isinstance(value, Struct) or (isinstance(kind, type) and issubclass(kind, Struct)):
            return Fields(name, StructSpec(kind if isinstance(kind, type) else type(value)), value)
        if isinstance(kind, type):
            return number_argument(name, kind, value)
        array = as_tensor(value)
        if kind in ("tensor", "pointer") or array is not None:
            return array_argument(name, kind, value, array)
        if self.names[i] in self.defaults:
            return Constant(value)
        return free_argument(name, value)

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
            found = readers_of(value)
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
    if isinstance(note, Constexpr) or (isinstance(note, type) and issubclass(note, (Numeric, Struct))):
        return note
    return _NONE


def _frozen(value: Any) -> Any:
    try:
        return freeze(value)
    except (Unfreezable, RecursionError) as e:
        raise Unkeyed(str(e)) from None


def as_argument(params: Parameters, i: int, value: Any) -> Any:
    """An argument of ``flyc.compile``: a specification, its text, a number type, or an argument of a call."""
    kind = params.kinds[i]
    if not isinstance(kind, Constexpr):
        if isinstance(value, str):
            return parse_spec(value)
        if isinstance(value, type) and issubclass(value, Numeric):
            return ScalarSpec(value)
        if isinstance(value, type) and issubclass(value, Struct):
            return StructSpec(value)
    return value
