"""Matrix instructions give the same bits on both engines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flyllvm.errors import SimError
from flyllvm.sim import UnsupportedError, matrix, matrix_mfma, matrix_sparse, matrix_wmma, simulate
from flyllvm.sim.matrix_core import Product
from flyllvm.sim.matrix_element import BF16
from flyllvm.sim.matrix_sparse import SparseProduct
from flyllvm.target import Target
from tests.sim.both import interesting
from tests.sim.engines import both

pytestmark = [pytest.mark.llvm, pytest.mark.sim]
KINDS = sorted(
    (name, target)
    for family in (matrix_mfma.INTRINSICS, matrix_wmma.INTRINSICS, matrix_sparse.INTRINSICS)
    for name, found in family.items()
    for target in found.targets
    if not name.startswith("swmmac.bf16f32.")  # its result lies in the registers of another type
)
SOME = [
    ("mfma.f32.16x16x16f16", "gfx942"), ("mfma.f32.32x32x8f16", "gfx942"), ("mfma.f32.4x4x4f16", "gfx942"),
    ("mfma.f32.32x32x4bf16.1k", "gfx90a"), ("mfma.f32.16x16x4f32", "gfx942"), ("mfma.i32.16x16x32.i8", "gfx942"),
    ("mfma.f32.16x16x32.fp8.bf8", "gfx942"), ("mfma.f32.16x16x8.xf32", "gfx942"), ("mfma.f32.16x16x16f16", "gfx90a"),
    ("mfma.f32.16x16x32.bf16", "gfx950"), ("wmma.f32.16x16x16.f16", "gfx1100"), ("wmma.f16.16x16x16.f16", "gfx1200"),
    ("wmma.i32.16x16x16.iu8", "gfx1201"), ("wmma.bf16.16x16x16.bf16", "gfx1200"),
    ("wmma.f32.16x16x16.fp8.fp8", "gfx1200"), ("mfma.f64.16x16x4f64", "gfx942"), ("mfma.f64.4x4x4f64", "gfx90a"),
    ("wmma.f16.16x16x16.f16", "gfx1100"), ("wmma.i32.16x16x16.iu4", "gfx1100"),
    ("wmma.bf16f32.16x16x32.bf16", "gfx1250"), ("smfmac.f32.16x16x32.f16", "gfx942"),
    ("smfmac.i32.32x32x64.i8", "gfx950"), ("smfmac.f32.16x16x64.fp8.bf8", "gfx942"),
    ("swmmac.bf16.16x16x32.bf16", "gfx1200"), ("swmmac.i32.16x16x128.iu8", "gfx1250"),
]  # fmt: skip


def operand(element: Any, count: int) -> tuple[str, Any]:
    """LLVM type of a lane's values, and the dtype of random ones."""
    if element.is_float:
        name = {"f16": "half", "f32": "float", "xf32": "float", "f64": "double"}[element.name]
        return f"<{count} x {name}>", element.dtype
    if element.name == "bf16":
        return f"<{count} x i16>", np.uint16
    words = count * element.bits // 32
    return f"<{words} x i32>", np.uint32


def index_of(product: SparseProduct, rng: Any, lanes: int) -> np.ndarray:
    """Random indices in order for every lane."""
    pairs = np.array([(i, j) for i in range(4) for j in range(i + 1, 4)], np.uint64)
    width = 64 if product.index.bits > 32 else 32
    chosen = pairs[rng.integers(0, 6, (lanes, width // 4))].reshape(lanes, -1)
    words = (chosen << (2 * np.arange(width // 2)).astype(np.uint64)).sum(axis=1, dtype=np.uint64)
    return words.astype(np.uint64 if width == 64 else np.uint32).reshape(lanes, 1)


def kernel_of(name: str, target: Target, wave: int, constants: tuple[int, ...] = ()) -> tuple[str, list[Any]]:
    """A kernel that runs an instruction once on operands from memory, and its arguments."""
    found = matrix.find(name)
    assert found is not None
    constants = constants or tuple(0 for _ in found.immediates)
    product = matrix.prepare(name, constants, wave_size=wave, target=target)
    assert isinstance(product, Product)
    rng = np.random.default_rng(len(name))
    types, args = [], []
    for part, element, count in (
        (product.a, product.a.element, product.a.count), (product.b, product.b.element, product.b.count),
        (None, product.c.element, product.c.count),
    ):  # fmt: skip
        t, dtype = operand(element, count)
        types.append(t)
        shape = (2 * wave, int(t[1:].split(" ")[0]))
        if element.name == "bf16":  # finite, because the payload of a NaN may differ
            values = ((rng.normal(size=shape) * 100).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        else:
            values = interesting(dtype, rng, shape)
        copies = part.replicas if part is not None else 1
        if copies > 1:
            values = np.tile(values.reshape(2, copies, wave // copies, -1)[:, :1], (1, copies, 1, 1)).reshape(shape)
        args.append(np.ascontiguousarray(values))
    letters = "abc"
    if isinstance(product, SparseProduct):
        letters = "abcx"
        args.append(index_of(product, rng, 2 * wave))
        types.append(f"i{8 * args[-1].itemsize}")
    positions, arrays, numbers = [], iter(letters), iter(constants)
    for at in range(len(letters) + len(found.immediates)):
        if at in found.immediates:
            what = found.immediates[at]
            bits = "i32" if what in ("cbsz", "abid", "blgp") else "i16" if what == "modifier of C" else "i1"
            positions.append(f"{bits} {next(numbers)}")
        else:
            letter = next(arrays)
            positions.append(f"{types[letters.index(letter)]} %{letter}")
    loads = "\n".join(
        f"  %p{x} = getelementptr {t}, ptr addrspace(1) %i{x}, i32 %t\n"
        f"  %{x} = load {t}, ptr addrspace(1) %p{x}, align 1"
        for x, t in zip(letters, types, strict=True)
    )
    result = types[2] if product.c.result is product.c.element else operand(product.c.result, product.c.count)[0]
    text = (
        f"define amdgpu_kernel void @k({', '.join(f'ptr addrspace(1) %i{x}' for x in letters)}, "
        f"ptr addrspace(1) %out) {{\n  %t = call i32 @llvm.amdgcn.workitem.id.x()\n{loads}\n"
        f"  %d = call {result} @llvm.amdgcn.{name}({', '.join(positions)})\n"
        f"  %po = getelementptr {result}, ptr addrspace(1) %out, i32 %t\n"
        f"  store {result} %d, ptr addrspace(1) %po, align 1\n  ret void\n}}\n"
    )
    out = np.zeros(args[2].shape, np.uint16 if product.c.result is BF16 else args[2].dtype)
    return text, [*args, out]


def agree(name: str, processor: str, constants: tuple[int, ...] = ()) -> str:
    """Runs an instruction on both engines; ``covered``, or why the second cannot."""
    target = Target.parse(processor)
    found = matrix.find(name)
    assert found is not None
    wave = target.wave_size if target.wave_size in found.waves else found.waves[0]
    text, args = kernel_of(name, Target.parse(processor, wave), wave, constants)
    try:
        both(text, grid=1, block=2 * wave, args=args, target=processor, wave_size=wave)
    except UnsupportedError as e:
        return e.what
    return "covered"


@pytest.mark.parametrize(("name", "processor"), SOME, ids=lambda x: x)
def test_an_instruction_agrees(name: str, processor: str) -> None:
    assert agree(name, processor) == "covered"


@pytest.mark.parametrize(
    ("name", "processor", "constants"),
    [
        ("mfma.f64.16x16x4f64", "gfx942", (0, 0, 5)), ("mfma.f64.4x4x4f64", "gfx950", (0, 0, 6)),
        ("mfma.f32.4x4x4f16", "gfx942", (4, 7, 3)), ("wmma.i32.16x16x16.iu4", "gfx1100", (1, 0, 1)),
        ("wmma.i32.16x16x16.iu8", "gfx1200", (0, 1, 1)), ("wmma.f16.16x16x16.f16", "gfx1100", (1,)),
        ("wmma.f32.16x16x32.f16", "gfx1250", (1, 0, 3, 0, 0)), ("wmma.f16.16x16x32.f16", "gfx1250", (0, 1, 2, 0, 0)),
        ("wmma.bf16f32.16x16x32.bf16", "gfx1250", (0, 0, 1, 0, 0)), ("smfmac.f32.16x16x32.bf16", "gfx942", (0, 3)),
        ("swmmac.f32.16x16x64.f16", "gfx1250", (1, 0, 0, 0)), ("swmmac.i32.16x16x32.iu4", "gfx1200", (1, 0, 1)),
    ],
    ids=str,
)  # fmt: skip
def test_an_instruction_with_modifiers_agrees(name: str, processor: str, constants: tuple[int, ...]) -> None:
    assert agree(name, processor, constants) == "covered"


@pytest.mark.slow
def test_all_instructions_agree(full: bool) -> None:
    results = {kind: agree(*kind) for kind in (KINDS if full else KINDS[::12])}
    assert set(results.values()) == {"covered"}, results


def test_differing_copies_are_reported_as_by_the_numpy_engine() -> None:
    text, args = kernel_of("wmma.f32.16x16x16.f16", Target.parse("gfx1100"), 32)
    args[0].view(np.uint16)[17] ^= 1
    errors = []
    for engine in ("numpy", "jit"):
        with pytest.raises(SimError) as caught:
            simulate(text, grid=1, block=64, args=args, target="gfx1100", checks="none", engine=engine)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]
    assert "different copies of a replicated operand" in errors[0]


def test_a_wave_with_inactive_lanes_is_reported_as_by_the_numpy_engine() -> None:
    text, args = kernel_of("mfma.f32.16x16x16f16", Target.parse("gfx942"), 64)
    errors = []
    for engine in ("numpy", "jit"):
        with pytest.raises(SimError) as caught:
            simulate(text, grid=1, block=100, args=args, checks="none", engine=engine)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]
    assert "a matrix instruction with inactive lanes" in errors[0]


def test_an_index_out_of_order_is_reported_as_by_the_numpy_engine() -> None:
    text, args = kernel_of("smfmac.f32.16x16x32.f16", Target.parse("gfx942"), 64)
    args[3][70] = 0
    errors = []
    for engine in ("numpy", "jit"):
        with pytest.raises(SimError) as caught:
            simulate(text, grid=1, block=128, args=args, checks="none", engine=engine)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]
    assert "must be in increasing order" in errors[0]


@pytest.mark.parametrize(("a", "b"), [(0, 4), (4, 4), (2, 3), (1, 0)], ids=lambda code: f"format{code}")
@pytest.mark.parametrize("scales", ["registers", "a constant", "zeros"])
def test_scaled_products_agree(a: int, b: int, scales: str) -> None:
    words = (8, 8, 6, 6, 4)
    types = [f"<{words[a]} x i32>", f"<{words[b]} x i32>", "<4 x float>"]
    scale_a, scale_b = {"registers": ("%x", "%y"), "a constant": ("2139062143", "%y"), "zeros": ("0", "0")}[scales]
    rng = np.random.default_rng(a * 8 + b)
    arrays = [rng.integers(0, 1 << 32, (64, words[code]), dtype=np.uint32) for code in (a, b)]
    arrays.append(rng.normal(size=(64, 4)).astype(np.float32))
    arrays += [rng.integers(0x78787878, 0x7F7F7F7F, 64, dtype=np.uint32) for _ in "xy"]
    loads = "\n".join(
        f"  %p{n} = getelementptr i8, ptr addrspace(1) %i{n}, i32 %o{n}\n"
        f"  %{n} = load {t}, ptr addrspace(1) %p{n}, align 4"
        for n, t in zip("abcxy", [*types, "i32", "i32"], strict=True)
    )
    offsets = "\n".join(f"  %o{n} = mul i32 %t, {x.nbytes // 64}" for n, x in zip("abcxy", arrays, strict=True))
    suffix = f"v{words[a]}i32.v{words[b]}i32"
    text = (
        "define amdgpu_kernel void @k("
        + ", ".join(f"ptr addrspace(1) %i{n}" for n in "abcxy")
        + ", ptr addrspace(1) %out) {\n  %t = call i32 @llvm.amdgcn.workitem.id.x()\n"
        + f"{offsets}\n{loads}\n  %d = call <4 x float> @llvm.amdgcn.mfma.scale.f32.16x16x128.f8f6f4.{suffix}("
        + f"{types[0]} %a, {types[1]} %b, <4 x float> %c, i32 {a}, i32 {b}, "
        + f"i32 1, i32 {scale_a}, i32 2, i32 {scale_b})\n"
        + "  %po = getelementptr <4 x float>, ptr addrspace(1) %out, i32 %t\n"
        + "  store <4 x float> %d, ptr addrspace(1) %po, align 16\n  ret void\n}\n"
    )
    both(text, grid=1, block=64, args=[*arrays, np.zeros((64, 4), np.float32)], target="gfx950")


def test_scaled_products_that_select_different_bytes_share_their_tables() -> None:
    """As where K is longer than an instruction: one register holds the scales of several steps."""
    name = "llvm.amdgcn.mfma.scale.f32.16x16x128.f8f6f4.v4i32.v4i32"
    call = f"call <4 x float> @{name}(<4 x i32> %a, <4 x i32> %a, <4 x float> "
    text = (
        "define amdgpu_kernel void @k(ptr addrspace(1) %in, ptr addrspace(1) %out) {\n"
        "  %t = call i32 @llvm.amdgcn.workitem.id.x()\n"
        "  %p = getelementptr <4 x i32>, ptr addrspace(1) %in, i32 %t\n"
        "  %a = load <4 x i32>, ptr addrspace(1) %p, align 16\n  %s = extractelement <4 x i32> %a, i32 0\n"
        f"  %c = {call}zeroinitializer, i32 4, i32 4, i32 0, i32 %s, i32 0, i32 %s)\n"
        f"  %d = {call}%c, i32 4, i32 4, i32 1, i32 %s, i32 1, i32 %s)\n"
        "  %q = getelementptr <4 x float>, ptr addrspace(1) %out, i32 %t\n"
        "  store <4 x float> %d, ptr addrspace(1) %q, align 16\n  ret void\n}\n"
    )
    data = np.random.default_rng(5).integers(0x78787878, 0x7F7F7F7F, (64, 4), dtype=np.uint32)
    both(text, grid=1, block=64, args=[data, np.zeros((64, 4), np.float32)], target="gfx950")
