"""Adding an instruction: the script's files load, and a new state field is one line in one atom."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from flyllvm.atoms import all_families, rocdl
from flyllvm.atoms.base import Atom
from flyllvm.atoms.rocdl.cdna3_buffer_copy import SOFFSET, BufferCopy, buffer_address, scale_to_bytes
from flyllvm.codegen.options import Options
from flyllvm.compiler.pipeline import lower
from flyllvm.ir import types as t
from flyllvm.ir.builder import Builder
from flyllvm.ir.core import Kernel, Module
from flyllvm.ir.lltype import LLType
from flyllvm.ir.protocols import Emitter, LLValue, MemOperand
from flyllvm.layout import Layout
from flyllvm.sim import simulate
from flyllvm.state import AtomStateField, StateStruct
from flyllvm.target import Target

ROOT = Path(__file__).parents[2]


# --- a new state field ----------------------------------------------------------------------------


class Shifted(BufferCopy):
    """``buffer_copy`` with one more field: an offset of each lane, in elements."""

    __slots__ = ()

    mnemonic = "test.buffer_copy_voffset"
    state = StateStruct(
        "test.buffer_copy_voffset",
        SOFFSET,
        AtomStateField("voffset", t.I32, default=0, doc="added to the address of each lane", units="elements"),
    )

    def emit_load(self, em: Emitter, state: LLValue | None, src: MemOperand, type: LLType) -> LLValue:
        rsrc, voffset, soffset = buffer_address(em, self.state, state, src, self.bit_size)
        assert state is not None
        moved = scale_to_bytes(em, em.extract_value(state, self.state.index("voffset")), src.type.elem.bits)
        args = [rsrc, em.binary("add", voffset, moved), soffset, em.const(voffset.type, 0)]
        name = f"amdgcn.raw.ptr.buffer.load.{self.row.suffix}"
        return em.bitcast(em.intrinsic(name, self.row.carrier, args), type)


@pytest.mark.sim
@pytest.mark.parametrize("ssa", [True, False], ids=["ssa", "memory"])
def test_a_new_state_field_works_through_the_whole_pipeline(ssa: bool) -> None:
    target = Target.parse("gfx942")
    made = Kernel("k")
    made.attrs["known_block_size"] = (64, 1, 1)
    src, dst = (made.add_arg(t.PtrType(t.F32, "global", 4), name) for name in ("src", "dst"))
    one = Layout(1, 1)
    with Builder(made, target) as b:
        lane = b.thread_id()
        atom = b.set_value(b.make_copy_atom(t.CopyAtomType(Shifted(32), 32)), "voffset", b.index_sub(63, lane))
        held = b.alloca(t.F32, one)
        b.copy_atom_call(atom, b.make_view(b.make_buffer(src, b.constant(1024, t.I64)), one), held)
        plain = b.make_copy_atom(t.CopyAtomType(BufferCopy(32), 32))
        there = b.add_offset(b.make_buffer(dst, b.constant(256, t.I64)), lane)
        b.copy_atom_call(plain, held, b.make_view(there, one))
    module = Module()
    module.kernels.append(made)
    text = lower(module, target, Options(debug=False), ssa=ssa)
    data, out = np.arange(256, dtype=np.float32), np.zeros(64, np.float32)
    simulate(text, kernel="k", grid=(1,), block=(64,), args=[data, out], target=target)
    np.testing.assert_array_equal(out, data[:64][::-1])


# --- the script -----------------------------------------------------------------------------------

FAMILIES = {
    "gfx1250.tr_test": (
        "--intrinsic llvm.amdgcn.ds.load.tr8.b64.v2i32 --copy shared register --instruction ds_load_tr8_b64"
    ),
    "gfx1250.store_test": (
        "--intrinsic llvm.amdgcn.global.store.async.from.lds.b64 --copy shared global --bits 64 --instruction x"
    ),
    "cdna3.mma_test": (
        "--intrinsic llvm.amdgcn.mfma.f32.16x16x16f16 --mma 16x16x16 f16 f16 f32 --instruction v_mfma_f32_16x16x16_f16"
    ),
}


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, writing into a folder of its own."""
    spec = importlib.util.spec_from_file_location("new_atom", ROOT / "scripts" / "new_atom.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "__init__.py").write_text((ROOT / "flyllvm" / "atoms" / "rocdl" / "__init__.py").read_text())
    monkeypatch.setattr(module, "ROCDL", tmp_path)
    return module


@pytest.mark.parametrize("name", FAMILIES)
def test_a_new_family_loads_once_its_layouts_are_filled_in(name: str, script: ModuleType, tmp_path: Path) -> None:
    assert script.main([name, *FAMILIES[name].split()]) == 0
    stem = name.replace(".", "_")
    text = (tmp_path / f"{stem}.py").read_text()
    assert "FILL manual and section" in text
    assert "from typing" not in text and max(map(len, text.splitlines())) <= 120
    assert f'    "fly_rocdl.{name}": "flyllvm.atoms.rocdl.{stem}",\n' in (tmp_path / "__init__.py").read_text()
    filled = tmp_path / "filled.py"
    filled.write_text(text.replace('"FILL ((', '"(('))
    spec = importlib.util.spec_from_file_location(f"flyllvm.atoms.rocdl.{stem}", filled)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (op,) = module.atoms()
    assert isinstance(op, Atom) and op.mnemonic == f"fly_rocdl.{name}"
    for processor in op.targets:
        op.check_target(Target.parse(processor))
    assert op.describe()["intrinsic"] == FAMILIES[name].split()[1]


def test_the_import_lines_stay_in_order_and_are_written_once(script: ModuleType, tmp_path: Path) -> None:
    before = (tmp_path / "__init__.py").read_text()
    script.add_import_line("cdna3.mfma", "cdna3_mfma")
    assert (tmp_path / "__init__.py").read_text() == before
    assert list(rocdl.FAMILIES) == sorted(rocdl.FAMILIES)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("Wrong --intrinsic llvm.amdgcn.ds.load.tr8.b64.v2i32 --copy shared register", "write chip generation, dot"),
        ("a.b --intrinsic llvm.amdgcn.ds.load.tr8.b64 --copy shared register", "overloads: .*v2i32"),
        ("a.b --intrinsic llvm.amdgcn.nothing --copy shared register", "see its full name"),
    ],
)
def test_the_script_says_what_is_wrong(script: ModuleType, arguments: str, message: str) -> None:
    with pytest.raises(SystemExit, match=message):
        script.main(arguments.split())


def test_an_existing_family_is_not_overwritten(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "cdna3_mfma.py").write_text("kept")
    with pytest.raises(SystemExit, match="add a row to its table"):
        script.main(["cdna3.mfma", "--intrinsic", "llvm.amdgcn.ds.read.tr8.b64.v2i32", "--copy", "shared", "register"])
    assert (tmp_path / "cdna3_mfma.py").read_text() == "kept"


def test_no_family_has_a_place_left_to_fill() -> None:
    for module in set(all_families().values()):
        path = importlib.import_module(module).__file__
        assert path is not None and "FILL" not in Path(path).read_text(), path


def test_importing_the_atoms_of_a_gpu_takes_little() -> None:
    """Ten milliseconds on an idle machine; the least of five runs is what the import itself costs."""
    code = (
        "import sys, time\nimport flyllvm.ir.protocols, flyllvm.errors\nstart = time.process_time()\n"
        "import flyllvm.atoms.rocdl\nprint(time.process_time() - start)"
    )
    runs = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(5)
    ]
    assert min(runs) < 0.01
