"""Packing of kernel arguments: bytes at the offsets of the metadata, and refusals of what cannot be meant."""

from __future__ import annotations

import ctypes
import math
import struct

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st

from flyllvm.codeobject import KernelInfo, hidden_args, inspect, pack_kernarg
from flyllvm.errors import LaunchError
from tests.codeobject.images import object_bytes


def kernel(*args: tuple[int, int, str], size: int | None = None) -> KernelInfo:
    """A kernel with arguments (offset, size, kind)."""
    end = max((o + s for o, s, _ in args), default=0)
    return KernelInfo({
        ".name": "k", ".symbol": "k.kd", ".vgpr_count": 1, ".sgpr_count": 1, ".group_segment_fixed_size": 0,
        ".private_segment_fixed_size": 0, ".kernarg_segment_size": end if size is None else size,
        ".kernarg_segment_align": 8, ".wavefront_size": 64, ".max_flat_workgroup_size": 256,
        ".args": [
            {".name": f"a{i}", ".offset": o, ".size": s, ".value_kind": k} for i, (o, s, k) in enumerate(args)
        ],
    })  # fmt: skip


def one(size: int, kind: str = "by_value") -> KernelInfo:
    return kernel((0, size, kind))


TRAP = kernel(
    (0, 1, "by_value"), (8, 8, "by_value"), (16, 2, "by_value"), (24, 8, "global_buffer"), (32, 4, "by_value")
)  # fmt: skip


def test_llvm_gives_the_classic_trap_the_offsets_0_8_16_24_32() -> None:
    arguments = inspect(object_bytes("arguments")).kernels["k"]
    assert [(a.offset, a.size) for a in arguments.args[:5]] == [(0, 1), (8, 8), (16, 2), (24, 8), (32, 4)]
    assert [a.name for a in arguments.args[:7]] == ["a", "b", "c", "d", "e", "lds", "cc"]
    assert [a.kind for a in arguments.args[3:7]] == [
        "global_buffer", "by_value", "dynamic_shared_pointer", "global_buffer",
    ]  # fmt: skip


def test_the_classic_trap_is_packed_at_its_offsets() -> None:
    packed = pack_kernarg(TRAP, [-2, 2.5, 0x1234, 0xDEADBEEF0000, 1.5], types=["i8", "f64", "i16", None, "f32"])
    expected = bytearray(36)
    struct.pack_into("<b", expected, 0, -2)
    struct.pack_into("<d", expected, 8, 2.5)
    struct.pack_into("<h", expected, 16, 0x1234)
    struct.pack_into("<Q", expected, 24, 0xDEADBEEF0000)
    struct.pack_into("<f", expected, 32, 1.5)
    assert packed == expected


def test_values_with_a_size_of_their_own_need_no_type() -> None:
    for values in (
        [ctypes.c_int8(-2), ctypes.c_double(2.5), ctypes.c_int16(7), 64, ctypes.c_float(1.5)],
        [np.int8(-2), np.float64(2.5), np.int16(7), 64, np.float32(1.5)],
        [b"\xfe", struct.pack("<d", 2.5), b"\x07\x00", 64, struct.pack("<f", 1.5)],
    ):
        assert pack_kernarg(TRAP, values) == struct.pack("<b7xdh6xQf", -2, 2.5, 7, 64, 1.5)


def test_structures_and_vectors_are_passed_as_bytes() -> None:
    class Point(ctypes.Structure):
        _fields_ = [("x", ctypes.c_int32), ("y", ctypes.c_float), ("z", ctypes.c_int64)]

    assert pack_kernarg(one(16), [Point(1, 2.0, 3)]) == struct.pack("<ifq", 1, 2.0, 3)
    assert pack_kernarg(one(8), [np.arange(4, dtype=np.float16)]) == np.arange(4, dtype=np.float16).tobytes()


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
def test_narrow_floats_of_numpy_are_packed(dtype: type) -> None:
    assert pack_kernarg(one(2), [dtype(1.5)]) == np.array(1.5, dtype).tobytes()


@pytest.mark.parametrize(("size", "kind"), [(1, "i8"), (2, "i16"), (4, "i32"), (8, "i64")])
@given(value=st.integers(-(1 << 66), 1 << 66))
def test_integers_are_packed_or_refused_by_range(size: int, kind: str, value: int) -> None:
    bits = 8 * size
    for name, low, high in (
        (kind, -(1 << bits - 1), (1 << bits - 1) - 1),
        ("u" + kind[1:], 0, (1 << bits) - 1),
        (None, -(1 << bits - 1), (1 << bits) - 1),
    ):
        if low <= value <= high:
            packed = pack_kernarg(one(size), [value], types=[name])
            assert int.from_bytes(packed, "little") == value % (1 << bits)
        else:
            with pytest.raises(LaunchError, match=rf"(?s)does not fit.*use {low} to {high}"):
                pack_kernarg(one(size), [value], types=[name])


@given(st.floats(width=32))
def test_bf16_rounds_as_ml_dtypes(value: float) -> None:
    with np.errstate(over="ignore"):
        expected = np.array(value, np.float32).astype(ml_dtypes.bfloat16)
    if math.isinf(float(expected)) and not math.isinf(value):
        with pytest.raises(LaunchError, match=r"(?s)too large for bf16.*inf"):
            pack_kernarg(one(2), [value], types=["bf16"])
        return
    packed = np.frombuffer(pack_kernarg(one(2), [value], types=["bf16"]), ml_dtypes.bfloat16)[0]
    assert math.isnan(float(packed)) if math.isnan(value) else packed.tobytes() == expected.tobytes()


@pytest.mark.parametrize(("kind", "size"), [("f16", 2), ("f32", 4), ("f64", 8)])
def test_floats_round_as_numpy(kind: str, size: int) -> None:
    dtype = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[kind]
    for value in (0.1, -3.75, 65504.0, float("inf"), 1e-7, 3):
        assert pack_kernarg(one(size), [value], types=[kind]) == np.array(value, dtype).tobytes()


class Tensor:
    """What torch shows of itself."""

    def __init__(self, address: int, is_cuda: bool) -> None:
        self.address = address
        self.is_cuda = is_cuda

    def data_ptr(self) -> int:
        return self.address


class CudaArray:
    __cuda_array_interface__ = {"data": (0x7000, False)}


@pytest.mark.parametrize(
    ("value", "address"), [(0x5000, 0x5000), (None, 0), (Tensor(0x6000, True), 0x6000), (CudaArray(), 0x7000)]
)
def test_pointers_come_from_addresses_and_device_arrays(value: object, address: int) -> None:
    assert pack_kernarg(one(8, "global_buffer"), [value]) == struct.pack("<Q", address)


@pytest.mark.parametrize(
    "value", [np.zeros(4), b"12345678", Tensor(0x6000, False), 1.0, True, "text", ctypes.c_uint64(4), memoryview(b"12")]
)
def test_host_memory_and_other_things_are_no_pointer(value: object) -> None:
    with pytest.raises(LaunchError, match=r"(?s)argument 0 .a0. of kernel k: a pointer is wanted.*pass device memory"):
        pack_kernarg(one(8, "global_buffer"), [value])


def test_an_lds_pointer_has_four_bytes() -> None:
    assert pack_kernarg(one(4, "dynamic_shared_pointer"), [256]) == struct.pack("<I", 256)
    with pytest.raises(LaunchError, match=r"address 0x100000000 does not fit 4 bytes"):
        pack_kernarg(one(4, "dynamic_shared_pointer"), [1 << 32])


def test_a_buffer_descriptor_is_no_address() -> None:
    assert pack_kernarg(one(16, "global_buffer"), [bytes(range(16))]) == bytes(range(16))
    with pytest.raises(
        LaunchError, match=r"(?s)a buffer descriptor of 16 bytes is wanted, got int 4096.*pass its bytes"
    ):
        pack_kernarg(one(16, "global_buffer"), [4096])


@pytest.mark.parametrize(
    ("size", "value", "kind", "match"),
    [
        (4, 1.5, None, "(?s)a Python float has no size of its own, 4 bytes are wanted.*c_float"),
        (4, np.float64(1.5), None, "(?s)4 bytes are wanted, got float64 .* of 8.*pass 4 bytes"),
        (4, np.float64(1.5), "f32", "of 8"),
        (8, ctypes.c_int32(1), None, "8 bytes are wanted"),
        (4, 1.5, "f64", "(?s)type f64 has 8 bytes, the kernel reads 4.*correct the type"),
        (4, 1, "i64", "type i64 has 8 bytes, the kernel reads 4"),
        (4, 1.5, "i32", "(?s)a value of type i32 is wanted, got float 1.5.*pass a number"),
        (4, "x", None, "a value of 4 bytes is wanted, got str 'x'"),
        (4, None, None, "a value of 4 bytes is wanted, got NoneType"),
        (1, 2, "i1", "(?s)2 does not fit i1.*use 0 to 1"),
        (2, 1e6, "f16", "(?s)1000000.0 is too large for f16.*inf"),
        (4, 1, "f99", "(?s)unknown type 'f99'.*types are: f16, f32"),
    ],
)
def test_what_cannot_be_meant_is_refused(size: int, value: object, kind: str | None, match: str) -> None:
    with pytest.raises(LaunchError, match=match):
        pack_kernarg(one(size), [value], types=None if kind is None else [kind])


def test_a_wrong_count_lists_the_arguments() -> None:
    with pytest.raises(LaunchError, match=r"(?s)kernel k takes 5 arguments, got 1\n.*a0, a1, a2, a3, a4"):
        pack_kernarg(TRAP, [1])
    with pytest.raises(LaunchError, match=r"takes 1 arguments, got 2 types"):
        pack_kernarg(one(4), [1], types=["i32", "i32"])


# Hidden arguments.


def test_hidden_arguments_complete_the_segment() -> None:
    info = inspect(object_bytes("three_kernels_gfx942")).kernels["shared"]
    explicit = pack_kernarg(info, [0x1000, 1.5], types=[None, "f32"])
    whole = explicit + hidden_args(info, (3, 5, 7), (64, 2, 1), dynamic_lds_bytes=4096)
    assert len(whole) == info.kernarg_bytes
    fields = {a.kind: int.from_bytes(whole[a.offset : a.offset + a.size], "little") for a in info.hidden_args}
    assert fields | {
        "hidden_block_count_x": 3, "hidden_block_count_y": 5, "hidden_block_count_z": 7,
        "hidden_group_size_x": 64, "hidden_group_size_y": 2, "hidden_group_size_z": 1,
        "hidden_remainder_x": 0, "hidden_global_offset_z": 0, "hidden_grid_dims": 3, "hidden_dynamic_lds_size": 4096,
    } == fields  # fmt: skip


def test_a_kernel_without_hidden_arguments_has_none() -> None:
    assert hidden_args(inspect(object_bytes("vector_add_gfx942")).kernels["vector_add"], (1, 1, 1), (64, 1, 1)) == b""


@pytest.mark.parametrize(
    ("grid", "block", "match"),
    [
        ((0, 1, 1), (64, 1, 1), "(?s)grid .0, 1, 1. for kernel k.*three sizes from 1 to 4294967295"),
        ((1, 1), (64, 1, 1), "grid .1, 1."),
        ((1, 1, 1), (1 << 16, 1, 1), "(?s)block .65536, 1, 1..*from 1 to 65535"),
    ],
)
def test_launch_sizes_out_of_range_are_refused(grid: tuple[int, ...], block: tuple[int, ...], match: str) -> None:
    with pytest.raises(LaunchError, match=match):
        hidden_args(kernel((0, 4, "hidden_block_count_x")), grid, block)  # type: ignore[arg-type]


def test_unknown_hidden_arguments_and_overflow_are_refused() -> None:
    with pytest.raises(LaunchError, match=r"(?s)wants hidden_magic.*compile the kernel with flyllvm"):
        hidden_args(kernel((0, 8, "hidden_magic")), (1, 1, 1), (1, 1, 1))
    with pytest.raises(LaunchError, match=r"hidden_dynamic_lds_size = 65536 does not fit 2 bytes"):
        hidden_args(kernel((0, 2, "hidden_dynamic_lds_size")), (1, 1, 1), (1, 1, 1), 65536)
