"""Every AMDGPU intrinsic of LLVM 22.1 is known to the simulator, or stands here among those that are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import flyllvm.codegen
from flyllvm.errors import SimError
from flyllvm.sim import check_module, parse_module, simulate
from flyllvm.target import CHIPS, Target
from tests.sim.kernels import STORE_OUT, kernel

pytestmark = pytest.mark.sim
TABLE = Path(flyllvm.codegen.__file__).with_name("intrinsics.txt")

# Beginnings of names behind `llvm.amdgcn.`, and why the simulator refuses them.
REFUSED = {
    "exports, interpolation and primitives of graphics": (
        "exp. interp. lds.param. lds.direct. ps. kill ds.bvh. ds.gws. live.mask wqm.demote wqm.vote "
        "pops.exiting. ds.add.gs. ds.sub.gs. global.atomic.ordered."
    ),
    "formats that the descriptor or an immediate names": (
        "raw.buffer.load.format raw.buffer.store.format raw.ptr.buffer.load.format raw.ptr.buffer.store.format "
        "struct.buffer.load.format struct.buffer.store.format struct.ptr.buffer.load.format "
        "struct.ptr.buffer.store.format raw.tbuffer. raw.ptr.tbuffer. struct.tbuffer. struct.ptr.tbuffer."
    ),
    "registers and messages of the machine": (
        "s.sendmsg s.getreg s.setreg s.getpc s.get.barrier. s.get.named. queue.ptr dispatch.id lds.kernel.id "
        "reloc.constant"
    ),
    "made by LLVM's own passes": "dead. end.cf if.break init.exec init.whole.wave unreachable",
}


def _rows() -> list[tuple[str, str]]:
    lines = TABLE.read_text(encoding="ascii").splitlines()[1:]
    return [(name, signature) for name, signature, *_ in (line.split("\t") for line in lines)]


def _call(number: int, name: str, signature: str) -> str:
    """A kernel with one call; its operands are zeros."""
    result, _, operands = signature.partition(" (")
    if not signature.startswith(("{", "<")) and "(" in signature:
        result = signature[: signature.index(" (")]
    depth, parts, part = 0, [], ""
    for char in operands.rstrip()[:-1]:
        depth += char in "<{([" or 0
        depth -= char in ">})]" or 0
        if char == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += char
    parts += [part.strip()] if part.strip() else []
    zeros = {"metadata": 'metadata !"x"'}
    given = ", ".join(zeros.get(p, f"{p} zeroinitializer") for p in parts)
    name_it = "" if result == "void" else "%r = "
    return f"define amdgpu_kernel void @k{number}() {{\n  {name_it}call {result} @{name}({given})\n  ret void\n}}\n"


def test_every_intrinsic_is_known_or_refused_for_a_reason() -> None:
    rows = _rows()
    assert len(rows) > 1800
    module = parse_module("".join(_call(i, *row) for i, row in enumerate(rows)))
    found = check_module(module)
    refused = tuple(f"llvm.amdgcn.{start}" for starts in REFUSED.values() for start in starts.split())
    used = set()
    for i, (name, _) in enumerate(rows):
        start = next((s for s in refused if name.startswith(s)), None)
        assert bool(found[f"k{i}"]) == (start is not None), f"{name} is {'known' if start else 'refused'}"
        used.add(start)
    assert set(refused) == used - {None}


def test_every_known_intrinsic_builds_or_says_what_is_wrong_with_its_operands() -> None:
    """With zeros for operands on a processor that has it; a descriptor of zeros, say, is a fault of the kernel."""
    lines = TABLE.read_text(encoding="ascii").splitlines()
    processors, refused = lines[0].split(), tuple(f"llvm.amdgcn.{s}" for v in REFUSED.values() for s in v.split())
    names = [p for p in processors if p in CHIPS]
    ran = 0
    for number, line in enumerate(lines[1:]):
        name, signature, _, mask, *_ = line.split("\t")
        having = [p for i, p in enumerate(processors) if int(mask, 16) >> i & 1 and p in names]
        if name.startswith(refused) or not having or number % 3:
            continue
        block = 64 if Target.parse(having[-1]).wave_size == 64 else 32
        try:
            simulate(_call(number, name, signature), grid=1, block=block, args=[], target=having[-1])
            ran += 1
        except SimError as error:
            assert error.what
    assert ran > 250


def test_vectors_go_through_inactive_lanes_and_writelane() -> None:
    body = """
    %a = insertelement <2 x i32> zeroinitializer, i32 %t, i32 1
    %b = call <2 x i32> @llvm.amdgcn.set.inactive.v2i32(<2 x i32> %a, <2 x i32> zeroinitializer)
    %c = call <2 x i32> @llvm.amdgcn.writelane.v2i32(<2 x i32> <i32 7, i32 8>, i32 5, <2 x i32> %b)
    %v = extractelement <2 x i32> %c, i32 1
    """
    out = np.zeros(64, np.uint32)
    simulate(kernel(body + STORE_OUT.format(value="%v")), grid=1, block=64, args=[out])
    want = np.arange(64)
    want[5] = 8
    assert np.array_equal(out, want)
