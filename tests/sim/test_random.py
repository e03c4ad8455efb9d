"""Random programs: the simulator agrees with the host CPU, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from tests.sim.both import LANES, Function, interesting, run_both
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
