"""Tensor copies of gfx1250: descriptors by the field table of the manual, against NumPy slices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from flyllvm.errors import SimError
from flyllvm.sim import simulate
from tests.sim.kernels import FENCED_BARRIER

pytestmark = pytest.mark.sim
WAIT = "  call void @llvm.amdgcn.s.wait.tensorcnt(i16 0)\n"
#: Fields as group, lowest bit and width.  Source: CDNA5 ISA manual, tables 62 to 67.
FIELDS = {
    "count": (0, 0, 2), "index_32": (0, 30, 1), "gather": (0, 31, 1), "type": (0, 126, 2),
    "workgroup_mask": (1, 0, 16), "data_size": (1, 16, 2), "barrier": (1, 18, 1), "iterate": (1, 19, 1),
    "pad_enable": (1, 20, 1), "pad_interval": (1, 22, 3), "pad_amount": (1, 25, 7),
    "tensor_dim0": (1, 48, 32), "tensor_dim1": (1, 80, 32), "tile_dim0": (1, 112, 16), "tile_dim1": (1, 128, 16),
    "tile_dim2": (1, 144, 16), "stride0": (1, 160, 48), "stride1": (1, 208, 48),
    "tensor_dim2": (2, 0, 32), "tensor_dim3": (2, 32, 32), "stride2": (2, 64, 48), "tile_dim3": (2, 112, 16),
    "stride3": (3, 0, 48), "tensor_dim4": (3, 48, 32), "tile_dim4": (3, 80, 16),
}  # fmt: skip


def words(count: int = 1, type: int = 2, rows: Sequence[int] = (), **fields: int) -> list[list[int]]:
    """The groups of a descriptor, without its addresses."""
    groups = [0] * 4
    for name, value in {"count": count, "type": type, **fields}.items():
        group, low, width = FIELDS[name]
        assert value < 1 << width
        groups[group] |= value << low
    width = 32 if fields.get("index_32") else 16
    for i, row in enumerate(rows):
        groups[2 + i * width // 128] |= row << i * width % 128
    return [[g >> 32 * i & 0xFFFFFFFF for i in range(n)] for g, n in zip(groups, (4, 8, 4, 4), strict=True)]


def call(name: str, groups: list[list[int]], pointer: str, tag: str, lds: str = "@lds", d2: bool = False) -> str:
    """Builds the descriptor with its addresses and calls the instruction."""
    first = groups[0]
    lines = [
        f"  %{tag}l = ptrtoint ptr addrspace(3) {lds} to i32",
        f"  %{tag}a = ptrtoint ptr addrspace(1) {pointer} to i64",
        f"  %{tag}lo = trunc i64 %{tag}a to i32",
        f"  %{tag}s = lshr i64 %{tag}a, 32",
        f"  %{tag}h = trunc i64 %{tag}s to i32",
        f"  %{tag}hi = or i32 %{tag}h, {first[3]}",
        f"  %{tag}0 = insertelement <4 x i32> poison, i32 {first[0]}, i32 0",
    ]
    for i, word in enumerate((f"%{tag}l", f"%{tag}lo", f"%{tag}hi"), 1):
        lines.append(f"  %{tag}{i} = insertelement <4 x i32> %{tag}{i - 1}, i32 {word}, i32 {i}")
    rest = [f"<{len(g)} x i32> <{', '.join(f'i32 {w}' for w in g)}>" for g in groups[1:]]
    operands = ", ".join([f"<4 x i32> %{tag}3", *(rest[:1] if d2 else rest)])
    return "\n".join(lines) + f"\n  call void @llvm.amdgcn.{name}{'.d2' if d2 else ''}({operands}, i32 0)\n"


def module(body: str, lds_bytes: int = 4096) -> str:
    """A kernel; ``%w`` is its wave of 32 lanes."""
    return (
        f"@lds = internal addrspace(3) global [{lds_bytes} x i8] poison, align 16\n"
        "define amdgpu_kernel void @k(ptr addrspace(1) %in, ptr addrspace(1) %out) {\nentry:\n"
        "  %t = call i32 @llvm.amdgcn.workitem.id.x()\n  %w = lshr i32 %t, 5\n" + body + "  ret void\n}\n"
    )


def run(text: str, source: np.ndarray, out: np.ndarray, block: int = 32, **options: object) -> np.ndarray:
    simulate(text, grid=1, block=block, args=[source, out], target="gfx1250", source_name="k.ll", **options)
    return out


def there_and_back(load: list[list[int]], count: int, size: int, d2: bool = False, before: str = WAIT) -> str:
    """Loads a tile into LDS, and stores ``count`` elements of LDS in a row."""
    back = words(data_size=size.bit_length() - 1, tensor_dim0=count, tile_dim0=count)
    return module(
        call("tensor.load.to.lds", load, "%in", "a", d2=d2) + before
        + call("tensor.store.from.lds", back, "%out", "b") + WAIT,
        max(count * size, 16),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.int64])
def test_a_tile_of_two_dimensions_arrives_row_by_row(dtype: type) -> None:
    size = np.dtype(dtype).itemsize
    source = np.arange(12 * 20).reshape(12, 20).astype(dtype)
    load = words(data_size=size.bit_length() - 1, tensor_dim0=20, tensor_dim1=12, tile_dim0=8, tile_dim1=5, stride0=20)
    out = run(there_and_back(load, 40, size, d2=True), source, np.zeros(40, dtype))
    assert np.array_equal(out, source[:5, :8].ravel())


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_every_rank_has_its_extents_and_strides(rank: int) -> None:
    shape, tile = (3, 4, 5, 6, 7)[:rank], (2, 3, 2, 4, 3)[:rank]
    source = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    fields: dict[str, int] = {"data_size": 2}
    for i in range(rank):
        fields[f"tensor_dim{i}"], fields[f"tile_dim{i}"] = shape[-1 - i], tile[-1 - i]
        if i:
            fields[f"stride{i - 1}"] = source.strides[-1 - i] // 4
    count = int(np.prod(tile))
    out = run(there_and_back(words(**fields), count, 4), source, np.zeros(count, np.int32))
    assert np.array_equal(out, source[tuple(slice(n) for n in tile)].ravel())


def test_what_lies_past_the_extent_reads_as_zero_and_needs_no_memory() -> None:
    source = np.arange(1, 7 * 5 + 1, dtype=np.int32).reshape(7, 5)
    load = words(data_size=2, tensor_dim0=5, tensor_dim1=7, tile_dim0=8, tile_dim1=9, stride0=5)
    out = run(there_and_back(load, 72, 4), source, np.full(72, -1, np.int32))
    want = np.zeros((9, 8), np.int32)
    want[:7, :5] = source
    assert np.array_equal(out, want.ravel())


def test_a_store_leaves_alone_what_lies_past_the_extent() -> None:
    load = words(data_size=2, tensor_dim0=32, tile_dim0=32)
    store = words(data_size=2, tensor_dim0=5, tensor_dim1=3, tile_dim0=8, tile_dim1=4, stride0=10)
    text = module(
        call("tensor.load.to.lds", load, "%in", "a") + WAIT + call("tensor.store.from.lds", store, "%out", "b") + WAIT
    )
    source = np.arange(32, dtype=np.int32)
    out = run(text, source, np.full((3, 10), -1, np.int32))
    want = np.full((3, 10), -1)
    want[:, :5] = source.reshape(4, 8)[:3, :5]
    assert np.array_equal(out, want)


@pytest.mark.parametrize(("interval", "amount"), [(2, 1), (8, 4), (16, 128), (4, 3)])
def test_padding_leaves_gaps_in_lds(interval: int, amount: int) -> None:
    """The gaps keep what they held."""
    load = words(data_size=1, tensor_dim0=64, tile_dim0=16, tile_dim1=4, tensor_dim1=4, stride0=16, pad_enable=1,
                 pad_interval=interval.bit_length() - 2, pad_amount=amount - 1)  # fmt: skip
    dwords = 32 + (32 // interval) * amount
    fill = words(data_size=2, tensor_dim0=dwords, tile_dim0=dwords)
    back = words(data_size=2, tensor_dim0=dwords, tile_dim0=dwords)
    text = module(
        call("tensor.load.to.lds", fill, "%out", "f") + WAIT + call("tensor.load.to.lds", load, "%in", "a") + WAIT
        + call("tensor.store.from.lds", back, "%out", "b") + WAIT
    )  # fmt: skip
    source = np.arange(64, dtype=np.float16)
    out = run(text, source, np.full(dwords, -1, np.int32))
    got = out.reshape(-1, interval + amount)
    assert np.array_equal(got[:, :interval].ravel(), source.view(np.int32))
    assert (got[:, interval:] == -1).all()


def test_a_store_ignores_padding() -> None:
    load = words(data_size=2, tensor_dim0=32, tile_dim0=32)
    store = words(data_size=2, tensor_dim0=32, tile_dim0=32, pad_enable=1, pad_interval=0, pad_amount=3)
    text = module(
        call("tensor.load.to.lds", load, "%in", "a") + WAIT + call("tensor.store.from.lds", store, "%out", "b") + WAIT
    )
    source = np.arange(32, dtype=np.int32)
    assert np.array_equal(run(text, source, np.zeros(32, np.int32)), source)


@pytest.mark.parametrize(("wide", "rows"), [(0, [5, 0, 5, 2, 11, 3, 1, 9, 4, 6]), (1, [7, 1, 1, 0, 11])])
def test_gather_mode_takes_rows_by_number(wide: int, rows: list[int]) -> None:
    source = np.arange(12 * 6, dtype=np.int32).reshape(12, 6)
    load = words(data_size=2, gather=1, index_32=wide, rows=rows, tensor_dim0=6, tensor_dim1=10, tile_dim0=4,
                 tile_dim1=len(rows), stride0=6)  # fmt: skip
    out = run(there_and_back(load, 4 * len(rows), 4), source, np.zeros(4 * len(rows), np.int32))
    want = source[rows, :4] * (np.array(rows) < 10)[:, None]
    assert np.array_equal(out, want.ravel())


def test_iteration_repeats_a_tile_at_other_addresses() -> None:
    source = np.arange(96, dtype=np.int32)
    load = words(data_size=2, iterate=1, tensor_dim0=4, tensor_dim1=2, tile_dim0=4, tile_dim1=2, stride0=6, tile_dim3=2,
                 tensor_dim3=8, stride2=24)  # fmt: skip
    out = run(there_and_back(load, 24, 4), source, np.zeros(24, np.int32))
    want = [source[24 * i + 6 * j : 24 * i + 6 * j + 4] for i in range(3) for j in range(2)]
    assert np.array_equal(out, np.concatenate(want))


def test_count_zero_moves_nothing() -> None:
    text = module(call("tensor.load.to.lds", words(count=0, tile_dim0=4096, tensor_dim0=4096), "%in", "a"))
    run(text, np.zeros(1, np.int32), np.zeros(1, np.int32))


# ---- what is wrong


def _reads_lds(in_wave: str, for_all: str) -> str:
    """Wave 0 loads a tile and does ``in_wave``; all waves do ``for_all`` and read it."""
    load = words(data_size=2, tensor_dim0=64, tile_dim0=64)
    return module(
        "  %first = icmp eq i32 %w, 0\n  br i1 %first, label %load, label %read\nload:\n"
        + call("tensor.load.to.lds", load, "%in", "a") + in_wave + "  br label %read\nread:\n" + for_all
        + "  %q = getelementptr i32, ptr addrspace(3) @lds, i32 %t\n  %v = load i32, ptr addrspace(3) %q, align 4\n"
        "  %p = getelementptr i32, ptr addrspace(1) %out, i32 %t\n  store i32 %v, ptr addrspace(1) %p, align 4\n"
    )  # fmt: skip


SOURCE = np.arange(64, dtype=np.int32)


def test_wait_and_barrier_make_a_tile_visible_to_other_waves() -> None:
    out = run(_reads_lds(WAIT, FENCED_BARRIER), SOURCE, np.zeros(64, np.int32), 64)
    assert np.array_equal(out, SOURCE)


@pytest.mark.parametrize(
    ("in_wave", "for_all", "message"),
    [
        (WAIT, "", "LDS race on LDS byte 128 of @lds: wave 1 and wave 0 are not ordered"),
        ("", FENCED_BARRIER, "before the tensor DMA of the same wave is complete|LDS race"),
        ("  call void @llvm.amdgcn.s.wait.asynccnt(i16 0)\n", FENCED_BARRIER, "s.wait.tensorcnt"),
        ("  call void @llvm.amdgcn.s.wait.tensorcnt(i16 1)\n", FENCED_BARRIER, "s.wait.tensorcnt"),
    ],
)
def test_a_tile_read_without_wait_or_barrier_is_found(in_wave: str, for_all: str, message: str) -> None:
    with pytest.raises(SimError, match=message) as caught:
        run(_reads_lds(in_wave, for_all), SOURCE, np.zeros(64, np.int32), 64)
    assert "'%v = load i32" in str(caught.value)


def test_waits_count_tensor_operations() -> None:
    """Of two loads the first is complete when one may be outstanding."""
    load = words(data_size=2, tensor_dim0=32, tile_dim0=32)
    second = "  %half = getelementptr i8, ptr addrspace(3) @lds, i32 128\n"
    text = module(
        second + call("tensor.load.to.lds", load, "%in", "a") + call("tensor.load.to.lds", load, "%in", "b", "%half")
        + "  call void @llvm.amdgcn.s.wait.tensorcnt(i16 1)\n"
        "  %q = getelementptr i32, ptr addrspace(3) @lds, i32 %t\n  %v = load i32, ptr addrspace(3) %q, align 4\n"
        "  %p = getelementptr i32, ptr addrspace(1) %out, i32 %t\n  store i32 %v, ptr addrspace(1) %p, align 4\n"
    )  # fmt: skip
    assert np.array_equal(run(text, SOURCE, np.zeros(32, np.int32)), SOURCE[:32])
    with pytest.raises(SimError, match="tensor DMA of the same wave"):
        run(text.replace("ptr addrspace(3) @lds, i32 %t", "ptr addrspace(3) %half, i32 %t"), SOURCE, np.zeros(32))


def test_overwriting_what_a_store_still_reads_is_found() -> None:
    load, store = words(data_size=2, tensor_dim0=32, tile_dim0=32), words(data_size=2, tensor_dim0=32, tile_dim0=32)
    text = module(
        call("tensor.load.to.lds", load, "%in", "a") + WAIT + call("tensor.store.from.lds", store, "%out", "b") + "HERE"
        "  %q = getelementptr i32, ptr addrspace(3) @lds, i32 %t\n  store i32 0, ptr addrspace(3) %q, align 4\n"
    )
    run(text.replace("HERE", WAIT), SOURCE, np.zeros(32, np.int32))
    with pytest.raises(SimError, match=r"'store i32 0.*before the tensor DMA of the same wave"):
        run(text.replace("HERE", ""), SOURCE, np.zeros(32, np.int32))


def test_waves_may_load_the_same_tile_to_the_same_place() -> None:
    load = words(data_size=2, tensor_dim0=64, tile_dim0=64)
    body = call("tensor.load.to.lds", load, "%in", "a") + WAIT + FENCED_BARRIER
    tail = _reads_lds("", "").partition("read:\n")[2].partition("  ret void")[0]
    assert np.array_equal(run(module(body + tail), SOURCE, np.zeros(64, np.int32), 64), SOURCE)


def test_waves_that_load_different_data_to_one_place_race() -> None:
    load = words(data_size=2, tensor_dim0=16, tile_dim0=16)
    body = "  %o = mul i32 %w, 4\n  %wu = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %o)\n"
    body += "  %pw = getelementptr i8, ptr addrspace(1) %in, i32 %wu\n"
    with pytest.raises(SimError, match="LDS race on LDS byte 0 of @lds: wave 1 and wave 0"):
        run(module(body + call("tensor.load.to.lds", load, "%pw", "a")), SOURCE, np.zeros(64, np.int32), 64)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"type": 1, "tile_dim0": 1}, "type is 2 and count 1"),
        ({"count": 2, "tile_dim0": 1}, "type is 2 and count 1"),
        ({"barrier": 1, "tile_dim0": 0}, "clear atomic_barrier_enable"),
        ({"tile_dim0": 3, "data_size": 1, "pad_enable": 1}, "rows of whole dwords"),
        ({"tile_dim0": 3, "iterate": 1, "tile_dim3": 256}, "at most 256 times"),
        ({"tile_dim0": 3, "gather": 1, "tile_dim1": 17}, "at most 16 of 16 bits"),
        (
            {"tile_dim0": 65, "tensor_dim0": 65, "data_size": 2},
            "reads 4 bytes out of bounds, at byte 256 of arg",
        ),
        ({"tile_dim0": 2000, "data_size": 2}, "writes 4 bytes out of bounds, at byte 4096 of @lds .*element 1024"),
    ],
)
def test_a_wrong_descriptor_is_named(fields: dict[str, int], message: str) -> None:
    with pytest.raises(SimError, match=message):
        run(module(call("tensor.load.to.lds", words(**fields), "%in", "a")), SOURCE, np.zeros(64, np.int32))


def test_a_descriptor_that_differs_between_lanes_is_found() -> None:
    body = "  %pw = getelementptr i32, ptr addrspace(1) %in, i32 %t\n"
    text = module(body + call("tensor.load.to.lds", words(tile_dim0=1, tensor_dim0=1), "%pw", "a"))
    with pytest.raises(SimError, match="or with readfirstlane"):
        run(text, SOURCE, np.zeros(64, np.int32))


def test_lds_read_by_a_store_must_have_been_written() -> None:
    text = module(call("tensor.store.from.lds", words(data_size=2, tile_dim0=4, tensor_dim0=4), "%out", "a"))
    with pytest.raises(SimError, match="read of uninitialised LDS byte 0 of @lds"):
        run(text, SOURCE, np.zeros(64, np.int32))


def test_results_are_the_same_without_checkers() -> None:
    source = np.arange(12 * 20, dtype=np.int32).reshape(12, 20)
    load = words(data_size=2, tensor_dim0=20, tensor_dim1=12, tile_dim0=8, tile_dim1=5, stride0=20)
    for checks in ("none", "default", "all"):
        out = run(there_and_back(load, 40, 4, d2=True), source, np.zeros(40, np.int32), checks=checks, profile=True)
        assert np.array_equal(out, source[:5, :8].ravel())
