"""Offsets beyond 32 bits are right on every way to an element."""

from __future__ import annotations

import re

import numpy as np
import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx

pytestmark = [pytest.mark.sim]

ROWS = (1 << 24) + 16  # of 256 bytes: past 4 GiB


@flyc.kernel(known_block_size=(1, 1, 1))
def read(x: fx.Tensor, o: fx.Tensor, i: fx.Int32):
    o[0] = x[i, 5]
    o[1] = x[i, None][5]
    o[2] = fx.slice(x, (i, None))[5]
    o[3] = fx.slice(fx.zipped_divide(x, fx.make_tile(1, 1)), (None, (i, 5)))[0]


@pytest.mark.parametrize("spec", [f"i8[{ROWS},256]", "i8[?,256]", "i8[?,?]"])
def test_every_way_to_an_element_of_a_large_tensor_multiplies_in_64_bits(spec: str) -> None:
    text = flyc.compile(read, spec, "i8[4]", "i32", arch="gfx942", stop_after="llvm").llvm_ir
    products = re.findall(r"= (?:mul|shl)\b.*? (i\d+) ", text)
    assert products and set(products) == {"i64"}


@flyc.kernel(known_block_size=(1, 1, 1))
def by_hand(x: fx.Tensor, o: fx.Tensor, i: fx.Int32):
    o[0] = (x.iter + fx.crd2idx((i, 5), x.layout)).load()
    o[1] = (x.iter + fx.crd2idx((i, 5), x)).load()
    o[2] = (x.iter + x.layout(i, 5)).load()
    o[3] = (x.iter + fx.get_layout(x)(i, 5)).load()


@pytest.mark.parametrize("spec", [f"i8[{ROWS},256]", "i8[?,256]", "i8[?,?]"])
def test_the_index_in_the_layout_of_a_large_tensor_is_in_64_bits(spec: str) -> None:
    text = flyc.compile(by_hand, spec, "i8[4]", "i32", arch="gfx942", stop_after="llvm").llvm_ir
    products = re.findall(r"= (?:mul|shl)\b.*? (i\d+) ", text)
    assert products and set(products) == {"i64"}


def test_the_index_in_the_layout_of_a_small_tensor_stays_in_32_bits() -> None:
    text = flyc.compile(by_hand, "i8[64,256]", "i8[4]", "i32", arch="gfx942", stop_after="llvm").llvm_ir
    assert not re.search(r"= (?:mul|shl)\b.*? i64 ", text)


@flyc.kernel(known_block_size=(1, 1, 1))
def index(o: fx.Tensor, i: fx.Int32):
    layout = fx.make_layout((8, 8), (1 << 30, 1))
    o[0] = fx.Int64(fx.crd2idx((i, 5), layout))
    o[1] = fx.Int64(layout(i, 5))


def test_the_index_in_a_large_static_layout_is_in_64_bits() -> None:
    out = np.zeros(2, np.int64)
    flyc.compile(index, "i64[2]", "i32", arch="gfx942", stop_after="llvm").simulate(out, 7, grid=1)
    assert out.tolist() == [(7 << 30) + 5] * 2
