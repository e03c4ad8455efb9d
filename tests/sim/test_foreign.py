"""Kernels as other compilers emit them (tests/fixtures/foreign, made by scripts/make_foreign_*.py)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from flyllvm.errors import SimError
from flyllvm.sim import check_module, parse_module, simulate

pytestmark = pytest.mark.sim
FOLDER = Path(__file__).parents[1] / "fixtures" / "foreign"
TARGETS = pytest.mark.parametrize("target", ["gfx942", "gfx950"])
CHECKS = pytest.mark.parametrize("checks", ["none", "default", "all"])


def _text(name: str, target: str) -> str:
    return (FOLDER / f"{name}-{target}.ll").read_text(encoding="utf-8")


def _run(name: str, target: str, grid: Any, args: list[Any], text: str | None = None, checks: str = "default") -> None:
    text = text or _text(name, target)
    shared = re.search(r"dynamic LDS: (\d+) bytes", text)
    kernel = parse_module(text).functions[name]
    padded = [*args, *[None] * (len(kernel.params) - len(args))]  # scratch pointers that the kernels do not use
    simulate(text, name, grid=grid, block=256, args=padded, target=target, checks=checks,
             dynamic_lds_bytes=int(shared[1]) if shared else 0)  # fmt: skip


@TARGETS
@CHECKS
def test_masked_vector_add(target: str, checks: str) -> None:
    rng = np.random.default_rng(0)
    x, y, out = (rng.normal(size=5000).astype(np.float32) for _ in range(3))
    _run("add", target, 5, [x, y, out, 5000], checks=checks)
    assert np.array_equal(out, x + y)


@TARGETS
@CHECKS
def test_softmax_of_rows(target: str, checks: str) -> None:
    x = np.random.default_rng(1).normal(size=(7, 1000)).astype(np.float32)
    out = np.zeros_like(x)
    _run("softmax", target, 7, [x, out, 1000, 1000], checks=checks)
    power = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    assert np.abs(out - power / power.sum(1, keepdims=True)).max() < 1e-7


@TARGETS
@CHECKS
def test_layer_norm_of_rows(target: str, checks: str) -> None:
    rng = np.random.default_rng(2)
    x, w, b = (rng.normal(size=s).astype(np.float16) for s in ((6, 500), 500, 500))
    out = np.zeros_like(x)
    _run("layer_norm", target, 6, [x, w, b, out, 500, 500, 1e-5], checks=checks)
    wide = x.astype(np.float64)
    want = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5) * w + b
    assert np.abs(out - want).max() < 2**-9 * (1 + np.abs(want).max())


@TARGETS
@CHECKS
def test_rows_scaled_to_8_bit_floats(target: str, checks: str) -> None:
    """Literals such as ``+nan(0x3F)``, and MODE.FP16_OVFL; two elements a thread leave half of a register undef."""
    x = np.random.default_rng(4).normal(size=(5, 500)).astype(np.float32) * 1e3
    out, scales = np.zeros(x.shape, ml_dtypes.float8_e5m2), np.zeros(5, np.float32)
    _run("quantise", target, 5, [x, out, scales, 500], checks=checks)
    assert np.allclose(scales, np.abs(x).max(1) / 448, rtol=1e-6)
    exact = x / scales[:, None]
    assert (np.abs(out.astype(np.float32) - exact) <= np.abs(exact) / 8 + 2**-17).all()


def _gemm_arguments(m: int = 128, n: int = 128, k: int = 96) -> list[Any]:
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 5, s).astype(np.float16) for s in ((m, k), (n, k)))
    return [a, b, np.zeros((m, n), np.float16), k, k, k, n]


@TARGETS
@CHECKS
def test_gemm_through_lds(target: str, checks: str) -> None:
    args = _gemm_arguments()
    _run("gemm", target, (2, 2), args, checks=checks)
    assert np.array_equal(args[2], (args[0].astype(np.float32) @ args[1].astype(np.float32).T).astype(np.float16))


@TARGETS
@pytest.mark.parametrize("name", ["softmax", "gemm"])
@pytest.mark.parametrize("removed", ["call void @llvm.amdgcn.s.barrier()", 'fence syncscope("workgroup") release',
                                     'fence syncscope("workgroup") acquire'])  # fmt: skip
def test_removed_synchronisation_is_a_race(name: str, target: str, removed: str) -> None:
    text = "\n".join(line for line in _text(name, target).split("\n") if removed not in line)
    x = np.zeros((4, 1000), np.float32)
    args = [x, np.zeros_like(x), 1000, 1000] if name == "softmax" else _gemm_arguments()
    if (name, target) == ("gemm", "gfx950") and "acquire" in removed:
        # its data comes by DMA, and an explicit wait before the barrier stands for the fences of that wave
        _run(name, target, (2, 2), args, text)
        return
    with pytest.raises(SimError, match="LDS race") as caught:
        _run(name, target, 4 if name == "softmax" else (2, 2), args, text)
    assert re.match(r"(standard|make_foreign_ir)\.py:\d+", str(caught.value))


def test_removed_wait_for_asynchronous_dma_is_found() -> None:
    text = "\n".join(line for line in _text("gemm", "gfx950").split("\n") if "wait.asyncmark" not in line)
    with pytest.raises(SimError, match="DMA"):
        _run("gemm", "gfx950", (2, 2), _gemm_arguments(), text)


def test_too_few_rows_are_out_of_bounds() -> None:
    args = _gemm_arguments()
    args[0] = args[0][:120].copy()
    with pytest.raises(SimError, match=r"out of bounds, at byte .* of argument 0"):
        _run("gemm", "gfx942", (2, 2), args)


def test_everything_in_the_fixtures_is_known() -> None:
    for path in sorted(FOLDER.glob("*.ll")):
        assert not any(check_module(parse_module(path.read_text(encoding="utf-8"), path.name)).values()), path.name


# ---- FlyDSL


def _run_flydsl(name: str, target: str, grid: Any, args: list[Any], checks: str, text: str | None = None) -> None:
    text = text or _text(f"flydsl_{name}", target)
    shared = re.search(r"dynamic LDS: (\d+) bytes", text)
    simulate(text, grid=grid, block=256, args=args, target=target, checks=checks,
             dynamic_lds_bytes=int(shared[1]) if shared else 0)  # fmt: skip


def _flydsl_gemm() -> list[Any]:
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-4, 5, (128, 96)).astype(np.float16) for _ in range(2))
    return [a, b, np.zeros((128, 128), np.float16)]


@TARGETS
@CHECKS
def test_flydsl_vector_add(target: str, checks: str) -> None:
    rng = np.random.default_rng(0)
    x, y, out = (rng.normal(size=3072).astype(np.float32) for _ in range(3))
    _run_flydsl("add", target, 3, [x, y, out], checks)
    assert np.array_equal(out, x + y)


@TARGETS
@CHECKS
def test_flydsl_gemm_through_swizzled_lds(target: str, checks: str) -> None:
    args = _flydsl_gemm()
    _run_flydsl("gemm", target, (2, 2), args, checks)
    a, b, c = args
    assert np.array_equal(c, (a.astype(np.float32) @ b.astype(np.float32).T).astype(np.float16))


@TARGETS
@pytest.mark.parametrize("removed", ["call void @llvm.amdgcn.s.barrier()", "fence"])
def test_flydsl_gemm_without_its_synchronisation_races(target: str, removed: str) -> None:
    lines = _text("flydsl_gemm", target).split("\n")
    assert any(removed in line for line in lines)
    text = "\n".join(line for line in lines if removed not in line)
    with pytest.raises(SimError, match="LDS race"):
        _run_flydsl("gemm", target, (2, 2), _flydsl_gemm(), "default", text)


# ---- swizzles


def _without_swizzle(text: str, number: int) -> str:
    """The text with one of its exclusive ors of two registers replaced by its first operand."""
    line = [x for x in text.split("\n") if re.search(r"= xor i32 %\S+, %", x)][number]
    return text.replace(line, re.sub(r"xor i32 (%\S+), %\d+", r"or i32 \1, 0", line))


@TARGETS
@pytest.mark.parametrize(("removed", "without"), [(0, "store"), (1, "read")])
def test_flydsl_gemm_with_a_swizzle_on_one_side_is_found(target: str, removed: int, without: str) -> None:
    text = _without_swizzle(_text("flydsl_gemm", target), removed)
    args = _flydsl_gemm()
    report = simulate(text, grid=(2, 2), block=256, args=args, target=target, checks="all", source_name="k.ll",
                      dynamic_lds_bytes=8192)  # fmt: skip
    reads = {f"k.ll:{n}" for n, x in enumerate(text.split("\n"), 1) if "= load <8 x half>, ptr addrspace(3)" in x}
    assert len(report.warnings) == 4 and {w.partition(": '")[0] for w in report.warnings} == reads
    assert all(f", that of the {without} does not" in w for w in report.warnings)


def test_triton_gemm_with_a_swizzle_on_the_write_only_is_found() -> None:
    text = _text("gemm", "gfx942")
    line = [x for x in text.split("\n") if re.search(r"= xor i32 %\S+, %", x)][1]
    text = text.replace(line, re.sub(r"xor i32 %\S+, (%\d+)", r"or i32 \1, 0", line))  # the part of the row
    args = [*_gemm_arguments(), None, None]
    shared = int(re.search(r"dynamic LDS: (\d+) bytes", text)[1])  # type: ignore[index]
    report = simulate(text, "gemm", grid=(2, 2), block=256, args=args, checks="all", dynamic_lds_bytes=shared)
    found = [w for w in report.warnings if "LDS is read in another order than it was written" in w]
    assert len(found) == 1 and re.match(
        r"make_foreign_ir\.py:\d+: '%\d+ = load <4 x half>, ptr addrspace\(3\)", found[0]
    )


@TARGETS
def test_clean_gemms_are_not_blamed(target: str) -> None:
    for name, args in (("gemm", _gemm_arguments()), ("flydsl_gemm", _flydsl_gemm())):
        text = _text(name, target)
        shared = int(re.search(r"dynamic LDS: (\d+) bytes", text)[1])  # type: ignore[index]
        kernel = next(iter(parse_module(text).kernels())) if name != "gemm" else "gemm"
        padded = [*args, *[None] * (len(parse_module(text).functions[kernel].params) - len(args))]
        report = simulate(text, kernel, grid=(2, 2), block=256, args=padded, target=target, checks="all",
                          dynamic_lds_bytes=shared)  # fmt: skip
        assert not any("LDS is read" in w for w in report.warnings)


# ---- habits of compilers for gfx1250


def test_lanes_send_writes_to_lds_nowhere() -> None:
    """An address that LDS does not have drops the write; elsewhere it is a fault."""
    text = """
@lds = internal addrspace(3) global [32 x i32] poison, align 16
define amdgpu_kernel void @k(ptr addrspace(1) %out) {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %c = icmp ult i32 %t, 16
  %p = getelementptr i32, ptr addrspace(3) @lds, i32 %t
  %g = getelementptr i32, ptr addrspace(1) %out, i32 %t
  %some = select i1 %c, ptr addrspace(3) %p, ptr addrspace(3) inttoptr (i32 2147483647 to ptr addrspace(3))
  call void @llvm.amdgcn.global.load.async.to.lds.b32(ptr addrspace(1) %g, ptr addrspace(3) %some, i32 0, i32 0)
  %rest = select i1 %c, ptr addrspace(3) inttoptr (i32 2147483647 to ptr addrspace(3)), ptr addrspace(3) %p
  store i32 7, ptr addrspace(3) %rest, align 4
  call void @llvm.amdgcn.s.wait.asynccnt(i16 0)
  %v = load i32, ptr addrspace(3) %p, align 4
  store i32 %v, ptr addrspace(1) %g, align 4
  ret void
}"""
    out = np.arange(100, 132, dtype=np.uint32)
    simulate(text, grid=1, block=32, args=[out], target="gfx1250")
    assert np.array_equal(out[:16], np.arange(100, 116)) and (out[16:] == 7).all()
    plain = "\n".join(line for line in text.split("\n") if "async" not in line)
    with pytest.raises(SimError, match="is not a multiple of 4"):
        simulate(plain, grid=1, block=64, args=[np.zeros(64, np.uint32)], target="gfx942")


def test_wmma_without_modifiers_of_a_and_b() -> None:
    """LLVM 24 writes fewer operands than LLVM 22."""
    zeros = "<16 x half> splat (half 1.0)"
    head = "define amdgpu_kernel void @k(ptr addrspace(1) %out) {\n  %t = call i32 @llvm.amdgcn.workitem.id.x()\n"
    tail = (
        "  %p = getelementptr <8 x float>, ptr addrspace(1) %out, i32 %t\n"
        "  store <8 x float> %d, ptr addrspace(1) %p\n  ret void\n}"
    )
    call = "  %d = call <8 x float> @llvm.amdgcn.wmma.f32.16x16x32.f16.v8f32.v16f16("
    call += "{}, i16 0, <8 x float> {}, i1 0, i1 0)\n"
    results = []
    for operands in (f"i1 0, {zeros}, i1 0, {zeros}", f"{zeros}, {zeros}"):
        out = np.zeros((32, 8), np.float32)
        simulate(head + call.format(operands, "zeroinitializer") + tail, grid=1, block=32, args=[out], target="gfx1250")
        results.append(out)
    assert (results[0] == 32).all() and np.array_equal(*results)
