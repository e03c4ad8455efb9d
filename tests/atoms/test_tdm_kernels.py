"""Tensor copies through the whole pipeline: the descriptor's bits do in the simulator what the atom promises."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import flyllvm
import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.atoms.rocdl.gfx1250_tdm import Tdm, atoms
from flyllvm.expr.rocdl.tdm import make_tdm_atom

pytestmark = [pytest.mark.llvm, pytest.mark.sim]
DTYPES = {"u8": (fx.Uint8, np.uint8), "f16": (fx.Float16, np.float16), "f32": (fx.Float32, np.float32),
          "i64": (fx.Int64, np.int64)}  # fmt: skip


def padded(count: int, options: dict[str, int]) -> int:
    """Elements of LDS that hold so many of the tile."""
    return count + (count // options["pad_interval"] * options["pad_amount"] if options else 0)


def copy_kernel(tile: tuple[int, ...], kind: str, warps: int, options: dict[str, int], back: bool) -> Any:
    """Loads the tile that starts ``row`` rows and ``column`` columns in; all of LDS or the tile goes to ``dst``."""
    dtype = DTYPES[kind][0]
    size, threads, rank = padded(math.prod(tile), options), 32 * warps, len(tile)

    def first(tensor: Any, row: Any, column: Any) -> tuple[tuple[Any, ...], Any]:
        at = (row,) if rank == 1 else (row, *(0,) * (rank - 2), column)
        offset = fx.Int64(row) * tensor.stride[0] + (fx.Int64(column) if rank > 1 else 0)
        return at, tensor.at(offset, fx.make_layout(1, 1))

    @flyc.kernel(known_block_size=(threads, 1, 1))
    def copies(src: fx.Tensor, fill: fx.Tensor, dst: fx.Tensor, row: fx.Int32, column: fx.Int32):
        lds = fx.make_view(fx.shared_memory(dtype, size), fx.make_layout(size, 1))
        for i in fx.range_constexpr(-(-size // threads)):  # what the copy leaves alone stays visible
            index = fx.thread_idx.x + i * threads
            if index < size:
                lds[index] = fill[0]
        fx.barrier()
        at, far = first(src, row, column)
        near = lds.at(0, fx.make_layout(1, 1))
        fx.copy_atom_call(make_tdm_atom(src, tile, at, num_warps=warps, **options), far, near)
        fx.rocdl.s_wait_tensorcnt(0)
        fx.barrier()
        if fx.const_expr(back):
            at, far = first(dst, row, column)
            fx.copy_atom_call(make_tdm_atom(dst, tile, at, num_warps=warps, **options), near, far)
            fx.rocdl.s_wait_tensorcnt(0)
        else:
            for i in fx.range_constexpr(-(-size // threads)):
                index = fx.thread_idx.x + i * threads
                if index < size:
                    dst[index] = lds[index]

    return copies


def run(kernel: Any, warps: int, args: list[Any]) -> None:
    art = flyc.compile(kernel, *args, arch="gfx1250")
    flyllvm.simulate(art, grid=1, block=32 * warps, args=args, checks="all")


def tile_of(source: np.ndarray, tile: tuple[int, ...], row: int, column: int) -> np.ndarray:
    """The tile with zeros past the tensor's end."""
    want = np.zeros(tile, source.dtype)
    starts = [row] if len(tile) == 1 else [row, *[0] * (len(tile) - 2), column]
    cut = source[tuple(slice(s, s + n) for s, n in zip(starts, tile, strict=True))]
    want[tuple(slice(n) for n in cut.shape)] = cut
    return want


PADDING = {"pad_interval": 32, "pad_amount": 8}
LOADS = [
    ((256,), "f16", 1, {}), ((256,), "f32", 4, {}), ((64, 32), "f16", 4, {}), ((64, 32), "f16", 4, PADDING),
    ((16, 64), "f32", 2, {"pad_interval": 16, "pad_amount": 4}), ((8, 16), "i64", 1, {}), ((32, 8), "u8", 2, {}),
    ((4, 16, 32), "f16", 2, PADDING), ((2, 4, 8, 32), "f16", 1, {}), ((2, 2, 4, 8, 32), "f16", 2, PADDING),
]  # fmt: skip


@pytest.mark.parametrize(("row", "column"), [(0, 0), (3, 5), (70, 1)])
@pytest.mark.parametrize(("tile", "kind", "warps", "options"), LOADS)
def test_a_tile_lands_row_by_row_with_zeros_past_the_end(
    tile: tuple[int, ...], kind: str, warps: int, options: dict[str, int], row: int, column: int
) -> None:
    shape = (70,) if len(tile) == 1 else (70, *(n + 1 for n in tile[1:-1]), 35)
    source = (np.arange(math.prod(shape)) % 251 + 1).reshape(shape).astype(DTYPES[kind][1])
    size = padded(math.prod(tile), options)
    out, fill = np.zeros(size, source.dtype), np.full(1, 99, source.dtype)
    run(copy_kernel(tile, kind, warps, options, False), warps, [source, fill, out, row, column])
    want = tile_of(source, tile, row, column).ravel()
    if options:
        gaps = out.reshape(-1, options["pad_interval"] + options["pad_amount"])
        assert (gaps[:, options["pad_interval"] :] == 99).all()
        out = gaps[:, : options["pad_interval"]].ravel()
    assert np.array_equal(out, want)


@pytest.mark.parametrize(("tile", "warps"), [((64, 32), 4), ((4, 16, 32), 2), ((32,), 1), ((128,), 4)])
@pytest.mark.parametrize("options", [{}, PADDING], ids=["plain", "padded"])
def test_a_tile_comes_back_with_padding_and_tails(tile: tuple[int, ...], warps: int, options: dict[str, int]) -> None:
    """Where the tensor ends inside the tile, the rest of memory stays as it was."""
    shape = (100,) if len(tile) == 1 else (70, *tile[1:-1], 35)
    source = np.arange(math.prod(shape)).reshape(shape).astype(np.float16)
    out = np.full(shape, -1, np.float16)
    run(copy_kernel(tile, "f16", warps, options, True), warps, [source, np.zeros(1, np.float16), out, 40, 5])
    want = np.full(shape, -1, np.float16)
    where = (slice(40, 40 + tile[0]), *[slice(None)] * (len(tile) - 2), slice(5, 5 + tile[-1]))[: len(shape)]
    want[where] = source[where]
    assert np.array_equal(out, want)


@pytest.mark.parametrize("op", atoms(), ids=lambda op: op.name)
def test_every_listed_atom_copies_its_tile(op: Tdm) -> None:
    shape = tuple(n + 3 for n in op.tile)
    source = np.arange(math.prod(shape)).reshape(shape).astype(np.int16).view(np.float16)
    out = np.zeros(math.prod(op.tile), np.float16)
    run(copy_kernel(op.tile, "f16", op.warps, {}, False), op.warps, [source, np.zeros(1, np.float16), out, 1, 2])
    assert np.array_equal(out.view(np.int16), tile_of(source, op.tile, 1, 2).view(np.int16).ravel())


def test_a_store_that_would_have_to_skip_space_inside_a_row_is_refused() -> None:
    kernel = copy_kernel((16, 64), "f16", 1, PADDING, True)
    with pytest.raises(flyllvm.FlyError, match="padInterval = 64: a store cannot skip space inside a row"):
        flyc.compile(kernel, *["f16[70,70]:(70,1)"] * 3, "i32", "i32", arch="gfx1250")


def test_a_missing_wait_is_found() -> None:
    kernel = copy_kernel((64, 32), "f16", 4, {}, False)
    source = np.zeros((70, 35), np.float16)
    args = [source, np.zeros(1, np.float16), np.zeros(64 * 32, np.float16), 0, 0]
    art = flyc.compile(kernel, *args, arch="gfx1250")
    text = "\n".join(line for line in art.llvm_ir.split("\n") if "call void @llvm.amdgcn.s.wait.tensorcnt" not in line)
    with pytest.raises(flyllvm.FlyError, match=r"s\.wait\.tensorcnt"):
        flyllvm.simulate(text, grid=1, block=128, args=args, target="gfx1250")
