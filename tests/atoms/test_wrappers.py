"""Descriptions of atoms and tiled atoms: they forward, and their layouts place threads and values right."""

from __future__ import annotations

import pytest

from flyllvm.atoms.contract import indices
from flyllvm.atoms.rocdl.cdna3_buffer_copy import BufferCopy
from flyllvm.atoms.rocdl.cdna3_mfma import find_mfma
from flyllvm.atoms.universal import UniversalCopy, UniversalFma
from flyllvm.atoms.wrappers import CopyAtom, MmaAtom, TiledCopy, TiledMma
from flyllvm.errors import AtomError, LayoutError, TargetError
from flyllvm.ir import types as t
from flyllvm.layout import Layout, Tile, make_layout_tv, parse, size
from flyllvm.target import Target

MFMA = find_mfma(16, 16, 16, "f16", "f16")


def test_an_mma_atom_forwards_to_its_operation() -> None:
    atom = MmaAtom(MFMA)
    assert str(atom.type) == "!fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>"
    assert MmaAtom(atom.type) == atom and hash(MmaAtom(atom.type)) == hash(atom)
    assert (atom.shape_mnk, atom.blocks, atom.types, atom.state) == (
        (16, 16, 16),
        1,
        (t.F16, t.F16, t.F32, t.F32),
        None,
    )
    assert atom.thr_layout == Layout(64, 1)
    assert [atom.layout_tv(x) for x in "abcd"] == [MFMA.layout_a, MFMA.layout_b, MFMA.layout_c, MFMA.layout_c]
    with pytest.raises(AtomError, match="use one of a, b, c, d"):
        atom.layout_tv("e")
    with pytest.raises(TargetError, match=r"gfx1100 has no cdna3\.mfma"):
        atom.check_target(Target.parse("gfx1100"))


def test_a_copy_atom_sees_its_bits_as_values() -> None:
    atom = CopyAtom(BufferCopy(128), 16)
    assert str(atom.type) == "!fly.copy_atom<!fly_rocdl.cdna3.buffer_copy<128>, 16>"
    assert CopyAtom(atom.type) == atom
    assert [atom.layout_tv(side) for side in ("src", "dst", "ref")] == [Layout((1, 8), (1, 1))] * 3
    assert (atom.num_values, atom.thr_layout) == (8, Layout(1, 1))
    assert atom.state is BufferCopy.state and CopyAtom(UniversalCopy(32), 32).state is None
    with pytest.raises(AtomError, match="use src, dst or ref"):
        atom.layout_tv("both")
    atom.check_target(Target.parse("gfx942"))


def test_a_copy_atom_needs_values_that_divide() -> None:
    with pytest.raises(AtomError, match="element widths that divide: 1, 4, 8, 16, 32, 96"):
        CopyAtom(UniversalCopy(96), 64)
    with pytest.raises(AtomError, match="pass the bits of an element"):
        CopyAtom(UniversalCopy(96))


def tiled_copy() -> TiledCopy:
    tiler, tv = make_layout_tv(Layout((32, 8), (8, 1)), Layout((1, 8), (0, 1)))
    return TiledCopy(CopyAtom(UniversalCopy(128), 16), tv, tiler)


def test_a_tiled_copy_gives_each_thread_its_part() -> None:
    copy = tiled_copy()
    assert copy.num_threads == 256
    assert TiledCopy.of(copy.type) == copy
    parts = copy.partition("src", Layout((64, 128), (128, 1)))
    assert str(parts.shape[1]) == "(8, 1)" and size(parts) == 64 * 128
    # Thread 9 holds row 1, columns 8 to 15, and the same in each tile.
    assert [parts((9, v, 0, 0)) for v in range(8)] == [128 + 8 + v for v in range(8)]
    assert parts((9, 0, 1, 1)) == 128 + 8 + 32 * 128 + 64


def test_a_tiled_copy_that_does_not_cover_its_tile_is_refused() -> None:
    with pytest.raises(LayoutError, match="do not cover"):
        TiledCopy(CopyAtom(UniversalCopy(64), 16), parse("(64,4):(4,2)"), Tile(16, 16))


def test_an_atom_wider_than_a_threads_values_is_refused() -> None:
    with pytest.raises(LayoutError, match="8 values does not divide"):
        TiledCopy(CopyAtom(UniversalCopy(128), 16), parse("(64,4):(4,1)"), Tile(16, 16))


def test_a_tiled_mma_spreads_atoms_over_waves() -> None:
    mma = TiledMma(MmaAtom(MFMA), Layout((2, 2), (1, 2)))
    assert (mma.num_threads, mma.tile_size_mnk) == (256, (32, 32, 16))
    assert TiledMma.of(mma.type) == mma
    assert mma.thread_coord(64 + 5) == (5, 1, 0, 0)
    for operand, tensor, elements in (("a", (64, 32), 64 * 32), ("b", (32, 32), 32 * 32), ("c", (64, 32), 64 * 32)):
        part = mma.partition(operand, Layout(tensor, (1, tensor[0])))
        held: dict[int, int] = {}
        for thread in range(256):
            fragment, offset = mma.slice(operand, part, thread)
            for at in indices(fragment):
                held[at + offset] = held.get(at + offset, 0) + 1
        # A and B are held by the two waves that share their rows, C once.
        assert set(held) == set(range(elements))
        assert set(held.values()) == {1 if operand == "c" else 2}


def test_the_fragment_of_a_thread_is_what_the_instruction_reads() -> None:
    mma = TiledMma(MmaAtom(MFMA), Layout((2, 2, 1), (1, 2, 0)))
    part = mma.partition("a", Layout((32, 16), (1, 32)))
    fragment, offset = mma.slice("a", part, 64 + 17)  # second wave in M, lane 17: row 1, k = 4...7
    assert [offset + i for i in indices(fragment)] == [16 + 1 + 32 * k for k in (4, 5, 6, 7)]


def test_a_tiled_copy_for_an_operand_loads_what_the_mma_needs() -> None:
    mma = TiledMma(MmaAtom(MFMA), Layout((2, 2, 1), (1, 2, 0)))
    copy = mma.tiled_copy("a", CopyAtom(UniversalCopy(64), 16))
    assert (copy.num_threads, str(copy.tile)) == (256, "[32|16]")
    tensor = Layout((32, 16), (1, 32))
    by_copy, by_mma = copy.partition("src", tensor), mma.partition("a", tensor)
    for thread in (0, 17, 64 + 17, 255):
        fragment, offset = mma.slice("a", by_mma, thread)
        assert [by_copy((thread, v, 0, 0)) for v in range(4)] == [offset + i for i in indices(fragment)]


def test_an_mma_of_several_blocks_is_not_tiled_over_one_matrix() -> None:
    with pytest.raises(AtomError, match="4 independent products and cannot be tiled"):
        TiledMma(MmaAtom(find_mfma(16, 16, 4, "f16", "f16")), Layout((1, 1, 1), (0, 0, 0)))


def test_a_scalar_mma_tiles_too() -> None:
    mma = TiledMma(MmaAtom(UniversalFma("f32")), Layout((16, 16, 1), (1, 16, 0)))
    assert (mma.num_threads, mma.tile_size_mnk) == (256, (16, 16, 1))


def test_descriptions_differ_by_type() -> None:
    assert MmaAtom(MFMA) != CopyAtom(UniversalCopy(32), 32)
    assert repr(MmaAtom(MFMA)).startswith("<!fly.mma_atom<")


def test_an_atom_of_the_other_kind_is_refused() -> None:
    for op in (UniversalCopy(32), None):
        with pytest.raises(AtomError, match=r"is no matrix operation(?s:.*)fx\.rocdl\.MFMA"):
            MmaAtom(op)  # type: ignore[arg-type]
    for op in (MFMA, None):
        with pytest.raises(AtomError, match=r"is no copy(?s:.*)fx\.UniversalCopy\(128\)"):
            CopyAtom(op, 32)  # type: ignore[arg-type]
