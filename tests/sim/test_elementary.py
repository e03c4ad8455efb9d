"""The shared elementary functions: accuracy, special values, and the same bits on both engines."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, getcontext

import numpy as np
import pytest

from flyllvm.sim import elementary
from tests.sim.both import interesting
from tests.sim.engines import both

EXACT: dict[str, Callable[[Decimal], Decimal]] = {
    "exp2": lambda x: Decimal(2) ** x,
    "exp": lambda x: x.exp(),
    "exp10": lambda x: Decimal(10) ** x,
    "log2": lambda x: x.ln() / Decimal(2).ln(),
    "log": lambda x: x.ln(),
    "log10": lambda x: x.log10(),
}


@pytest.mark.parametrize("name", list(EXACT))
def test_a_function_is_within_its_bound_of_the_exact_value(name: str) -> None:
    getcontext().prec = 40
    rng = np.random.default_rng(0)
    if name.startswith("exp"):
        inputs = rng.uniform(-40, 40, 300)
    else:
        inputs = np.concatenate([np.exp(rng.uniform(-90, 90, 200)), 1 + rng.normal(size=100) * 0.01])
    with np.errstate(all="raise"):
        got = elementary.FUNCTIONS[name](elementary.NUMPY, inputs)
    for x, y in zip(inputs, got, strict=True):
        want = EXACT[name](Decimal(float(x)))
        assert abs(Decimal(float(y)) - want) <= abs(want) * Decimal(2) ** -50, (name, x)


def test_sines_of_turns_are_exact_at_the_quarters_and_near_elsewhere() -> None:
    turns = np.arange(-8, 9) / 4
    assert list(elementary.sine(elementary.NUMPY, turns)) == [[0, 1, 0, -1][i % 4] for i in range(-8, 9)]
    assert list(elementary.cosine(elementary.NUMPY, turns)) == [[1, 0, -1, 0][i % 4] for i in range(-8, 9)]
    x = np.random.default_rng(0).uniform(-3, 3, 1000)
    for fn, want in ((elementary.sine, math.sin), (elementary.cosine, math.cos)):
        got = fn(elementary.NUMPY, x)
        assert np.abs(got - [want(2 * math.pi * math.remainder(t, 1.0)) for t in x]).max() < 2e-15


def test_special_values() -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 1.0])
    with np.errstate(all="ignore"):
        powers = [elementary.FUNCTIONS[n](elementary.NUMPY, x).astype(np.float32) for n in ("exp2", "exp", "exp10")]
        logs = [elementary.FUNCTIONS[n](elementary.NUMPY, x) for n in ("log2", "log", "log10")]
    for row in powers:
        assert list(row[:4]) == [1, 1, np.inf, 0] and np.isnan(row[4])
    for row in logs:
        assert list(row[:3]) == [-np.inf, -np.inf, np.inf] and np.isnan(row[3:6]).all() and row[6] == 0


@pytest.mark.llvm
@pytest.mark.sim
@pytest.mark.parametrize("t", ["float", "half"])
def test_both_engines_give_the_same_bits(t: str) -> None:
    dtype = {"float": np.float32, "half": np.float16}[t]
    suffix = {"float": "f32", "half": "f16"}[t]
    lines, outputs = [], []
    for i, name in enumerate(elementary.FUNCTIONS):
        lines.append(f"  %r{i} = call {t} @llvm.{name}.{suffix}({t} %v)")
        lines.append(f"  %q{i} = getelementptr {t}, ptr addrspace(1) %o{i}, i32 %t")
        lines.append(f"  store {t} %r{i}, ptr addrspace(1) %q{i}, align {dtype().itemsize}")
        outputs.append(np.zeros(1024, dtype))
    params = ", ".join(["ptr addrspace(1) %in", *(f"ptr addrspace(1) %o{i}" for i in range(len(outputs)))])
    text = (
        f"define amdgpu_kernel void @k({params}) {{\n  %t = call i32 @llvm.amdgcn.workitem.id.x()\n"
        f"  %p = getelementptr {t}, ptr addrspace(1) %in, i32 %t\n"
        f"  %v = load {t}, ptr addrspace(1) %p, align {dtype().itemsize}\n" + "\n".join(lines) + "\n  ret void\n}\n"
    )
    data = interesting(dtype, np.random.default_rng(1), (1024,))
    both(text, grid=1, block=1024, args=[data, *outputs])


@pytest.mark.llvm
@pytest.mark.sim
@pytest.mark.parametrize("t", ["float", "half"])
def test_ldexp_gives_the_same_bits_on_both_engines(t: str) -> None:
    dtype, suffix = (np.float32, "f32") if t == "float" else (np.float16, "f16")
    rng = np.random.default_rng(2)
    data = interesting(dtype, rng, (1024,))
    powers = np.where(rng.random(1024) < 0.8, rng.integers(-200, 200, 1024), interesting(np.int32, rng, (1024,)))
    text = f"""\
define amdgpu_kernel void @k(ptr addrspace(1) %in, ptr addrspace(1) %e, ptr addrspace(1) %out) {{
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %p = getelementptr {t}, ptr addrspace(1) %in, i32 %t
  %q = getelementptr i32, ptr addrspace(1) %e, i32 %t
  %o = getelementptr {t}, ptr addrspace(1) %out, i32 %t
  %v = load {t}, ptr addrspace(1) %p, align 2
  %n = load i32, ptr addrspace(1) %q, align 4
  %r = call {t} @llvm.ldexp.{suffix}.i32({t} %v, i32 %n)
  store {t} %r, ptr addrspace(1) %o, align 2
  ret void
}}
"""
    both(text, grid=1, block=1024, args=[data, powers.astype(np.int32), np.zeros(1024, dtype)])
