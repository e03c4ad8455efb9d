"""Makes tests/fixtures/foreign/*.ll: LLVM IR that another compiler (Triton) emits for kernels written here.

Triton's wheel compiles for AMD processors without a GPU.  It is no dependency of the project: install it in an
environment of its own and run ``python scripts/make_foreign_ir.py`` there.  The kernels of this file are ours; what
lies in the fixtures is their compiled form.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import Any

os.environ["TRITON_ALWAYS_COMPILE"] = "1"
os.environ.setdefault("TRITON_CACHE_DIR", tempfile.mkdtemp())

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

OUT = Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "foreign"


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def softmax(x, out, stride, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < n
    value = tl.load(x + row * stride + at, mask=inside, other=-float("inf"))
    power = tl.exp(value - tl.max(value, 0))
    tl.store(out + row * stride + at, power / tl.sum(power, 0), mask=inside)


@triton.jit
def layer_norm(x, weight, bias, out, stride, n, eps, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < n
    value = tl.load(x + row * stride + at, mask=inside, other=0.0).to(tl.float32)
    centred = tl.where(inside, value - tl.sum(value, 0) / n, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(centred * centred, 0) / n + eps)
    w, b = tl.load(weight + at, mask=inside, other=0.0), tl.load(bias + at, mask=inside, other=0.0)
    tl.store(out + row * stride + at, centred * scale * w + b, mask=inside)


@triton.jit
def gemm(a, b, c, k, stride_a, stride_b, stride_c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, columns = tl.program_id(0) * M + tl.arange(0, M), tl.program_id(1) * N + tl.arange(0, N)
    steps = tl.arange(0, K)
    at_a = a + rows[:, None] * stride_a + steps[None, :]
    at_b = b + columns[None, :] * stride_b + steps[:, None]
    total = tl.zeros((M, N), tl.float32)
    for _ in range(0, k, K):
        total = tl.dot(tl.load(at_a), tl.load(at_b), total)
        at_a += K
        at_b += K
    tl.store(c + rows[:, None] * stride_c + columns[None, :], total.to(tl.float16))


@triton.jit
def quantise(x, out, scales, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * n + at, mask=at < n, other=0.0)
    scale = tl.maximum(tl.max(tl.abs(value), 0) / 448.0, 1e-10)
    tl.store(out + row * n + at, (value / scale).to(tl.float8e5), mask=at < n)
    tl.store(scales + row, scale)


def _signature(types: str, constants: dict[str, int], names: list[str]) -> dict[str, str]:
    return {**dict(zip(names, types.split(), strict=False)), **dict.fromkeys(constants, "constexpr")}


KERNELS: list[tuple[Any, str, dict[str, int]]] = [
    (add, "*fp32 *fp32 *fp32 i32", {"BLOCK": 1024}),
    (softmax, "*fp32 *fp32 i32 i32", {"BLOCK": 1024}),
    (layer_norm, "*fp16 *fp16 *fp16 *fp16 i32 i32 fp32", {"BLOCK": 512}),
    (quantise, "*fp32 *fp8e5 *fp32 i32", {"BLOCK": 512}),
    (gemm, "*fp16 *fp16 *fp16 i32 i32 i32 i32", {"M": 64, "N": 64, "K": 32}),
]


def main() -> None:
    """Writes all fixtures."""
    OUT.mkdir(parents=True, exist_ok=True)
    for arch in ("gfx942", "gfx950"):
        for kernel, types, constants in KERNELS:
            names = kernel.arg_names
            aligned = [i for i, t in enumerate(types.split()) if t.startswith("*") or kernel is gemm]
            source = ASTSource(
                kernel,
                _signature(types, constants, names),
                constexprs=constants,
                attrs={(i,): [["tt.divisibility", 16]] for i in aligned},
            )
            options = {"num_warps": 4, "num_stages": 2}
            compiled = triton.compile(source, target=GPUTarget("hip", arch, 64), options=options)
            text = re.sub(r'directory: "[^"]*"', 'directory: ""', compiled.asm["llir"])
            text = f"; {kernel.__name__} for {arch}, dynamic LDS: {compiled.metadata.shared} bytes\n{text}"
            (OUT / f"{kernel.__name__}-{arch}.ll").write_text(text, encoding="utf-8")
            print(f"{kernel.__name__}-{arch}.ll: {len(text)} bytes")


if __name__ == "__main__":
    main()
