"""LDS that is read in another order than it was written is found at the read's line; right kernels are not blamed."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from flyllvm.sim import Simulator, simulate
from flyllvm.sim.machine import Machine
from flyllvm.sim.run import compiled, prepare
from flyllvm.target import Target
from tests.sim.kernels import gemm, line_of
from tests.sim.operands import MFMA, MFMA_950, SHAPES, WMMA_11, Kernel, Place, Shape, plain, swizzled

pytestmark = pytest.mark.sim
SAYS = "LDS is read in another order than it was written"
EACH = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)


def warnings(kernel: Kernel, write: Place, read: Place, **options: Any) -> list[str]:
    found = kernel.run(write, read, **options).warnings
    assert all(SAYS in text for text in found)
    return found


def disagreeing(pitch: int) -> list[tuple[Place, Place]]:
    """Places of the write and of the read: swizzle on one side only, two swizzles."""
    return [
        (swizzled(pitch), plain(pitch)), (plain(pitch), swizzled(pitch)), (swizzled(pitch), swizzled(pitch, shift=1)),
        (swizzled(pitch), swizzled(pitch, bits=1)),
    ]  # fmt: skip


def agreeing(pitch: int) -> list[Place]:
    return [plain(pitch), swizzled(pitch), swizzled(pitch, 1, 1), plain(pitch + 16)]


def wide(shape: Shape) -> Kernel:
    """Column-major A, tiles side by side that one B multiplies."""
    width = max(64, shape.wave * 16 // shape.depth, shape.rows * shape.element)
    return Kernel(shape, width, turned=True, blocks=width // (shape.rows * shape.element))


# ---- what is found


@EACH
def test_rows_of_a_read_otherwise_than_written_are_found(shape: Shape) -> None:
    kernel = Kernel(shape, 128)
    reads = {n for n, line in enumerate(kernel.text().split("\n"), 1) if re.match(r"%q\d", line)}
    for write, read in disagreeing(128):
        found = warnings(kernel, write, read)
        assert found
        assert {int(re.match(r"k\.ll:(\d+): '%q", text)[1]) for text in found} <= reads  # type: ignore[index]
    for place in agreeing(128):
        assert not warnings(kernel, place, place)


@EACH
def test_columns_of_a_read_otherwise_than_written_are_found(shape: Shape) -> None:
    kernel = wide(shape)
    for write, read in disagreeing(kernel.width):
        assert warnings(kernel, write, read)
    for place in agreeing(kernel.width):
        assert not warnings(kernel, place, place)


CLEARED = "".join(
    f"%z{i} = add i32 %t, {64 * i}\n%y{i} = mul i32 %z{i}, 16\n"
    f"%c{i} = getelementptr i8, ptr addrspace(3) @lds, i32 %y{i}\n"
    f"store <4 x i32> zeroinitializer, ptr addrspace(3) %c{i}, align 16\n"
    for i in range(16)
)


@pytest.mark.parametrize(("write", "read"), [(80, 64), (64, 80), (64, 72)])
def test_another_pitch_of_rows_is_found(write: int, read: int) -> None:
    kernel = Kernel(MFMA_950, 64, before=CLEARED)
    assert warnings(kernel, plain(write), plain(read))
    assert not warnings(kernel, plain(write), plain(write))


def test_operand_b_is_checked_too() -> None:
    kernel = Kernel(MFMA, 128)
    text = re.sub(r"\(<4 x half> (%f\d), <4 x half> %b,", r"(<4 x half> %b, <4 x half> \1,", kernel.text())
    for write, read in disagreeing(128):
        found = warnings(kernel, write, read, text=text)
        assert found and all("in operand B of" in x for x in found)
    assert not warnings(kernel, swizzled(128), swizzled(128), text=text)


def _pipeline(read: str) -> str:
    """A GEMM whose next tile is in registers while this one is in one of two LDS buffers."""
    text = gemm(read_swizzle=read == "%sw")
    head, loop = text.split("  br label %loop\nloop:\n")
    _, tail = loop.split("exit:\n")
    head = head.replace("[512 x half]", "[1024 x half]").replace("[256 x half]", "[512 x half]")
    loop = """
  %p0 = getelementptr half, ptr addrspace(1) %a, i32 %go
  %a0 = load <4 x half>, ptr addrspace(1) %p0, align 8
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i1, %next ]
  %acc = phi <4 x float> [ zeroinitializer, %entry ], [ %d, %next ]
  %va = phi <4 x half> [ %a0, %entry ], [ %an, %next ]
  %stage = lshr i32 %i, 4
  %odd = and i32 %stage, 1
  %buffer = mul i32 %odd, 1024
  %wat = getelementptr i8, ptr addrspace(3) %wa, i32 %buffer
  store <4 x half> %va, ptr addrspace(3) %wat, align 8
  %i1 = add i32 %i, 16
  %more = icmp ult i32 %i1, %k
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  br i1 %more, label %fetch, label %next
fetch:
  %ga = add i32 %go, %i1
  %pa = getelementptr half, ptr addrspace(1) %a, i32 %ga
  %ax = load <4 x half>, ptr addrspace(1) %pa, align 8
  br label %next
next:
  %an = phi <4 x half> [ %ax, %fetch ], [ zeroinitializer, %loop ]
  %rat = getelementptr i8, ptr addrspace(3) %rpa, i32 %buffer
  %fa = load <4 x half>, ptr addrspace(3) %rat, align 8
  %d = call <4 x float> @llvm.amdgcn.mfma.f32.16x16x16f16({operands})
  br i1 %more, label %loop, label %exit
exit:
"""
    operands = (
        "<4 x half> %fa, <4 x half> <half 1.0, half 2.0, half 4.0, half 1.0>, <4 x float> %acc, i32 0, i32 0, i32 0"
    )
    return head + loop.replace("{operands}", operands) + tail


@pytest.mark.parametrize("k", [16, 32, 80])
def test_two_stage_pipeline_through_registers(k: int) -> None:
    args = [np.ones((32, k), np.float16), np.ones((16, k), np.float16), np.zeros((32, 16), np.float32), k]
    for read, count in (("%sw", 0), ("%quad", 1)):
        text = _pipeline(read)
        report = simulate(text, grid=1, block=128, args=args, checks="all", source_name="k.ll")
        assert (args[2] == 2 * k).all() and len(report.warnings) == count
        assert all(w.startswith(f"k.ll:{line_of(text, '%fa = load')}: ") and SAYS in w for w in report.warnings)


# ---- what is right, or may be meant


@pytest.mark.parametrize("shape", [MFMA, WMMA_11])
def test_rows_through_an_index_are_checked_and_right_ones_are_not_blamed(shape: Shape) -> None:
    gathered = (
        "%pi{i} = getelementptr i32, ptr addrspace(1) %index, i32 %row{i}\n"
        "%ri{i} = load i32, ptr addrspace(1) %pi{i}, align 4\n%rb{i} = mul i32 %ri{i}, 512\n"
        "%o{i} = add i32 %rb{i}, %cb{i}\n"
    )
    kernel = Kernel(shape, 128, offset=gathered)
    for place in agreeing(128):
        assert not warnings(kernel, place, place)
    for write, read in disagreeing(128)[:3]:
        assert warnings(kernel, write, read)


def _silent(offset: str, **options: Any) -> None:
    kernel = Kernel(MFMA, 128, offset=offset, **options)
    assert not warnings(kernel, swizzled(128), swizzled(128))


def test_pieces_through_an_index_may_be_anywhere() -> None:
    """A gathered convolution with few channels: every piece of a row has an index of its own."""
    _silent(
        "%pn{i} = and i32 %n{i}, 63\n%pi{i} = getelementptr i32, ptr addrspace(1) %index, i32 %pn{i}\n"
        "%ri{i} = load i32, ptr addrspace(1) %pi{i}, align 4\n%o{i} = mul i32 %ri{i}, 16\n"
    )


@pytest.mark.parametrize(
    "limit", ["%s{i} = urem i32 %u{i}, 8\n", "%s{i} = call i32 @llvm.umin.i32(i32 %u{i}, i32 12)\n"]
)
def test_rows_that_share_bytes_are_not_judged(limit: str) -> None:
    """A circulant matrix, and windows that are cut at a border."""
    _silent("%u{i} = add i32 %row{i}, %col{i}\n" + limit + "%o{i} = mul i32 %s{i}, 16\n")


def test_elements_of_several_arguments_are_not_judged() -> None:
    kernel = Kernel(MFMA, 128)
    load = (
        "%odd{i} = and i32 %row{i}, 1\n%is{i} = icmp eq i32 %odd{i}, 1\n"
        "%base{i} = select i1 %is{i}, ptr addrspace(1) %a, ptr addrspace(1) %index\n%part{i} = and i32 %o{i}, 127\n"
        "%from{i} = getelementptr i8, ptr addrspace(1) %base{i}, i32 %part{i}\n"
        "%v{i} = load <4 x i32>, ptr addrspace(1) %from{i}"
    )
    text = kernel.text()
    for i in range(2):
        text = text.replace(f"%v{i} = load <4 x i32>, ptr addrspace(1) %g{i}", load.replace("{i}", str(i)))
    assert not warnings(kernel, swizzled(128), plain(128), text=text)


def test_the_order_does_not_matter_where_the_other_operand_is_the_same_at_all_k() -> None:
    """Matrix instructions that add up rows multiply by ones."""
    kernel = Kernel(MFMA, 128)
    ones = kernel.text().replace("<4 x half> %b,", "<4 x half> splat (half 1.0),")
    assert ones != kernel.text() and not warnings(kernel, swizzled(128), plain(128), text=ones)


def test_what_the_kernel_wrote_to_memory_lies_there_as_it_likes() -> None:
    kernel = Kernel(MFMA, 128)
    assert warnings(kernel, swizzled(128), plain(128))
    kernel.before = "store i8 1, ptr addrspace(1) %a, align 1\n"
    assert not warnings(kernel, swizzled(128), plain(128))


def test_places_in_lds_that_data_decide_on_may_be_anywhere() -> None:
    """Only an order that differs between rows of the same pieces is told."""
    kernel = Kernel(MFMA_950, 64, before=CLEARED)
    text = kernel.text()
    data = text.replace("%wo0 = load i32, ptr addrspace(4) %pw0, align 4", (
        "%wx0 = load i32, ptr addrspace(4) %pw0, align 4\n%zero = load i32, ptr addrspace(1) %index, align 4\n"
        "%none = and i32 %zero, 0\n%wo0 = add i32 %wx0, %none"
    ))  # fmt: skip
    assert warnings(kernel, plain(80), plain(64), text=text) and not warnings(kernel, plain(80), plain(64), text=data)
    assert warnings(kernel, swizzled(64), plain(64), text=data)


def test_what_was_computed_has_no_origin() -> None:
    kernel = Kernel(MFMA, 128)
    again = "store <4 x i32> %v{i}, ptr addrspace(3) %w{i}, align 4\n%more{i} = add <4 x i32> %v{i}, splat (i32 1)\n"
    again += "store <4 x i32> %more{i}, ptr addrspace(3) %w{i}, align 4\n"
    text = kernel.text()
    for i in range(2):
        text = text.replace(f"store <4 x i32> %v{i}, ptr addrspace(3) %w{i}, align 4\n", again.replace("{i}", str(i)))
    assert warnings(kernel, swizzled(128), plain(128)) and not warnings(kernel, swizzled(128), plain(128), text=text)


@pytest.mark.parametrize("checks", ["none", "default"])
def test_nothing_is_followed_unless_all_checkers_run(checks: str) -> None:
    text = gemm(read_swizzle=False)
    assert compiled(text, None, Target.parse("gfx942"), "k.ll", checks).origins is None
    assert compiled(text, None, Target.parse("gfx942"), "k.ll", "all").origins is not None
    assert not Kernel(MFMA, 128).run(swizzled(128), plain(128), checks=checks).warnings


def test_kernels_without_matrix_instructions_are_not_followed() -> None:
    text = gemm().replace("%d = call", "%unused = call").replace("<4 x float> %d", "<4 x float> %acc")
    text = "\n".join(
        x for x in text.replace("[ %d, %latch ]", "[ zeroinitializer, %latch ]").split("\n") if "mfma" not in x
    )
    assert compiled(text, None, Target.parse("gfx942"), "k.ll", "all").origins is None


# ---- what is said


def _args(k: int = 32) -> list[Any]:
    rng = np.random.default_rng(0)
    a, b = rng.integers(-4, 5, (32, k)).astype(np.float16), rng.integers(-4, 5, (16, k)).astype(np.float16)
    return [a, b, np.zeros((32, 16), np.float32), k]


def test_the_warning_names_both_sides_the_instruction_the_rows_and_the_remedy() -> None:
    text = gemm(read_swizzle=False)
    report = simulate(text, grid=1, block=128, args=_args(), checks="all", source_name="k.ll")
    first, second = report.warnings
    for said, letter, number in ((first, "A", 0), (second, "B", 1)):
        name = letter.lower()
        read, store = (line_of(text, part) for part in (f"%f{name} = load", f"store <4 x half> %v{name}"))
        assert said.startswith(f"k.ll:{read}: '%f{name} = load <4 x half>")
        assert f"in operand {letter} of '%d = call" in said and f"' at k.ll:{line_of(text, '%d = call')} " in said
        assert f"stored by 'store <4 x half> %v{name}" in said and f"' at k.ll:{store};" in said
        assert f"Of argument {number} %{name}, row 0 has k = 0 from byte 0 and k = 4 from byte 8, row 4 from" in said
        assert "row 4 from bytes 264 and 256 (workgroup (0, 0, 0), wave 0, lanes 0, 4, 16, 20)" in said
        assert "the address of the store goes through an xor, that of the read does not" in said
        assert "give the write to LDS and the read from it the same swizzle and the same row pitch" in said
    assert report.to_dict()["warnings"] == report.warnings == json.loads(report.to_json())["warnings"]
    assert f"  warning: {first}" in report.render()


def test_the_side_without_a_swizzle_is_named_where_it_is_the_write() -> None:
    text = gemm().replace("%lc = shl i32 %cs, 3", "%lc = shl i32 %cc, 3")
    report = simulate(text, grid=1, block=128, args=_args(), checks="all", source_name="k.ll")
    assert all("the address of the read goes through an xor, that of the store does not" in w for w in report.warnings)
    assert len(report.warnings) == 2


def test_a_run_in_steps_warns_too() -> None:
    text = gemm(read_swizzle=False)
    run = Simulator(text, grid=1, block=128, args=_args(), checks="all", source_name="k.ll")
    assert run.run_to(line_of(text, "%d = call")) and len(run.run().warnings) == 2


def test_mixed_operands_that_may_be_meant_are_not_looked_at_for_ever() -> None:
    kernel = Kernel(
        MFMA, 128, offset="%u{i} = add i32 %row{i}, %col{i}\n%s{i} = urem i32 %u{i}, 8\n%o{i} = mul i32 %s{i}, 16\n"
    )
    setup = prepare(kernel.complete(plain(128), plain(128)), None, grid=100, block=64, args=kernel.args(), checks="all")
    machine = Machine(setup.launch.program, setup.launch, 0, 100)
    setup.bind(machine)
    machine.run()
    assert set(setup.launch.excused.values()) == {64} and not setup.finish().warnings


def test_every_run_warns_and_every_pair_of_lines_once() -> None:
    text = gemm(read_swizzle=False)
    for _ in range(2):
        report = simulate(text, grid=1, block=128, args=_args(160), checks="all", source_name="k.ll")
        assert len(report.warnings) == 2
