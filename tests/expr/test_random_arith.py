"""Random Int32 expressions: what folds, simplifies and uses ranges still equals wrapping 32-bit arithmetic."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flyllvm.expr as fx

from .kernels import elementwise

CONSTANTS = (0, 1, 2, 3, 4, 7, 8, 16, 31, 32, 64, 100, 255, -1, -3, -8, 1 << 20, (1 << 31) - 1, -(1 << 31), 1664525)
DIVISORS = (1, 2, 3, 4, 5, 8, 16, 32, 100, -3, -4, 7)
BINARY = ("+", "-", "*", "&", "|", "^", "max", "min")


def expression(rng: random.Random, depth: int) -> str:
    """A random expression of x, y, the thread index t and typed constants."""
    if depth == 0 or rng.random() < 0.15:
        return rng.choice(("x", "y", "t", f"c({rng.choice(CONSTANTS)})"))
    kind = rng.random()
    left = expression(rng, depth - 1)
    if kind < 0.1:
        return f"(-{left})"
    if kind < 0.3:
        return f"({left} {rng.choice(('<<', '>>'))} {rng.randrange(31)})"
    if kind < 0.5:
        return f"({left} {rng.choice(('//', '%'))} {rng.choice(DIVISORS)})"
    name, right = rng.choice(BINARY), expression(rng, depth - 1)
    return f"{name}({left}, {right})" if name in ("max", "min") else f"({left} {name} {right})"


class Wrapped:
    """Exact integers, cut to 32 bits after every step."""

    def __init__(self, value: Any) -> None:
        inner = value.value if isinstance(value, Wrapped) else np.asarray(value, object)
        self.value = (inner + 2**31) % 2**32 - 2**31

    def __neg__(self) -> Wrapped:
        return Wrapped(-self.value)


def _install(name: str, fn: Callable[[Any, Any], Any]) -> None:
    setattr(Wrapped, f"__{name}__", lambda a, b: Wrapped(fn(a.value, Wrapped(b).value)))


for _name, _fn in {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor, "floordiv": operator.floordiv, "mod": operator.mod, "lshift": operator.lshift,
    "rshift": operator.rshift,
}.items():  # fmt: skip
    _install(_name, _fn)


@pytest.mark.sim
@pytest.mark.parametrize("seed", range(6))
def test_random_expressions_wrap_like_32_bit_integers(seed: int) -> None:
    numbers = np.random.default_rng(seed)
    x = numbers.integers(-(2**31), 2**31, 64).astype(np.int32)
    x[:8] = 0, 1, -1, 2**31 - 1, -(2**31), 7, -8, 100
    y = numbers.integers(-1000, 1000, 64).astype(np.int32)
    names = {
        "c": Wrapped, "x": Wrapped(x), "y": Wrapped(y), "t": Wrapped(np.arange(64)),
        "max": lambda a, b: Wrapped(np.maximum(a.value, b.value)),
        "min": lambda a, b: Wrapped(np.minimum(a.value, b.value)),
    }  # fmt: skip
    rng = random.Random(seed)
    for _ in range(40):
        text = expression(rng, 4)
        want = np.broadcast_to(eval(text, dict(names)).value, (64,)).astype(np.int64).astype(np.int32)

        def traced(u: Any, v: Any, code: str = text) -> Any:
            return eval(code, {"c": fx.Int32, "x": u, "y": v, "t": fx.thread_idx.x, "max": fx.max, "min": fx.min})

        got = elementwise(traced, [x, y], fx.Int32, np.int32)
        np.testing.assert_array_equal(got, want, err_msg=text)
