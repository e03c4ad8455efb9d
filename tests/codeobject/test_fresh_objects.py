"""Objects emitted by the LLVM that is installed, in a process of its own: it may end that process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from flyllvm.codeobject import CodeObject, inspect, link
from flyllvm.errors import LinkError
from tests.codeobject.images import FIXTURES, object_bytes

pytestmark = pytest.mark.llvm

EMIT = """
import sys
from llvmlite import binding as llvm
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
cpu, features, level = sys.argv[1:]
module = llvm.parse_assembly(sys.stdin.read())
module.verify()
target = llvm.Target.from_triple("amdgcn-amd-amdhsa")
machine = target.create_target_machine(cpu=cpu, features=features, opt=int(level), reloc="pic")
sys.stdout.buffer.write(machine.emit_object(module))
"""
HEAD = """target triple = "amdgcn-amd-amdhsa"
!llvm.module.flags = !{!0}
!0 = !{i32 1, !"amdhsa_code_object_version", i32 500}
"""


def emit(text: str, cpu: str = "gfx942", features: str = "", level: int = 2) -> bytes:
    command = [sys.executable, "-c", EMIT, cpu, features, str(level)]
    return subprocess.run(command, input=text.encode(), capture_output=True, check=True).stdout


@pytest.mark.parametrize("name", ["gemm_gfx942", "three_kernels", "debug_lines"])
def test_this_llvm_emits_the_objects_of_the_fixtures(name: str) -> None:
    """Otherwise the comparison with ld.lld speaks of another LLVM, and the fixtures want to be made again."""
    text = (FIXTURES / f"{name}.ll").read_text(encoding="utf-8")
    stored = object_bytes("three_kernels_gfx942" if name == "three_kernels" else name)
    assert emit(text, level=1 if name == "gemm_gfx942" else 2) == stored


def test_an_unknown_intrinsic_ends_as_an_undefined_symbol() -> None:
    text = (
        HEAD
        + """
declare i32 @llvm.amdgcn.no.such.thing(i32)
define protected amdgpu_kernel void @k(ptr addrspace(1) %p, i32 %x) {
  %y = call i32 @llvm.amdgcn.no.such.thing(i32 %x)
  store i32 %y, ptr addrspace(1) %p
  ret void
}
"""
    )
    data = emit(text)
    assert inspect(data).undefined == ["llvm.amdgcn.no.such.thing"]
    with pytest.raises(LinkError, match=r"(?s)undefined symbol: llvm.amdgcn.no.such.thing.*check its spelling"):
        link(data)


def test_linkonce_code_lands_in_no_group_and_links() -> None:
    text = (
        HEAD
        + """
define linkonce_odr hidden i32 @helper(i32 %x) noinline { ret i32 %x }
define protected amdgpu_kernel void @k(ptr addrspace(1) %p, i32 %x) {
  %y = call i32 @helper(i32 %x)
  store i32 %y, ptr addrspace(1) %p
  ret void
}
"""
    )
    assert list(CodeObject.from_image(link(emit(text))).kernels) == ["k"]


def test_a_comdat_is_refused() -> None:
    text = (
        HEAD
        + """
$helper = comdat any
define linkonce_odr hidden i32 @helper(i32 %x) noinline comdat { ret i32 %x }
define protected amdgpu_kernel void @k(ptr addrspace(1) %p, i32 %x) {
  %y = call i32 @helper(i32 %x)
  store i32 %y, ptr addrspace(1) %p
  ret void
}
"""
    )
    with pytest.raises(LinkError, match=r"(?s)COMDAT group.*no comdat"):
        link(emit(text))


def test_global_constructors_are_refused() -> None:
    text = (
        HEAD
        + """
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 1, ptr @init, ptr null }]
define internal void @init() { ret void }
"""
    )
    with pytest.raises(
        LinkError, match=r"(?s)__init_array_start.*drop llvm.global_ctors.*global constructors are not supported"
    ):
        link(emit(text))


@pytest.mark.parametrize("cpu", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1200", "gfx1201", "gfx1250"])
def test_every_chip_links_and_names_itself(cpu: str, tmp_path: Path) -> None:
    text = (FIXTURES / "three_kernels.ll").read_text(encoding="utf-8")
    code = CodeObject.from_image(link(emit(text, cpu)))
    code.save(tmp_path / "k.hsaco")
    assert code.target.processor == cpu
    assert code.target.wave_size == code.target.chip.waves[0]
    assert list(code.kernels) == ["lookup", "state", "shared"]


def test_both_wave_sizes_of_a_chip_are_told_apart() -> None:
    text = (FIXTURES / "vector_add.ll").read_text(encoding="utf-8")
    for wave in (32, 64):
        code = CodeObject.from_image(link(emit(text, "gfx1100", f"+wavefrontsize{wave}")))
        assert code.target.wave_size == code.kernels["vector_add"].wave_size == wave
