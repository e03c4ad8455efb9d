"""Inline assembly that holds no instruction runs; any other is refused by name."""

from __future__ import annotations

import numpy as np
import pytest

from flyllvm.sim import UnsupportedError, check_module, parse_module, simulate
from tests.sim.kernels import STORE_OUT, kernel

pytestmark = pytest.mark.sim


@pytest.mark.parametrize(
    "body",
    [
        'call void asm sideeffect "", "~{memory}"()\n%v = add i32 %t, 0',
        'call void asm sideeffect "s_nop 0\\0A s_setprio 1 ; now", ""()\n%v = add i32 %t, 0',
        'call void asm sideeffect "; keep $0", "v"(i32 %t)\n%v = add i32 %t, 0',
        '%v = call i32 asm sideeffect "", "=v,0"(i32 %t)',
        '%v = call i32 asm "; $0 $1", "=v,v,0"(i32 7, i32 %t)',
        '%a = insertelement <2 x i32> poison, i32 %t, i32 0\n%b = insertelement <2 x i32> %a, i32 1, i32 1\n'
        '%c = call <2 x i32> asm "", "=v,0,~{memory}"(<2 x i32> %b), !srcloc !0\n'
        "%v = extractelement <2 x i32> %c, i32 0",
    ],
)  # fmt: skip
def test_without_instructions_it_hands_values_on(body: str) -> None:
    text = kernel(body + "\n" + STORE_OUT.format(value="%v")) + "!0 = !{i64 1}\n"
    out = np.zeros(64, np.uint32)
    simulate(text, grid=1, block=64, args=[out])
    assert np.array_equal(out, np.arange(64))


@pytest.mark.parametrize(
    "call",
    [
        'call i32 asm "v_mov_b32 $0, $1", "=v,v"(i32 %t)',
        'call i32 asm "", "=v"()',
        'call i32 asm "", "=v,v"(i32 %t)',
        'call i32 asm "; s_nop\\0A s_barrier", "=v,0"(i32 %t)',
        'call i32 asm "s_nop\\0A s_barrier", "=v,0"(i32 %t)',
        'call i32 asm "s_nop 0 s_mov_b32 m0, 0", "=v,0"(i32 %t)',
    ],
)
def test_with_instructions_or_free_results_it_is_refused(call: str) -> None:
    text = kernel(f"%v = {call}\n" + STORE_OUT.format(value="%v"))
    with pytest.raises(UnsupportedError, match="inline assembly has no meaning"):
        simulate(text, grid=1, block=64, args=[np.zeros(64, np.uint32)])
    assert [u.name for u in check_module(parse_module(text))["k"]] == ["@inline asm"]
