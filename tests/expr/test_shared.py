"""Structs, unions, arrays, and shared memory."""

from __future__ import annotations

import numpy as np
import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.errors import LaunchError, TraceError
from flyllvm.expr.composite import align_of, bytes_of

from .kernels import Tracing


@fx.struct
class Pair:
    """An integer and a float."""

    a: fx.Int8
    b: fx.Float32


@fx.struct
class Tile:
    head: Pair
    data: fx.Array[fx.Float16, 64, 16]
    odd: fx.Array[fx.Float4E2M1FN, 33]
    wide: fx.Align[fx.Int32, 64]


@fx.union
class Either:
    ints: fx.Array[fx.Int32, 16]
    halves: fx.Array[fx.Float16, 32]


def test_layouts_are_those_of_c() -> None:
    assert (Pair.size_bytes, Pair.align_bytes, Pair.offsets) == (8, 4, {"a": 0, "b": 4})
    assert Tile.offsets == {"head": 0, "data": 16, "odd": 144, "wide": 192}
    assert (Tile.size_bytes, Tile.align_bytes) == (256, 64)
    assert (Either.size_bytes, Either.align_bytes, Either.offsets) == (64, 4, {"ints": 0, "halves": 0})
    made = fx.struct["x" : fx.Int16, "y" : fx.Float64]
    assert (made.size_bytes, made.align_bytes, made.offsets["y"]) == (16, 8, 8)
    empty = fx.struct[()]
    assert (empty.size_bytes, empty.align_bytes) == (0, 1)


@pytest.mark.parametrize(
    ("kind", "size", "align"),
    [
        (fx.Array[fx.Float4E2M1FN, 128 * 33], 2112, 1),
        (fx.Array[fx.Float4E2M1FN, 33], 17, 1),
        (fx.Array[fx.Float6E2M3FN, 3], 3, 1),
        (fx.Array[fx.Float16, 3], 6, 2),
        (fx.Array[fx.Int8, 5, 32], 5, 32),
        (fx.Align[fx.Float16, 8], 2, 8),
        (fx.Int64, 8, 8),
    ],
    ids=str,
)
def test_sizes_are_rounded_up_to_bytes(kind: object, size: int, align: int) -> None:
    assert (bytes_of(kind), align_of(kind)) == (size, align)


def test_structs_are_frozen_values() -> None:
    pair = Pair(1, b=2.5)
    assert int(pair.a) == 1 and type(pair.b) is fx.Float32 and int(pair.replace(a=7).a) == 7 and int(pair.a) == 1
    assert repr(pair) == "Pair(a=Int8(1), b=Float32(2.5))"
    with pytest.raises(TraceError, match=r"s = s\.replace\(a="):
        pair.a = 3
    with pytest.raises(TraceError, match="give each of a, b once"):
        Pair(1)
    with pytest.raises(TraceError, match="poke one of its variants"):
        Either()


def test_what_a_struct_would_not_have_is_refused_where_it_is_defined() -> None:
    class Base:
        a: fx.Int32

    with pytest.raises(TraceError, match=r"Derived inherits from Base\n.*all fields in one class"):

        @fx.struct
        class Derived(Base):
            b: fx.Int32

    with pytest.raises(TraceError, match=r"WithMethod\.get is no annotated field\n.*write a function"):

        @fx.struct
        class WithMethod:
            a: fx.Int32

            def get(self) -> object:
                return self.a

    with pytest.raises(TraceError, match=r"WithDefault\.a = 3: fields have no defaults\n"):

        @fx.struct
        class WithDefault:
            a: fx.Int32 = 3


@pytest.mark.parametrize("value", [3.5, 128, -129, np.int64(1 << 40), np.float32(0.5)])
def test_a_field_is_the_number_that_was_given_or_an_error(value: object) -> None:
    with pytest.raises(TraceError, match=r"Pair\.a=.* does not fit Int8\n.*or Int8\(.*to convert it on purpose"):
        Pair(value, 0.0)
    with pytest.raises(TraceError, match="does not fit Int8"):
        Pair(1, 0.0).replace(a=value)
    assert int(Pair(fx.Int8(value), 0.0).a) == int(np.int64(value).astype(np.int8))
    assert int(Pair(np.int64(-128), 0.0).a) == -128 and int(Pair(3.0, 0.0).a) == 3


def test_types_that_cannot_be_stored_are_refused() -> None:
    cases = [
        (lambda: fx.struct["x" : fx.Float4E2M1FN], "which packs"),
        (lambda: fx.struct["x" : fx.Boolean], "smaller than a byte"),
        (lambda: fx.struct["_x" : fx.Int8], "without a leading underscore"),
        (lambda: fx.struct["peek" : fx.Int8], "not one of replace, peek, poke"),
        (lambda: fx.struct["x" : fx.Int8, "x" : fx.Int8], "every field its own name"),
        (lambda: fx.struct["x":int], "use a number type"),
        (lambda: fx.Array[fx.Int8, 0], "positive count"),
        (lambda: fx.Array[fx.Int32, 4, 2], "at least 4 bytes"),
        (lambda: fx.Align[fx.Int32, 12], "power of two of at least 4 bytes"),
        (lambda: fx.struct[fx.Int8], 'fx.struct["name": type'),
    ]
    for run, fix in cases:
        with pytest.raises(TraceError) as e:
            run()
        assert fix in str(e.value), str(e.value)


def test_arena_bumps_offsets() -> None:
    arena = fx.Arena(32)
    assert [arena.allocate(fx.Int8), arena.allocate(fx.Float32), arena.allocate(10), arena.allocate(Pair, 64)] == [
        0, 4, 32, 64,
    ]  # fmt: skip
    assert arena.allocated_bytes == 72
    with pytest.raises(TraceError, match="at least one byte"):
        arena.allocate(0)
    with pytest.raises(TraceError, match="power of two"):
        arena.allocate(4, 3)
    with pytest.raises(TraceError, match="no kernel is being traced"):
        fx.SharedAllocator()


@flyc.kernel(known_block_size=(64, 1, 1))
def stored(x: fx.Tensor, y: fx.Tensor, static: bool = True):
    at = fx.thread_idx.x
    allocator = fx.SharedAllocator(static=static)
    first = allocator.allocate(16)
    tile = allocator.allocate(Tile)
    either = allocator.allocate(Either)
    first.store(fx.Int8(1))
    tile.data.ptr[at] = x[at].to(fx.Float16)
    if at == 0:
        tile.head.poke(Pair(5, 0.5))
        tile.wide.poke(9)
        either.ints[3] = 0x40003C00
    fx.barrier()
    head = tile.head.peek()
    half = (either.halves.ptr + 6).load(count=2)
    neighbour = tile.data.view(fx.make_layout(64, 1))[at ^ 1]
    y[at] = neighbour.to(fx.Float32) + head.b + head.a + tile.wide.peek() + half[0].to(fx.Float32) + half[1]


@pytest.mark.sim
@pytest.mark.parametrize("static", [True, False])
def test_storage_reads_back_what_was_poked(static: bool) -> None:
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    artifact = flyc.compile(
        stored, "f32[64]", "f32[64]", arch="gfx942", stop_after="llvm", constants={"static": static}
    )
    needed = 0 if static else 16 + 48 + 256 + 64
    assert artifact.llvm_ir.count("addrspace(3) global") == (6 if static else 1)
    # Tile is 64 bytes aligned, so 48 bytes lie between the first allocation and it.
    assert (artifact.dynamic_lds_bytes or 0) == needed
    if needed:
        with pytest.raises(LaunchError, match=f"give at least {needed}"):
            artifact.simulate(x, y, grid=(1, 1, 1), dynamic_lds_bytes=needed - 1)
    artifact.simulate(x, y, grid=(1, 1, 1))
    np.testing.assert_array_equal(y, x[np.arange(64) ^ 1] + 0.5 + 5 + 9 + 1.0 + 2.0)


def test_dynamic_allocation_says_how_much_it_needs() -> None:
    with Tracing() as k:
        allocator = fx.SharedAllocator(static=False)
        allocator.allocate(100)
        allocator.allocate(Either, alignment=64)
        assert allocator.allocated_bytes == 192 and k.kernel.attrs["dynamic_lds_bytes"] == 192
        assert allocator.base.address_space == "shared" and allocator.base.alignment == 1024
        static = fx.SharedAllocator()
        with pytest.raises(TraceError, match="static=False"):
            _ = static.base
        with pytest.raises(TraceError, match="use the pointers of its fields"):
            _ = static.allocate(Pair).ptr
        with pytest.raises(TraceError, match="fields: a, b"):
            _ = static.allocate(Pair).c
        with pytest.raises(TraceError, match="peek one of its variants"):
            static.allocate(Either).peek()
        with pytest.raises(TraceError, match="poke a struct of the same fields"):
            static.allocate(Pair).poke(1)
        view = fx.Storage[fx.Int32](fx.shared_memory(fx.Int8, 4))
        view.poke(3)
        assert view.peek().dtype is fx.Int32


def test_two_dynamic_allocators_do_not_overlap() -> None:
    with Tracing() as k:
        first, second = fx.SharedAllocator(static=False), fx.SharedAllocator(static=False)
        first.allocate(256)
        second.allocate(64)
        first.allocate(32)
        assert (first.allocated_bytes, second.allocated_bytes) == (352, 320)
        assert k.kernel.attrs["dynamic_lds_bytes"] == 352


@pytest.mark.parametrize(("arch", "limit"), [("gfx942", 65536), ("gfx950", 163840)])
def test_more_lds_than_the_target_has_is_refused_with_the_bytes(arch: str, limit: int) -> None:
    with Tracing(arch):
        fx.shared_memory(fx.Float16, limit // 2 - 64)
        fx.shared_memory(fx.Int8, 128)
        with pytest.raises(TraceError, match=f"needs 16 bytes of LDS beside the {limit} in use"):
            fx.shared_memory(fx.Int8, 16)
        with pytest.raises(TraceError, match=f"{arch} has {limit} bytes for a workgroup; use smaller tiles"):
            fx.SharedAllocator(static=False).allocate(16)


@fx.struct
class State:
    count: fx.Int32
    total: fx.Float32


@flyc.kernel(known_block_size=(64, 1, 1))
def carried(x: fx.Tensor, y: fx.Tensor, n: fx.Int32):
    state = State(0, 0.0)
    for i in range(n):
        if x[i] > 0.0:
            state = state.replace(count=state.count + 1, total=state.total + x[i])
    y[fx.thread_idx.x] = state.total / state.count


@pytest.mark.sim
def test_a_struct_is_carried_through_loops_and_branches() -> None:
    x, y = np.array([1, -5, 2, 6, -1], np.float32), np.zeros(64, np.float32)
    artifact = flyc.compile(carried, "f32[5]", "f32[64]", "i32", arch="gfx942", stop_after="llvm")
    artifact.simulate(x, y, 5, grid=(1, 1, 1))
    np.testing.assert_array_equal(y, 3)
