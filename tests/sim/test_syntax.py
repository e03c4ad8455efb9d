"""Every form of instructions, constants, attributes and metadata that LLVM 19 to 22 print: read, and run right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flyllvm.codegen.client import compile_llvm
from flyllvm.errors import FlyError
from flyllvm.sim import simulate
from flyllvm.target import Target

pytestmark = pytest.mark.sim


def _cases() -> list[Any]:
    text = (Path(__file__).parents[1] / "fixtures" / "syntax.ll").read_text(encoding="utf-8")
    found = []
    for part in text.split("\n;;; ")[1:]:
        head, _, body = part.partition("\n")
        name, want = head.split(" ;; ")
        found.append(pytest.param(body, None if want == "runs" else json.loads(want), id=name))
    return found


@pytest.mark.parametrize(("text", "want"), _cases())
def test_a_form_of_the_text_is_read_and_runs(text: str, want: Any) -> None:
    out = np.zeros(64, np.uint32)
    args = [out, None] if "ptr %f)" in text else [out]
    if isinstance(want, str):
        with pytest.raises(FlyError) as caught:
            simulate(text, "k", grid=1, block=64, args=args)
        assert want in str(caught.value)
        return
    simulate(text, "k", grid=1, block=64, args=args)
    if want is not None:
        assert np.array_equal(out, np.broadcast_to(np.asarray(want, np.uint32), 64))


def test_vector_calls_move_elements() -> None:
    text = """
define amdgpu_kernel void @k(ptr addrspace(1) %out) {
  %a = load <4 x i32>, ptr addrspace(1) %out
  %x = call <2 x i32> @llvm.vector.extract.v2i32.v4i32(<4 x i32> %a, i64 2)
  %y = call <4 x i32> @llvm.vector.insert.v4i32.v2i32(<4 x i32> %a, <2 x i32> %x, i64 0)
  %z = call <4 x i32> @llvm.vector.reverse.v4i32(<4 x i32> %y)
  %s = call <4 x i32> @llvm.vector.splice.v4i32(<4 x i32> %z, <4 x i32> %a, i32 -1)
  %d = call { <2 x i32>, <2 x i32> } @llvm.vector.deinterleave2.v4i32(<4 x i32> %s)
  %e = extractvalue { <2 x i32>, <2 x i32> } %d, 1
  %f = extractvalue { <2 x i32>, <2 x i32> } %d, 0
  %g = call <4 x i32> @llvm.vector.interleave2.v4i32(<2 x i32> %e, <2 x i32> %f)
  store <4 x i32> %g, ptr addrspace(1) %out
  ret void
}"""
    data = np.array([1, 2, 3, 4], np.uint32)
    simulate(text, grid=1, block=1, args=[data])
    # 3 4 3 4, reversed 4 3 4 3; its last and the first three of 1 2 3 4: 3 1 2 3; odd and even places interleaved
    assert list(data) == [1, 3, 3, 2]


def test_calls_with_two_results() -> None:
    text = """
define amdgpu_kernel void @k(ptr addrspace(1) %out) {
  %a = load float, ptr addrspace(1) %out
  %m = call { float, float } @llvm.modf.f32(float %a)
  %p = extractvalue { float, float } %m, 0
  %q = extractvalue { float, float } %m, 1
  %s = call { float, float } @llvm.sincos.f32(float %a)
  %u = extractvalue { float, float } %s, 0
  %v = extractvalue { float, float } %s, 1
  %r = call i32 @llvm.lround.i32.f32(float %a)
  %w = sitofp i32 %r to float
  %b0 = insertelement <4 x float> poison, float %p, i32 0
  %b1 = insertelement <4 x float> %b0, float %q, i32 1
  %b2 = insertelement <4 x float> %b1, float %u, i32 2
  %b3 = insertelement <4 x float> %b2, float %v, i32 3
  store <4 x float> %b3, ptr addrspace(1) %out, align 4
  %o = getelementptr float, ptr addrspace(1) %out, i32 4
  store float %w, ptr addrspace(1) %o
  ret void
}"""
    data = np.zeros(5, np.float32)
    data[0] = -2.5
    simulate(text, grid=1, block=1, args=[data])
    assert list(data[:2]) == [-0.5, -2] and data[4] == -3
    assert np.allclose(data[2:4], [np.sin(-2.5), np.cos(-2.5)], rtol=1e-6)


@pytest.mark.llvm
def test_llvm_reads_what_is_not_refused() -> None:
    """Its verifier accepts the fixture, so that the forms in it are real ones."""
    target = Target.parse("gfx942")
    for case in _cases():
        text, want = case.values
        if not isinstance(want, str):
            compile_llvm(text, target, passes="none", want=("opt",), check=False)
