"""Random programs: the simulator agrees with the host CPU, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from flyllvm.sim import simulate
from tests.sim.both import LANES, Function, interesting, run_both
from tests.sim.kernels import gemm
from tests.sim.optimise import optimised
from tests.sim.programs import DECLARATIONS, Program

pytestmark = [pytest.mark.llvm, pytest.mark.sim]


def _functions(seeds: range) -> list[Function]:
    functions = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        inputs = [interesting(d, rng, (LANES,)) for d in (np.uint64, np.uint64, np.float32)]
        inputs[0][: LANES // 2] &= np.uint64(0xFF)
        body = Program(seed).text()
        functions.append(Function(f"p{seed}", "i64", ["i64", "i64", "float"], body, inputs, np.zeros(LANES, np.uint64)))
    return functions


def _wrong(functions: list[Function]) -> list[str]:
    results = run_both(functions, DECLARATIONS)
    return [
        f"seed {f.name}: lanes {np.flatnonzero(got != want)[:5]}\n{f.definition()}"
        for f, (got, want) in zip(functions, results, strict=True)
        if not np.array_equal(got, want)
    ]


def test_200_random_programs_agree_with_the_host() -> None:
    wrong = _wrong(_functions(range(200)))
    assert not wrong, "\n".join(wrong[:1])


@pytest.mark.slow
def test_random_programs_agree_with_the_host_in_numbers(full: bool) -> None:
    for start in range(1000, 6000 if full else 1400, 200):
        wrong = _wrong(_functions(range(start, start + 200)))
        assert not wrong, "\n".join(wrong[:1])


def test_programs_mean_the_same_after_the_optimiser_of_llvm() -> None:
    """The optimised text has the forms that LLVM itself prints: intrinsics, flags, folded control flow."""
    functions = _functions(range(500, 520))
    text = 'target triple = "amdgcn-amd-amdhsa"\n' + DECLARATIONS
    text += "".join(f.definition() + f.kernel() for f in functions)
    text += "declare i32 @llvm.amdgcn.workitem.id.x()\n"
    for module in (text, optimised(text)):
        for function in functions:
            out = np.zeros(LANES, np.uint64)
            simulate(module, f"kernel_{function.name}", grid=1, block=LANES, args=[*function.inputs, out])
            if module is text:
                function.out = out
            else:
                assert np.array_equal(out, function.out), function.name


def test_the_gemm_means_the_same_after_the_optimiser_of_llvm() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(-4, 5, (32, 48)).astype(np.float16), rng.integers(-4, 5, (16, 48)).astype(np.float16)
    c = np.zeros((32, 16), np.float32)
    text = optimised('target triple = "amdgcn-amd-amdhsa"\n' + gemm())
    simulate(text, grid=1, block=128, args=[a, b, c, 48], checks="all")
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)
