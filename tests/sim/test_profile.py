"""Counts per line: coalescing of global accesses, LDS bank conflicts, FLOPs, divergence."""

from __future__ import annotations

import numpy as np
import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.sim import SimReport, simulate
from flyllvm.sim.profile import bank_cycles
from tests.sim.kernels import LDS, gemm, kernel, line_of

pytestmark = pytest.mark.sim


def _row(report: SimReport, line: int) -> dict:
    return next(row for row in report.lines if row["where"] == f"k.ll:{line}")


def _strided_load(stride: int) -> tuple[SimReport, str]:
    text = kernel(
        f"%i = mul i32 %t, {stride}\n%p = getelementptr i32, ptr addrspace(1) %x, i32 %i\n"
        "%v = load i32, ptr addrspace(1) %p, align 4\nret void",
        "ptr addrspace(1) %x",
    )
    data = np.zeros(128 * stride, np.uint32)
    return simulate(text, grid=1, block=128, args=[data], source_name="k.ll", profile=True), text


@pytest.mark.parametrize(("stride", "small", "large"), [(1, 8, 4), (2, 16, 8), (16, 128, 64), (32, 128, 128)])
def test_segments_of_global_loads(stride: int, small: int, large: int) -> None:
    report, text = _strided_load(stride)
    row = _row(report, line_of(text, "%v = load"))
    assert (row["segments_64"], row["segments_128"], row["global_bytes"]) == (small, large, 512)


@pytest.mark.parametrize(
    ("stride_words", "byte_count", "banks", "factor"),
    [(1, 4, 32, 1), (2, 4, 32, 2), (32, 4, 32, 32), (33, 4, 32, 1), (32, 4, 64, 32), (0, 4, 32, 1), (4, 16, 32, 1),
     (32, 16, 32, 8), (36, 16, 32, 1)],
)  # fmt: skip
def test_bank_conflicts_of_strided_accesses(stride_words: int, byte_count: int, banks: int, factor: int) -> None:
    lane = np.arange(64)
    cycles, ideal = bank_cycles(lane * 0, lane, lane * stride_words * 4, byte_count, banks)
    assert ideal == 64 * max(1, byte_count // 4) // banks
    assert cycles == factor * ideal


def test_bank_conflicts_are_counted_where_they_happen() -> None:
    text = kernel(
        "%i = mul i32 %l, 4\n%p = getelementptr i32, ptr addrspace(3) @lds, i32 %i\n"
        "store i32 %t, ptr addrspace(3) %p, align 4\nret void",
        "",
        LDS,
    )
    report = simulate(text, grid=1, block=64, args=[], source_name="k.ll", profile=True)
    row = _row(report, line_of(text, "store i32 %t"))
    assert (row["lds_cycles"], row["lds_ideal_cycles"], row["lds_bytes"]) == (8, 2, 256)
    assert "4.00x" in report.render()


def test_profile_changes_no_result_and_counts_flops() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(-4, 5, (32, 32)).astype(np.float16), rng.integers(-4, 5, (16, 32)).astype(np.float16)
    c = np.zeros((32, 16), np.float32)
    report = simulate(gemm(), grid=1, block=128, args=[a, b, c, 32], source_name="k.ll", profile=True)
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)
    assert report.matrix_flops == sum(row["matrix_flops"] for row in report.lines) == 2 * 32 * 16 * 32
    assert _row(report, line_of(gemm(), "%fa = load"))["lds_cycles"] > 0
    assert report.to_dict()["lines"] == report.lines


def test_html_page_shows_lines_conflicts_and_banks() -> None:
    from html.parser import HTMLParser

    text = kernel(
        "%i = mul i32 %l, 4\n%p = getelementptr i32, ptr addrspace(3) @lds, i32 %i\n"
        "store i32 %t, ptr addrspace(3) %p, align 4\nret void",
        "",
        LDS,
    )
    report = simulate(text, grid=1, block=64, args=[], source_name="k.ll", profile=True)
    assert list(report.banks.values()) == [[8, 0, 0, 0] * 8]
    page = report.to_html()
    assert "<span class=bad>4.00x</span>" in page and "store i32 %t, ptr addrspace(3) %p" in page
    seen: list[str] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: seen.append(tag)  # type: ignore[method-assign]
    parser.feed(page)
    assert seen.count("rect") == 32 and seen.count("table") == 1 and seen.count("tr") == 1 + len(report.lines)


@pytest.mark.llvm
def test_occupancy_comes_from_the_registers_and_lds_of_the_code_object() -> None:
    @flyc.kernel(known_block_size=(256, 1, 1))
    def through_lds(x: fx.Tensor):
        lds = fx.make_view(fx.shared_memory(fx.Float32, 5000), fx.make_layout(5000, 1))
        lds[fx.thread_idx.x] = x[fx.thread_idx.x]
        fx.barrier()
        x[fx.thread_idx.x] = lds[255 - fx.thread_idx.x]

    x = np.arange(256, dtype=np.float32)
    art = flyc.compile(through_lds, x, arch="gfx942")
    report = simulate(art, grid=1, block=256, args=[x], profile=True)
    info = art.code_object.kernels[art.name]
    found = report.occupancy
    assert found["waves_per_simd"] == 3 and found["limited_by"] == "lds" and found["workgroups"] == 3
    assert found["vgpr_count"] == info.vgpr_count and found["lds_bytes"] == 20000
    assert "occupancy: 3 waves per SIMD, limited by LDS" in report.render()
    assert "limited by LDS" in report.to_html() and '"limited_by": "lds"' in report.to_json()
    assert simulate(art, grid=1, block=256, args=[x]).occupancy is None
