"""Matrix atoms from fly IR through LLVM IR into the simulator, on raw fragments in memory.

A lane's operands lie one after the other in memory, in the order of its values; the atom loads and stores them itself.
Scales differ by row and K block.
"""

from __future__ import annotations

import numpy as np
import pytest

from flyllvm.atoms import all_rows
from flyllvm.atoms.base import Stateful
from flyllvm.atoms.flags import FlaggedRowMma
from flyllvm.atoms.rows import RowMma
from flyllvm.codegen.options import Options
from flyllvm.compiler.pipeline import lower
from flyllvm.ir import types as t
from flyllvm.ir.builder import Builder
from flyllvm.ir.core import Kernel, Module
from flyllvm.layout import Layout, size
from flyllvm.sim import numerics, simulate
from flyllvm.target import Target
from tests.atoms.test_probes import SHORT, fragments, limit, with_signs
from tests.sim import probes

# Sparse rows have an index besides: see test_sparse.
ROWS = [op for op in all_rows() if isinstance(op, RowMma) and op.row.packing == 1 and op.row.family != "cdna3.mfma"]
ONE = 127


def scale_block(op: RowMma) -> int:
    """Values of K that share a scale; 0 for a row without scales."""
    if not isinstance(op, Stateful):
        return 0
    return 16 if op.row.variant == "blockSize = 16" else 32


def kernel(op: RowMma, target: Target) -> str:
    """LLVM IR of a kernel ``k(a, b, c, d[, scale_a, scale_b])`` of one wave."""
    made = Kernel("k")
    made.attrs["known_block_size"] = (op.row.wave, 1, 1)
    elements = dict(zip("abcd", op.types))
    pointers = {name: made.add_arg(t.PtrType(elem, "global", 16), name) for name, elem in elements.items()}
    fields = list(op.state) if isinstance(op, Stateful) else []
    scales = [made.add_arg(t.PtrType(field.type, "global", 8), field.name) for field in fields]
    counts = {"a": op.layout_a, "b": op.layout_b, "c": op.layout_c, "d": op.layout_c}
    with Builder(made, target) as b:
        lane = b.thread_id()
        atom = b.make_mma_atom(t.MmaAtomType(op))
        for field, pointer in zip(fields, scales):
            atom = b.set_value(atom, field.name, b.ptr_load(b.add_offset(pointer, lane)))
        views = {}
        for name, layout in counts.items():
            held = size(layout.shape[1])
            views[name] = b.make_view(b.add_offset(pointers[name], b.index_mul(lane, held)), Layout(held, 1))
        b.mma_atom_call(atom, views["d"], views["a"], views["b"], views["c"])
    module = Module()
    module.kernels.append(made)
    return lower(module, target, Options(debug=False))


def raw(op: RowMma, values: np.ndarray, which: int, flavour: str | None) -> np.ndarray:
    """Bytes of fragments, lane after lane."""
    element = SHORT.get(op.row.elements[which], op.row.elements[which])
    return np.ascontiguousarray(probes.pack(values, element, flavour)).reshape(-1).view(np.uint8).copy()


def scale_registers(op: RowMma, codes: np.ndarray, selector: int = 0) -> np.ndarray:
    """Scale operands of all lanes for E8M0 codes ``(rows, blocks)``; bytes that nobody selects hold nonsense."""
    rows, blocks = codes.shape
    if op.row.wave == 64:
        held = np.full((64, 4), 200, np.uint8)
        held[:, selector] = codes.T.reshape(-1)
        return held.view(np.uint32).reshape(-1)
    held = np.full((32, blocks), 200, np.uint8)
    held[16 * selector : 16 * selector + rows] = codes
    return held.view(np.uint32 if blocks == 4 else np.uint64).reshape(-1)


@pytest.mark.sim
@pytest.mark.parametrize("op", ROWS, ids=lambda op: op.name)
def test_a_kernel_on_raw_fragments_gives_the_exact_product(op: RowMma) -> None:
    check(with_signs(op))


SELECTORS = ("opselA", "opselB")
SCALED = [op for op in ROWS if isinstance(op, FlaggedRowMma) and any(f.name in SELECTORS for f in op.flags_of(op.row))]


@pytest.mark.sim
@pytest.mark.parametrize("op", SCALED, ids=lambda op: op.name)
def test_selectors_pick_the_byte_or_the_lanes_of_the_scales(op: FlaggedRowMma) -> None:
    for step in (0, 1):
        flags = {f.name: max(f.maximum - step, 0) for f in op.flags_of(op.row) if f.name in SELECTORS}
        if "opselA" in flags:
            flags["opselA"] = flags["opselB"] ^ 1  # another one than B's
        check(type(op)(op.row, flags))


def check(op: RowMma) -> None:
    """Compiles the atom to LLVM IR, runs it on random integers and compares with NumPy."""
    target = Target.parse(op.targets[-1], op.row.wave)
    f = fragments(op)
    rng = np.random.default_rng(11)
    bound = min(limit(op), 2) if scale_block(op) else limit(op)
    a, b, c = (
        rng.integers(-bound, bound + 1, (1, 1, *shape)).astype(float) for shape in ((f.m, f.k), (f.k, f.n), (f.m, f.n))
    )
    places = {which: f.table(which) for which in "abd"}
    operands = [
        raw(op, probes.scatter(x, places[which], f.lanes, count), i, target.chip.fp8)
        for i, (x, which, count) in enumerate(zip((a, b, c), "abd", f.counts))
    ]
    d = np.zeros_like(operands[2])
    args: list[np.ndarray] = [*operands, d]
    if block := scale_block(op):
        flags = op.flags if isinstance(op, FlaggedRowMma) else {}
        for rows, matrix, selector in ((f.m, a, "opselA"), (f.n, b.swapaxes(2, 3), "opselB")):
            codes = rng.integers(ONE - 3, ONE + 4, (rows, f.k // block)).astype(np.uint8)
            matrix *= np.repeat(numerics.decode_e8m0(codes), block, axis=1)
            args.append(scale_registers(op, codes, flags.get(selector, 0)))
    simulate(kernel(op, target), kernel="k", grid=(1,), block=(op.row.wave,), args=args, target=target)
    dtype = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16, "i32": np.int32}[op.row.result]
    got = probes.unpack(d.view(dtype).reshape(1, f.lanes, -1), op.row.result).reshape(-1)
    np.testing.assert_array_equal(got[places["d"][0, ..., 0]], (a @ b + c)[0, 0])
