"""The fast packer gives just the bytes of the careful one, and leaves every refusal to it."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from hypothesis import given, strategies as st

from flyllvm.codeobject import KernelInfo, inspect, pack_kernarg
from flyllvm.errors import LaunchError
from flyllvm.runtime import ArgumentPacker
from tests.codeobject.images import object_bytes
from tests.codeobject.test_kernarg import TRAP, CudaArray, Tensor, kernel

TRAP_TYPES = ("i8", "f64", "i16", None, "f32")


def packed(info: KernelInfo, values: list[object], types: tuple[str | None, ...] | None) -> bytes:
    buffer = ctypes.create_string_buffer(info.explicit_kernarg_bytes)
    ArgumentPacker(info, types).pack_into(buffer, values)
    return buffer.raw


NUMBERS = st.integers(-(1 << 65), 1 << 65)
VALUES = st.one_of(
    NUMBERS, st.floats(), st.none(), st.booleans(), st.just("x"), st.just(b"12345678"), st.just(CudaArray()),
    st.just(Tensor(0x6000, True)), st.just(Tensor(0x6000, False)), st.just(np.float32(1.5)), st.just(np.int16(3)),
    st.just(np.array(5)), st.just(np.zeros(2)),
)  # fmt: skip


@given(st.lists(VALUES, min_size=5, max_size=5), st.sampled_from([TRAP_TYPES, None, (None, "f64", "u16", None, "i32")]))
def test_both_packers_agree_on_bytes_and_on_refusals(
    values: list[object], types: tuple[str | None, ...] | None
) -> None:
    try:
        expected = pack_kernarg(TRAP, values, types)
    except LaunchError as error:
        with pytest.raises(LaunchError) as caught:
            packed(TRAP, values, types)
        assert str(caught.value) == str(error)
    else:
        assert packed(TRAP, values, types) == expected


@given(st.integers(-128, 127), st.floats(), st.integers(-(1 << 15), (1 << 15) - 1), st.integers(0, (1 << 64) - 1))
def test_typed_values_take_the_fast_way(a: int, b: float, c: int, address: int) -> None:
    packer = ArgumentPacker(TRAP, TRAP_TYPES)
    assert packer._kinds is not None
    assert packed(TRAP, [a, b, c, address, 1.5], TRAP_TYPES) == pack_kernarg(TRAP, [a, b, c, address, 1.5], TRAP_TYPES)


@pytest.mark.parametrize("types", [("i32",), ("bf16",), ("f99",), None, ("i32", "i32")])
def test_what_the_format_cannot_say_goes_the_careful_way(types: tuple[str, ...] | None) -> None:
    assert ArgumentPacker(kernel((0, 2, "by_value")), types)._kinds is None


def test_a_kernel_without_arguments_packs_nothing() -> None:
    assert packed(kernel(), [], ()) == b""


def test_padding_stays_zero_in_a_buffer_that_is_used_again() -> None:
    info = inspect(object_bytes("gemm_gfx942")).kernels["gemm"]
    types = (None, None, None, "i32", "i32", "i32")
    packer, buffer = ArgumentPacker(info, types), ctypes.create_string_buffer(36)
    for values in ([1, 2, 3, -4, -5, -6], [7, 8, 9, 10, 11, 12]):
        packer.pack_into(buffer, values)
        assert buffer.raw == pack_kernarg(info, values, types)


def test_none_is_a_null_pointer_on_the_fast_way() -> None:
    assert packed(kernel((0, 8, "global_buffer")), [None], (None,)) == bytes(8)
