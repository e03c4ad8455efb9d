"""Values as hashable keys, exact by type: ``1``, ``1.0`` and ``True`` differ, and so do ``0.0`` and ``-0.0``."""

from __future__ import annotations

import sys
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType

from .pure import is_value_class

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Unfreezable(Exception):
    """A value whose contents cannot be told apart by a key."""


_PLAIN = (str, bytes, type(None), type, ModuleType, CodeType, type(...), type(NotImplemented), complex)
_MAX_PARTS = 20_000
_MAX_ARRAY_BYTES = 1 << 16


class _Walk:
    """One walk over a value: what it is inside of, and how much it has seen."""

    __slots__ = ("count", "inside")

    def __init__(self) -> None:
        self.count = 0
        self.inside: set[int] = set()


def freeze(value: Any, walk: _Walk | None = None) -> Any:
    """A hashable stand-in for a value: two values with equal keys give the same code.

    Raises:
        Unfreezable: The value may change without its key changing.
    """
    cls = type(value)
    if cls is int or cls is bool:
        return (cls, value)
    if cls is float:
        return (cls, value.hex())
    if isinstance(value, _PLAIN):
        return value if cls in _PLAIN or isinstance(value, (type, ModuleType)) else _named(value, cls, walk or _Walk())
    if walk is None:
        walk = _Walk()
    walk.count += 1
    if id(value) in walk.inside or walk.count > _MAX_PARTS:
        why = "holds itself" if id(value) in walk.inside else f"has more than {_MAX_PARTS} parts"
        raise Unfreezable(f"a {cls.__name__} that {why}")
    walk.inside.add(id(value))
    try:
        return _composite(value, cls, walk)
    finally:
        walk.inside.discard(id(value))


def _named(value: Any, cls: type, walk: _Walk) -> Any:
    """A string or number of a class of its own."""
    base: Any = next(c for c in (str, bytes, complex) if isinstance(value, c))
    return (cls, base.__getitem__(value, slice(None)) if base is not complex else complex(value), *_extra(value, walk))


def _composite(value: Any, cls: type, walk: _Walk) -> Any:
    if cls in (tuple, list):
        return (cls, *(freeze(v, walk) for v in value))
    if cls in (set, frozenset):
        return (cls, frozenset(freeze(v, walk) for v in value))
    if isinstance(value, dict):
        return (cls, *((freeze(k, walk), freeze(v, walk)) for k, v in value.items()), *_extra(value, walk))
    if isinstance(value, (list, set, frozenset)):  # classes of their own
        base: Any = next(c for c in (list, set, frozenset) if isinstance(value, c))
        return (cls, freeze(base(value), walk), *_extra(value, walk))
    if is_partial(cls):
        return (cls, freeze(value.func, walk), freeze(value.args, walk), freeze(value.keywords, walk))
    if cls is FunctionType:
        return _function(value, walk)
    if cls is BuiltinFunctionType:
        owner = value.__self__
        if owner is None or isinstance(owner, (ModuleType, type)):
            return value
        return ("builtin", value.__name__, freeze(owner, walk))
    if cls is slice:
        return (cls, freeze((value.start, value.stop, value.step), walk))
    if cls is MethodType:
        return ("method", freeze(value.__self__, walk), _function(value.__func__, walk))
    return _object(value, cls, walk)


def _function(fn: Any, walk: _Walk) -> Any:
    """A function by its code and what it closes over; its globals are watched apart."""
    cells = []
    for cell in fn.__closure__ or ():
        try:
            content = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
        # A function that calls itself closes over itself.
        cells.append("self" if content is fn else freeze(content, walk))
    defaults = freeze((fn.__defaults__, fn.__kwdefaults__), walk)
    return ("function", fn.__code__, id(fn.__globals__), tuple(cells), defaults)


def _object(value: Any, cls: type, walk: _Walk) -> Any:
    module = cls.__module__
    if module.startswith("flyllvm.") and not hasattr(cls, "data_ptr"):
        return _ours(value, cls, walk)
    # By the class: an object may answer every name.
    if hasattr(cls, "__array_interface__") and hasattr(cls, "tobytes") and hasattr(cls, "strides"):
        return _array(value, cls, walk)
    if holds_data(value):
        raise Unfreezable(f"the data of a {cls.__name__}")
    if isinstance(value, (tuple, int, float, str)):  # named tuples, enumerations of numbers
        plain: Any = next(c for c in (tuple, int, float, str) if isinstance(value, c))
        return (cls, freeze(plain(value), walk), *_extra(value, walk))
    if module.partition(".")[0] in ("pathlib", "fractions", "uuid", "ipaddress"):
        if not is_value_class(cls):
            raise Unfreezable(f"a {cls.__name__}")
        return (cls, value)  # their slots are caches
    open_state = hasattr(value, "__dict__") or any(slots_of(c) for c in cls.__mro__)
    if open_state and not _hides_state(cls):
        return (cls, *_state(value, cls, walk))
    inner = getattr(value, "__wrapped__", None) if module == "functools" else None
    if type(inner) is FunctionType:  # a cache of functools
        count = value.cache_info() if hasattr(value, "cache_info") else ()
        return (cls, _function(inner, walk), *count[1:])
    if is_value_class(cls) and (_has_own_hash(cls) or (cls.__name__ in _CODE and is_own(value))):
        return (cls, value, *_extra(value, walk))
    raise Unfreezable(f"a {cls.__name__}")


def is_own(value: Any) -> bool:
    """Whether a function of NumPy is its own, and none that it made of an author's (`numpy.frompyfunc`)."""
    if type(value).__module__ != "numpy":
        return True
    return getattr(sys.modules.get("numpy"), value.__name__, None) is value


#: Classes of NumPy's functions, and of Python's descriptors: each is itself.
_CODE = ("ufunc", "_ArrayFunctionDispatcher", "wrapper_descriptor", "method_descriptor", "classmethod_descriptor")


def _flags(value: Any) -> int:
    return int(value.flags.num)


def _array(value: Any, cls: type, walk: _Walk) -> Any:
    if value.dtype.hasobject:
        raise Unfreezable("an array of Python objects")
    if value.nbytes > _MAX_ARRAY_BYTES:
        raise Unfreezable(f"an array of {value.nbytes} bytes")
    return (cls, str(value.dtype), value.shape, value.strides, _flags(value), value.tobytes(), *_extra(value, walk))


def is_partial(cls: type) -> bool:
    """Whether a class is `functools.partial`, without an import."""
    return cls.__name__ == "partial" and cls.__module__ == "functools"


def holds_data(value: Any) -> bool:
    """Whether a value is an array, whose data can change behind its attributes."""
    cls = type(value)
    return any(hasattr(cls, name) for name in ("data_ptr", "__dlpack__", "__array_interface__", "__array__"))


def _extra(value: Any, walk: _Walk) -> list[Any]:
    """Attributes of a container or number of a class of the author's."""
    return [(n, freeze(v, walk)) for n, v in getattr(value, "__dict__", {}).items()]


def _hides_state(cls: type) -> bool:
    """Whether objects of a class hold more than attributes, as those written in C do."""
    places = sum(len(slots_of(c)) for c in cls.__mro__) + 2  # attributes and weak references
    return cls.__itemsize__ > 0 or cls.__basicsize__ > object.__basicsize__ + places * object.__basicsize__ // 2


def _has_own_hash(cls: Any) -> bool:
    return cls.__hash__ not in (None, object.__hash__)


def slots_of(cls: type) -> tuple[str, ...]:
    slots = cls.__dict__.get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(n for n in names if n not in ("__dict__", "__weakref__"))


def _ours(value: Any, cls: type, walk: _Walk) -> Any:
    """Objects of the language: types of the IR and atoms print all that they are."""
    kind = getattr(value, "type", None)
    text = getattr(kind, "text", None)
    if isinstance(text, str):
        return (cls, text)
    text = getattr(value, "text", None)
    if isinstance(text, str):
        return (cls, text)
    number = getattr(value, "static_value", None)
    if number is not None:  # a number of the language
        known = number()
        if known is None:
            raise Unfreezable(f"a run-time {cls.__name__}")
        return (cls, freeze(known, walk))
    if _has_own_hash(cls):
        return (cls, value)
    fn = getattr(value, "fn", None)
    if type(fn) is FunctionType:  # a kernel or host function
        return (cls, id(value), _function(fn, walk))
    return (cls, *_state(value, cls, walk))


def _state(value: Any, cls: type, walk: _Walk) -> list[Any]:
    """Attributes of an object by name."""
    names = [s for c in cls.__mro__ for s in slots_of(c)]
    parts = [(n, freeze(getattr(value, n), walk)) for n in names if hasattr(value, n)]
    return parts + [(n, freeze(v, walk)) for n, v in getattr(value, "__dict__", {}).items()]
