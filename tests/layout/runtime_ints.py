"""A run-time integer that knows its value but tells nobody: checks the arithmetic that dynamic leaves become."""

from __future__ import annotations


class Num:
    """Fulfils the leaf protocol; comparing it or asking for its truth is an error, as it would be in a kernel."""

    def __init__(self, value, divisibility=1, width=32):
        assert value % divisibility == 0
        self.value = int(value)
        self.divisibility = divisibility
        self.width = width

    def static_value(self):
        return None

    def same_as(self, other):
        return self is other

    def __bool__(self):
        raise AssertionError("asked for the truth of a run-time integer")

    def __eq__(self, other):
        raise AssertionError("compared a run-time integer")

    __lt__ = __gt__ = __le__ = __ge__ = __ne__ = __eq__
    __hash__ = object.__hash__


def value_of(x):
    """The value of an int, a run-time integer, or a tuple of them."""
    if isinstance(x, tuple):
        return tuple(value_of(v) for v in x)
    return x.value if isinstance(x, Num) else x


def _binary(fn):
    return lambda self, other: Num(fn(self.value, value_of(other)))


def _reflected(fn):
    return lambda self, other: Num(fn(value_of(other), self.value))


for _name, _fn in {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "and": lambda a, b: a & b,
    "xor": lambda a, b: a ^ b,
    "lshift": lambda a, b: a << b,
    "rshift": lambda a, b: a >> b,
}.items():
    setattr(Num, f"__{_name}__", _binary(_fn))
    setattr(Num, f"__r{_name}__", _reflected(_fn))
Num.ceil_div_ = _binary(lambda a, b: -(-a // b))
Num.rceil_div_ = _reflected(lambda a, b: -(-a // b))
Num.min_ = _binary(min)
Num.max_ = _binary(max)
Num.less_ = _binary(lambda a, b: int(a < b))
Num.greater_ = _binary(lambda a, b: int(a > b))
Num.equal_ = _binary(lambda a, b: int(a == b))
Num.and_ = _binary(lambda a, b: a & b)
