"""LLVM selects the instruction that a row names, on every target of the row.

One child process compiles one module a target: a function for each row, emitted by the row's own atom.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache

import pytest

from flyllvm.atoms import all_rows
from flyllvm.atoms.base import Atom, Stateful
from flyllvm.atoms.copy_op import CopyAtomOp
from flyllvm.atoms.mma_op import MmaAtomOp
from flyllvm.atoms.rocdl import cache_policy
from flyllvm.atoms.rocdl.cdna3_buffer_copy import BufferCopy
from flyllvm.atoms.rocdl.cdna3_buffer_copy_lds import BufferCopyLds
from flyllvm.atoms.universal_atomic import ORDERS, SCOPES, UniversalAtomic
from flyllvm.ir import lltype as ll, types as t
from flyllvm.ir.protocols import LLValue
from flyllvm.target import CHIPS, Target
from tests.atoms.emitter import Recorder, operand, value

pytestmark = pytest.mark.llvm

CHILD = """
import json, sys
import llvmlite.binding as llvm
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
out = {}
for key, (cpu, features, text) in json.load(sys.stdin).items():
    triple = llvm.Target.from_triple("amdgcn-amd-amdhsa")
    machine = triple.create_target_machine(cpu=cpu, features=features, opt=1)
    module = llvm.parse_assembly(text)
    module.triple = "amdgcn-amd-amdhsa"
    module.verify()
    out[key] = machine.emit_assembly(module)
json.dump(out, sys.stdout)
"""
# Elements as wide as the copy, at most a dword.
_ELEMENTS = {8: t.I8, 16: t.F16}


def parameters(pointers: dict[str, int]) -> str:
    return ", ".join(f"ptr addrspace({space}) %{name}" if space else "ptr %" + name for name, space in pointers.items())


def mma_body(em: Recorder, op: MmaAtomOp) -> str:
    """Loads the operands from global memory, one call, stores the result."""
    ta, tb, tc, td = op.types
    counts = [type_.count for type_ in op.register_types()]
    a, b, c, d = (
        operand(elem, "global", name, count)
        for elem, name, count in zip((ta, tb, tc, td), "abcd", (*counts, counts[2]))
    )
    state = None
    scalars = ""
    if isinstance(op, Stateful):
        state = em.struct_of(*(value(field.type.storage, field.name) for field in op.state))
        scalars = "".join(f", {field.type.storage} %{field.name}" for field in op.state)
    op.emit_atom_call(em, state, d, a, b, c)
    return parameters(dict.fromkeys("abcd", 1)) + scalars


def copy_body(em: Recorder, op: CopyAtomOp, spaces: tuple[str, str]) -> str:
    """A copy between two address spaces; registers come from LDS and go there."""
    elem = getattr(op, "elem", None) or _ELEMENTS.get(op.bit_size, t.I32)
    count = max(1, op.bit_size // elem.bits)
    state = None
    if isinstance(op, Stateful):
        state = em.struct_of(
            *(
                em.const(f.type.storage, 64) if f.constant else value(f.type.storage, f"s{f.type.bits}")
                for f in op.state
            )
        )
    names = {"buffer_desc": "rsrc", "global": "ptr", "shared": "lds", "generic": "flat"}
    kept = operand(elem, "shared", "kept", count)
    type_ = ll.vec_or_scalar(count, elem.storage)
    src, dst = (
        None if space == "register" else operand(elem, space, names[space], count, align=4, offset="voff")
        for space in spaces
    )
    if src is None:
        assert dst is not None
        op.emit_atom_call_ssa(em, state, em.load(kept, type_), dst, None, None)
    elif dst is None:
        loaded = op.emit_atom_call_ssa(em, state, src, type_, None, None)
        assert isinstance(loaded, LLValue)
        em.store(loaded, kept)
    else:
        op.emit_atom_call(em, state, src, dst, None)
    shared = "ptr addrspace(3) %lds, ptr addrspace(3) %kept"
    return f"ptr addrspace(8) %rsrc, {shared}, i32 %voff, i32 %s32, i64 %s64, ptr addrspace(1) %ptr, ptr %flat"


class Case:
    """One function: the atom, where it is compiled, and what must be in its assembly.

    Attributes:
        spaces: The address spaces of a copy.
        wanted: The instruction, or the name of the cache policy; empty where LLVM has a choice.
    """

    def __init__(self, op: Atom, processor: str, wanted: str, spaces: tuple[str, str] = ("", "")) -> None:
        self.op, self.processor, self.wanted, self.spaces = op, processor, wanted, spaces
        self.target = Target.parse(processor, op.wave)
        self.module = f"{processor}/{self.target.wave_size}"

    def __repr__(self) -> str:
        return f"{self.op.name} {'-'.join(self.spaces).strip('-')} on {self.processor}".replace("  ", " ")

    def function(self, name: str, declarations: dict[str, str]) -> str:
        em = Recorder(self.processor, self.op.wave)
        if isinstance(self.op, MmaAtomOp):
            arguments = mma_body(em, self.op)
        else:
            assert isinstance(self.op, CopyAtomOp)
            arguments = copy_body(em, self.op, self.spaces)
        declarations.update(em.declarations)
        body = "\n".join(em.lines)
        return f"define amdgpu_kernel void @{name}({arguments}) {{\nentry:\n{body}\n  ret void\n}}"


def cases() -> list[Case]:
    found = []
    for op in all_rows():
        described = op.describe().get("instruction") or {}
        assert isinstance(described, dict)
        for p in op.targets:
            wanted = described.get(p, "")
            if not isinstance(op, CopyAtomOp):
                found.append(Case(op, p, wanted))
                continue
            each = wanted if isinstance(wanted, list) else [wanted] * len(op.spaces)
            found += [Case(op, p, one, spaces) for one, spaces in zip(each, op.spaces, strict=True)]
    for scope in SCOPES:
        for order in ORDERS:
            op = UniversalAtomic("add", "i32", scope, order)
            found += [Case(op, p, "", ("register", "global")) for p in CHIPS]
    load, store = BufferCopy.spaces
    for p in CHIPS:
        for name in cache_policy.names(Target.parse(p)):
            op = BufferCopy(32, name)
            wanted = name.rpartition("_")[2].upper() if name.startswith("scope") else name
            if name not in ("wb", "nt_wb"):
                found.append(Case(op, p, wanted, load))
            if name != "lu":
                found.append(Case(op, p, wanted, store))
    return found


CASES = cases()


@cache
def assembly() -> dict[str, dict[str, str]]:
    """`compiled`, or what went wrong: a fresh attempt for each of the cases would take minutes."""
    try:
        return compiled()
    except Exception as e:
        return {case.module: {"error": repr(e)} for case in CASES}


def compiled() -> dict[str, dict[str, str]]:
    """Assembly of each function, by module (processor and wave size) and function name."""
    modules = {}
    for target in {case.module: case.target for case in CASES}.values():
        module = f"{target.processor}/{target.wave_size}"
        declarations: dict[str, str] = {}
        functions = [c.function(f"k{i}", declarations) for i, c in enumerate(CASES) if c.module == module]
        text = "\n".join([*declarations.values(), *functions])
        modules[module] = (target.processor, target.llvm_features, text)
    done = subprocess.run([sys.executable, "-c", CHILD], input=json.dumps(modules), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    split = {}
    for module, text in json.loads(done.stdout).items():
        split[module] = dict(re.findall(r"^(k\d+):\n(.*?)^\t\.section", text, re.DOTALL | re.MULTILINE))
    return split


@pytest.mark.parametrize("i", range(len(CASES)), ids=[repr(c) for c in CASES])
def test_llvm_selects_the_named_instruction(i: int) -> None:
    case = CASES[i]
    functions = assembly()[case.module]
    assert "error" not in functions, functions["error"]
    text = functions[f"k{i}"]
    code = [line.split(";")[0].split() for line in text.splitlines() if line.startswith("\t")]
    if isinstance(case.op, BufferCopy) and not case.op.cache.is_default:
        line = next(" ".join(words) for words in code if words and words[0].startswith("buffer_"))
        words = line.replace(":", " ").upper().split()
        assert any(w == case.wanted.upper() or w.endswith(f"_{case.wanted.upper()}") for w in words), line
        return
    mnemonics = [words[0].removesuffix("_e64") for words in code if words]
    if not case.wanted:  # the chip's instruction, or a loop of compare-and-swap
        kinds = "atomic" if isinstance(case.op, UniversalAtomic) else "load|store|read|write|fma|mac|mul|add"
        assert [m for m in mnemonics if re.search(f"{kinds}|ds_", m)], mnemonics
        return
    assert mnemonics.count(case.wanted) == 1, mnemonics
    if isinstance(case.op, BufferCopyLds):
        line = next(words for words in code if words and words[0] == case.wanted)
        assert line[-1] == "lds" and "offset:64" in line
