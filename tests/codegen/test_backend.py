"""Backends are replaceable: the same fly IR for a GPU and for one thread of the host."""

from __future__ import annotations

import struct

import pytest

from flyllvm.codegen import compile_llvm
from flyllvm.codegen.amdgpu import Amdgpu
from flyllvm.codegen.backend import Backend, backend_for
from flyllvm.codegen.client import run_host
from flyllvm.codegen.x86 import X86, host_target
from flyllvm.errors import CodegenError, LinkError
from flyllvm.ir import types as t
from tests.codegen.kernels import GFX942, Making, build, filecheck


def scale(k: Making) -> None:
    """Adds the ids and twice the input, through LDS and a barrier."""
    p, q = k.ptr("p", t.F32, 4), k.ptr("q", t.F32, 4)
    b = k.b
    tile = b.shared(t.F32, 64)
    i = b.thread_id() + k.op("gpu.block_dim", [], [t.I32], dimension="x")
    x = b.ptr_load(b.add_offset(p, i))
    b.ptr_store(b.binary("arith.addf", x, x), b.add_offset(tile, b.lane_id()))
    b.barrier()
    b.ptr_store(b.ptr_load(tile), b.add_offset(q, b.block_id("y")))


def test_a_target_has_its_backend() -> None:
    assert isinstance(backend_for(GFX942), Amdgpu) and isinstance(backend_for(host_target()), X86)
    backends: list[Backend] = [Amdgpu(), X86()]
    assert [b.space("shared") for b in backends] == [3, 0]
    assert [b.space("buffer_desc") for b in backends] == [8, 0]


def test_the_host_is_one_thread_with_one_address_space() -> None:
    text = build(scale, host_target()).text()
    filecheck(
        text,
        """
        CHECK: target triple = "x86_64-unknown-linux-gnu"
        CHECK: @lds0 = internal global [64 x i8] poison
        CHECK: define void @k(ptr noundef align 4 %p, ptr noundef align 4 %q)
        """,
    )
    assert "addrspace" not in text and "amdgcn" not in text and "barrier" not in text


@pytest.mark.llvm
def test_a_scalar_kernel_runs_on_the_host_and_compiles_for_the_gpu() -> None:
    got = run_host(
        build(scale, host_target()).text(debug=True), "k", [("ptr", struct.pack("<2f", 1.5, 2.5)), ("ptr", bytes(4))]
    )
    assert struct.unpack("<f", got[1]) == (5.0,)
    assert compile_llvm(build(scale).text(), GFX942).object
    assert compile_llvm(build(scale, host_target()).text(), host_target()).object[:4] == b"\x7fELF"


@pytest.mark.llvm
def test_a_function_that_is_not_there_cannot_be_run() -> None:
    with pytest.raises(CodegenError, match="has no function missing"):
        run_host("define void @k() {\n  ret void\n}\n", "missing", [])


@pytest.mark.llvm
def test_each_backend_finishes_its_objects() -> None:
    made = compile_llvm(build(scale).text(), GFX942).object
    assert Amdgpu().finish(made)[16:18] == b"\x03\x00" and made[16:18] == b"\x01\x00"
    assert X86().finish(b"object") == b"object"
    with pytest.raises(LinkError):
        Amdgpu().finish(b"no object")


@pytest.mark.llvm
def test_the_lds_wait_stands_before_the_barrier() -> None:
    for arch in ("gfx942", "gfx950", "gfx1100", "gfx1201"):
        made = build(scale, arch, known_block_size=(256, 1, 1))
        lines = compile_llvm(made.text(), made.target, want=["asm"]).assembly.splitlines()
        barrier = next(i for i, line in enumerate(lines) if "s_barrier" in line)
        before = [line.strip() for line in lines[:barrier]]
        store = max(i for i, line in enumerate(before) if line.startswith(("ds_write", "ds_store")))
        assert any(line.startswith(("s_waitcnt lgkmcnt(0)", "s_wait_dscnt 0x0")) for line in before[store:]), arch
