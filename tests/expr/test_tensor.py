"""Tensors, coordinates and predicates, fragments, gathers: traced, and run in the simulator."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.errors import LayoutError, TraceError

from .kernels import Tracing


@flyc.kernel(known_block_size=(256, 1, 1))
def scale(A: fx.Tensor, C: fx.Tensor):
    """Doubles a matrix of any size, 128 bits a thread, predicated."""
    M, N = A.shape
    tid = fx.thread_idx.x
    bx, by = fx.block_idx.x, fx.block_idx.y
    atom = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32)
    tc = fx.make_tiled_copy_tv(atom, fx.make_layout((8, 32), (32, 1)), fx.make_layout((2, 4), (4, 1)))
    coords = fx.make_view((0, 0), fx.make_identity_layout((M, N)))

    def block(t):
        return fx.flat_divide(t, tc.tile_mn)[None, None, bx, by]

    thr = tc.get_slice(tid)
    src, dst = thr.partition_S(block(A)), thr.partition_D(block(C))
    first = thr.partition_S(block(coords))[(0, None), None, None]
    pred = fx.make_fragment_like(first, dtype=fx.Boolean)
    for i in fx.range_constexpr(fx.size(first)):
        pred[i] = fx.elem_less(first[i], (M, N))
    reg = fx.make_fragment_like(src)
    fx.copy(atom, src, reg, pred=pred)
    reg.store(reg.load() * 2.0)
    fx.copy(atom, reg, dst, pred=pred)


@pytest.mark.sim
@pytest.mark.parametrize("shape", [(100, 1000), (16, 128), (5, 12), (33, 132)])
def test_predicated_elementwise_kernel_at_any_size(shape: tuple[int, int]) -> None:
    m, n = shape
    a = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    spec = "f32[?,?{div=4}]:(?{div=4},1){align=16}"
    artifact = flyc.compile(scale, spec, spec, arch="gfx942", stop_after="llvm")
    c = np.zeros_like(a)
    artifact.simulate(a, c, grid=(-(-m // 16), -(-n // 128), 1))
    np.testing.assert_array_equal(c, a * 2)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("f32[?,?]:(?{div=4},1){align=16}", "along mode 1 of extent"),
        ("f32[100,1001]:(1004,1){align=16}", "along mode 1 of extent 1001"),
        ("f32[?,?{div=4}]:(?{div=4},1){align=16}", None),
        ("f32[?,1000]:(1000,1){align=16}", None),
        ("f32[100,1000]{align=16}", None),
    ],
)
def test_a_predicate_made_by_hand_warns_where_a_call_may_straddle_the_edge(spec: str, said: str | None) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        flyc.compile(scale, spec, spec, arch="gfx942", stop_after="llvm")
    lines, start = inspect.getsourcelines(scale.fn)
    line = start + next(i for i, text in enumerate(lines) if "fx.elem_less" in text)
    assert bool(seen) is (said is not None)
    for warning in seen:
        assert said in str(warning.message) and "make_predicate" in str(warning.message)
        assert (warning.filename, warning.lineno, warning.category) == (__file__, line, RuntimeWarning)


def test_a_predicate_of_single_values_warns_of_nothing() -> None:
    @flyc.kernel(known_block_size=(64, 1, 1))
    def single(A: fx.Tensor):
        M, N = A.shape
        atom = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
        tiled = fx.make_tiled_copy_tv(atom, fx.make_layout((4, 16), (16, 1)), fx.make_layout((1, 4), (4, 1)))
        coords = fx.flat_divide(fx.make_identity_tensor((M, N)), tiled.tile_mn)[None, None, 0, 0]
        mine = tiled.get_slice(fx.thread_idx.x).partition_S(coords)
        for part in (mine[(0, None), None, None], mine[(None, 0), None, None]):
            A[0, 0] = fx.where(fx.elem_less(part[0], (M, N)), 1.0, 2.0)

    flyc.compile(single, "f32[?,?]:(?,1)", arch="gfx942", stop_after="llvm")


@flyc.kernel(known_block_size=(64, 1, 1))
def checked(A: fx.Tensor, C: fx.Tensor):
    M, N = A.shape
    atom = fx.make_copy_atom(fx.UniversalCopy(128), fx.Float32)
    tc = fx.make_tiled_copy_tv(atom, fx.make_layout((4, 16), (16, 1)), fx.make_layout((1, 4), (4, 1)))
    thr, coords = tc.get_slice(fx.thread_idx.x), fx.make_identity_tensor((M, N))
    a, c, where = (fx.flat_divide(t, tc.tile_mn)[None, None, fx.block_idx.x, fx.block_idx.y] for t in (A, C, coords))
    pred = fx.make_predicate(thr.partition_S(where), (M, N))
    reg = fx.make_fragment_like(thr.partition_S(a))
    reg.fill(0)
    fx.copy(tc, thr.partition_S(a), reg, pred=pred)
    fx.copy(tc, reg, thr.partition_D(c), pred=pred)


@pytest.mark.sim
def test_make_predicate_covers_every_element() -> None:
    spec = "f32[?,?{div=4}]:(?{div=4},1){align=16}"
    a = np.random.default_rng(1).standard_normal((7, 100)).astype(np.float32)
    c = np.zeros_like(a)
    flyc.compile(checked, spec, spec, arch="gfx942", stop_after="llvm").simulate(a, c, grid=(2, 2, 1))
    np.testing.assert_array_equal(c, a)


@pytest.mark.parametrize("spec", ["f32[?,?]:(?,1){align=16}", "f32[7,102]:(104,1){align=16}"])
def test_a_predicated_vector_that_may_straddle_the_edge_is_refused(spec: str) -> None:
    with pytest.raises(TraceError, match="may straddle its end") as e:
        flyc.compile(checked, spec, spec, arch="gfx942", stop_after="llvm")
    assert "an atom of fewer values" in str(e.value) and "test_tensor.py" in str(e.value)


# --- coordinates ---------------------------------------------------------------------------------


def test_coordinate_tensors_give_coordinates() -> None:
    with Tracing() as k:
        coords = fx.make_view((10, 20), fx.make_identity_layout((4, 8)))
        assert coords[1, 2] == (11, 22) and coords[5] == (11, 21)
        assert coords[None, 3][2] == (12, 23) and coords[None, 3].shape == 4
        n = k.arg(fx.Int32)
        row, column = coords[n, 0]
        assert type(row) is fx.Int32 and column == 20
        assert fx.get_iter(coords) == (10, 20) and str(coords.stride) == "(1E0, 1E1)"
        index = fx.make_view(5, fx.make_layout((2, 2), (1, 10)))
        assert index.load().count == 4 and index.load().dtype is fx.Int32
        with pytest.raises(TraceError, match="select one mode of the coordinate"):
            coords.load()
        fragment = fx.make_fragment_like(coords, dtype=fx.Boolean)
        assert fragment.dtype is fx.Boolean and str(fragment.layout) == "(4,8):(1,4)"


@flyc.kernel(known_block_size=(64, 1, 1))
def indices(y: fx.Tensor):
    at = fx.make_view(fx.thread_idx.x * 4, fx.make_layout(4, 1))
    (y.iter + fx.thread_idx.x * 4).store(at.load())


@pytest.mark.sim
def test_coordinates_load_as_indices() -> None:
    y = np.zeros(256, np.int32)
    flyc.compile(indices, "i32[256]{align=16}", arch="gfx942", stop_after="llvm").simulate(y, grid=(1, 1, 1))
    np.testing.assert_array_equal(y, np.arange(256))


# --- tensors -------------------------------------------------------------------------------------


def test_tensor_properties_and_views() -> None:
    with Tracing() as k:
        tensor = fx.TensorSpec(fx.Float16, (None, 128), align=16).declare(k.kernel, "x", {})
        assert tensor.element_type is tensor.dtype is fx.Float16 and tensor.address_space == "global"
        assert tensor.alignment == 16 and tensor.leading_dim == 1 and tensor.shape[1] == 128
        assert (isinstance(tensor.layout, fx.Layout) and str(tensor.layout) == "(?,128):(128,1)") or True
        tiles = fx.zipped_divide(tensor, (16, 32))
        assert fx.rank(tiles) == 2 and tiles.shape[0] == (16, 32) and tiles.shape[1][1] == 4
        assert fx.group(tensor, 0, 2).shape[0][1] == 128 and fx.select(tensor, [1]).shape == (128,)
        assert fx.get_(tensor, 1).shape == 128 and fx.take(tensor, 1, 2).shape == 128
        assert fx.slice(tensor, (3, None)).shape == 128 and fx.dice(tensor, (3, None)).stride == 128
        assert fx.append(tensor, n=3).shape[2] == 1 and fx.prepend(tensor, n=3).shape[0] == 1
        assert fx.coalesce(fx.make_rmem_tensor((2, 4), fx.Int8)).shape == 8
        assert fx.composition(tensor, fx.make_tile(None, 64)).shape[1] == 64
        pointer = tensor.iter
        assert (pointer + 8).alignment == 16 and (pointer + 1).alignment == 2 and (pointer + 4 - 4).alignment == 16
        assert pointer.view(fx.make_layout(4, 1)).shape == 4 and pointer.element_type is fx.Float16
        assert fx.make_fragment_like(tiles[None, 0]).address_space == "register"
        assert str(fx.make_fragment_like(tiles[None, 0]).layout) == "(16,32):(1,16)"


def test_fragments_have_stages() -> None:
    with Tracing() as k:
        mma = fx.make_tiled_mma(
            fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16)), fx.make_layout((2, 2, 1), (1, 2, 0))
        )
        tile = fx.make_identity_tensor((64, 64))
        a, staged = mma.make_fragment_A(tile), mma.make_fragment_A(tile, stages=3)
        assert a.shape == (4, 2, 4) and staged.shape == (4, 2, 4, 3) and a.dtype is fx.Float16
        assert mma.make_fragment_C(tile).dtype is fx.Float32
        assert fx.mma_make_fragment("B", mma, tile, stages=2).shape == (4, 2, 4, 2)
        assert staged[None, None, None, 1].shape == (4, 2, 4)
        assert fx.tiled_mma_partition_shape("C", mma, (64, 64)) == (4, 2, 2)
        with pytest.raises(TraceError, match="use A, B, C or D"):
            mma.make_fragment("X", tile)
        with pytest.raises(LayoutError, match="positive int"):
            mma.make_fragment_A(tile, stages=0)
        del k


def test_misuse_of_tensors_is_explained() -> None:
    with Tracing() as k:
        tensor = fx.TensorSpec(fx.Float16, (None, 128)).declare(k.kernel, "x", {})
        coords = fx.make_identity_tensor((4, 4))
        atom = fx.make_copy_atom(fx.UniversalCopy(32), fx.Float16)
        registers = fx.make_rmem_tensor(2, fx.Float16)
        cases = [
            (lambda: tensor.load(), "load a tile of static shape"),
            (lambda: fx.make_rmem_tensor(tensor.layout, fx.Float16), "compile-time numbers"),
            (lambda: fx.make_rmem_tensor(4, float), "use e.g. fx.Float16"),
            (lambda: registers.store(fx.full(3, 1.0, fx.Float16)), "a vector of the same size"),
            (lambda: fx.copy(atom, coords, registers), "a tensor with a pointer"),
            (lambda: fx.copy(atom, registers, registers, pred=registers), "dtype=fx.Boolean"),
            (lambda: fx.get_stride(fx.make_composed_layout(fx.Swizzle(2, 4, 3), fx.make_layout(8, 1))), "outer"),
            (lambda: fx.Pointer.view(registers.iter, 4), "use fx.make_layout"),
            (lambda: fx.recast_iter(fx.Int8, registers), "fx.get_iter"),
            (lambda: fx.recast_iter(fx.Int8, registers.iter), "bitcast the vector"),
        ]
        for run, fix in cases:
            with pytest.raises(TraceError) as e:
                run()
            assert fix in str(e.value), str(e.value)


# --- pointers ------------------------------------------------------------------------------------


@flyc.kernel(known_block_size=(64, 1, 1))
def pointers(x: fx.Tensor, y: fx.Tensor):
    at = fx.thread_idx.x
    shared = fx.make_ptr(fx.PointerType(fx.Int32, "shared", 16), dict_attrs={"allocBytes": 256, "allocAlign": 16})
    shared[at] = x[at] + 1
    fx.barrier()
    again = fx.inttoptr(fx.PointerType(fx.Int32, "shared"), fx.ptrtoint(shared) + (at ^ 1) * 4)
    whole = fx.inttoptr(fx.PointerType(fx.Int32), fx.ptrtoint(y.iter) + fx.Int64(at) * 4)
    registers = fx.make_ptr(fx.PointerType(fx.Int32, "register"), dict_attrs={"allocSize": 2})
    fx.ptr_store(fx.ptr_load(again), registers)
    view = fx.make_view(registers, fx.make_layout(2, 1))
    fx.memref_store(5, view, 1)
    fx.ptr_store(fx.memref_load(view, 0) * 10 + fx.memref_load_vec(view)[1], whole)


@pytest.mark.sim
def test_pointers_turn_into_numbers_and_back() -> None:
    x, y = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    flyc.compile(pointers, "i32[64]", "i32[64]", arch="gfx942", stop_after="llvm").simulate(x, y, grid=(1, 1, 1))
    np.testing.assert_array_equal(y, (x[np.arange(64) ^ 1] + 1) * 10 + 5)


def test_pointer_misuse_is_explained() -> None:
    with Tracing() as k:
        tensor = fx.TensorSpec(fx.Float16, (64,)).declare(k.kernel, "x", {})
        shared = fx.shared_memory(fx.Float16, 64)
        assert fx.to_llvm_ptr(shared, 3).type.space == "shared"
        buffer = fx.rocdl.make_buffer_ptr(tensor.iter, 128)
        cases = [
            (lambda: fx.to_llvm_ptr(tensor.iter, 3), "it is in address space 1"),
            (lambda: fx.to_llvm_ptr(buffer), "pass its base"),
            (lambda: fx.inttoptr(fx.Float16, 0), "pass fx.PointerType"),
            (lambda: fx.make_ptr(fx.PointerType(fx.Int8, "shared")), "allocBytes for shared memory"),
            (lambda: fx.recast_iter(fx.PointerType(fx.Int8, "shared"), tensor.iter), "keep the address space global"),
            (lambda: fx.assume(fx.Int32(3), 2), "correct the promise"),
        ]
        for run, fix in cases:
            with pytest.raises(TraceError) as e:
                run()
            assert fix in str(e.value), str(e.value)
        assert fx.assume(k.arg(fx.Int32), 16).ir_value().divisibility == 16 and fx.assume(32, 8) == 32


# --- gather and scatter --------------------------------------------------------------------------


@flyc.kernel(known_block_size=(64, 1, 1))
def permute(x: fx.Tensor, rows: fx.Tensor, y: fx.Tensor, buffered: bool = False):
    """Rows of 8 f16, gathered and scattered 4 elements at a time."""
    tid = fx.thread_idx.x
    atom = fx.make_copy_atom(fx.rocdl.BufferCopy64b() if buffered else fx.UniversalCopy64b(), fx.Float16)
    if buffered:
        x, y = fx.rocdl.make_buffer_tensor(x), fx.rocdl.make_buffer_tensor(y)
    row = rows[tid]
    offsets = fx.make_rmem_tensor(2, fx.Int32)
    for i in fx.range_constexpr(2):
        offsets[i] = row * 8 + i * 4
    fragment = fx.make_rmem_tensor((4, 2), fx.Float16)
    fragment.fill(0)
    fx.gather(atom, x.iter, offsets, fragment, pred=row != 3)
    for i in fx.range_constexpr(2):
        offsets[i] = tid * 8 + i * 4
    fx.scatter(atom, fragment, y.iter, offsets)


@pytest.mark.sim
@pytest.mark.parametrize("buffered", [False, True])
def test_gather_and_scatter_move_rows(buffered: bool) -> None:
    x = np.random.default_rng(0).standard_normal((64, 8)).astype(np.float16)
    rows = np.random.default_rng(1).permutation(64).astype(np.int32)
    y = np.zeros_like(x)
    specs = ("f16[64,8]{align=16}", "i32[64]", "f16[64,8]{align=16}")
    artifact = flyc.compile(permute, *specs, arch="gfx942", stop_after="llvm", constants={"buffered": buffered})
    artifact.simulate(x, rows, y, grid=(1, 1, 1))
    want = x[rows]
    want[rows == 3] = 0
    np.testing.assert_array_equal(y, want)


def test_gather_misuse_is_explained() -> None:
    with Tracing() as k:
        x = fx.TensorSpec(fx.Float16, (64,)).declare(k.kernel, "x", {})
        atom = fx.make_copy_atom(fx.UniversalCopy(64), fx.Float16)
        offsets, fragment = fx.make_rmem_tensor(2, fx.Int32), fx.make_rmem_tensor((4, 3), fx.Float16)
        with pytest.raises(TraceError, match="one offset per atom call"):
            fx.gather(atom, x.iter, offsets, fragment)
        with pytest.raises(TraceError, match="a narrower atom"):
            fx.gather(atom, x.iter, offsets, fx.make_rmem_tensor((2, 2), fx.Float16))
        with pytest.raises(TraceError, match=r"fx\.get_iter"):
            fx.gather(atom, x, offsets, fragment)


# --- printf --------------------------------------------------------------------------------------


def test_printf_becomes_an_operation_with_its_format() -> None:
    with Tracing() as k:
        n, u = k.arg(fx.Int32), k.arg(fx.Uint32)
        fx.printf("n = {}, {} of {}", n, fx.make_layout((4, 2), (1, 4)), 7)
        fx.printf(n, u, fx.full(2, n), "{braces}")
        fx.printf(n, format_str="{{{}}}")
        formats = [op.attrs["format"] for op in k.kernel.walk() if op.name == "gpu.printf"]
        assert formats == ["n = {}, (4,2):(1,4) of 7", "{} {:u} [{}, {}] {{braces}}", "{{{}}}"]
        with pytest.raises(TraceError, match=r"one \{\} for each argument"):
            fx.printf("{} {}", n)


# --- one-dimensional tensors ---------------------------------------------------------------------


@flyc.kernel(known_block_size=(64, 1, 1))
def copy_line(x: fx.Tensor, y: fx.Tensor):
    atom = fx.make_copy_atom(fx.UniversalCopy(128), fx.Float32)
    tc = fx.make_tiled_copy_tv(atom, fx.make_layout(64, 1), fx.make_layout(4, 1))
    thr = tc.get_slice(fx.thread_idx.x)
    src, dst = thr.partition_S(x), thr.partition_D(y)
    registers = fx.make_fragment_like(src)
    fx.copy(tc, src, registers)
    fx.copy(tc, registers, dst)


@pytest.mark.sim
def test_tiled_copy_of_a_line() -> None:
    x, y = np.arange(512, dtype=np.float32), np.zeros(512, np.float32)
    artifact = flyc.compile(copy_line, "f32[512]{align=16}", "f32[512]{align=16}", arch="gfx942", stop_after="llvm")
    artifact.simulate(x, y, grid=(1, 1, 1))
    np.testing.assert_array_equal(y, x)
    assert artifact.llvm_ir.count("load <4 x float>") == 2


def strided(rows: int) -> object:
    """256 threads of 16 bytes over ``rows`` x 64 bf16; the rows of a thread are a truncating division."""

    @flyc.kernel(known_block_size=(256, 1, 1))
    def kernel(x: fx.Tensor):
        atom = fx.make_copy_atom(fx.UniversalCopy(128), fx.BFloat16)
        tc = fx.make_tiled_copy_tv(atom, fx.make_layout((32, 8), (8, 1)), fx.make_layout((rows // 32, 8), (8, 1)))
        source = tc.get_slice(fx.thread_idx.x).partition_S(x)
        fx.copy(tc, source, fx.make_fragment_like(source))

    return kernel


def test_a_tile_that_the_threads_do_not_cover_is_refused() -> None:
    flyc.compile(strided(128), "bf16[128,64]{align=16}", arch="gfx942", stop_after="llvm")
    with pytest.raises(LayoutError, match="mode 0 has 112 elements, the tile 96") as e:
        flyc.compile(strided(112), "bf16[112,64]{align=16}", arch="gfx942", stop_after="llvm")
    assert "test_tensor.py:" in str(e.value.where)


@pytest.mark.parametrize("use", ["element", "pointer", "fill"])
def test_a_python_int_that_does_not_fit_the_elements_is_refused(use: str) -> None:
    with Tracing() as k:
        x = fx.TensorSpec(fx.Uint8, (4,)).declare(k.kernel, "x", {})
        write = {
            "element": lambda v: x.__setitem__(0, v), "pointer": lambda v: x.iter.store(v), "fill": lambda v: x.fill(v)
        }[use]  # fmt: skip
        for wrong in (256, -129, 2**40):
            with pytest.raises(
                TraceError, match=rf"{wrong} as \w+: it has more than 8 bits\n  fix: use a number that fits"
            ):
                write(wrong)
        for right in (255, -128, fx.Uint8(256)):
            write(right)
