"""Wrong input to the compiler: what, where and how to fix it; the process and its compile worker go on."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest

import flyllvm
import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.codegen.client import compile_llvm
from flyllvm.errors import (
    AtomError,
    CodegenError,
    FlyError,
    LaunchError,
    LayoutError,
    LinkError,
    ParseError,
    TargetError,
    TraceError,
    VerifyError,
)
from flyllvm.ir import types as t
from flyllvm.ir.builder import Builder
from flyllvm.target import Target

GFX942 = Target.parse("gfx942")


def compiled(fn: Any, *specs: Any, arch: str = "gfx942", block: int = 64, **options: Any) -> flyc.Artifact:
    made: flyc.Artifact = flyc.compile(flyc.kernel(fn, known_block_size=(block, 1, 1)), *specs, arch=arch, **options)
    return made


def line_of(fn: Any, text: str) -> str:
    """``file:line`` of the only line of a function that holds the text."""
    lines, first = inspect.getsourcelines(fn)
    (found,) = [i for i, line in enumerate(lines) if text in line]
    return f"{inspect.getsourcefile(fn)}:{first + found}"


def refused(kind: type[FlyError], fn: Any, *specs: Any, at: str | None = None, **options: Any) -> str:
    """The message, which names the line of the kernel that holds the text ``at``."""
    with pytest.raises(kind) as caught:
        compiled(fn, *specs, **options)
    said = str(caught.value)
    if at is not None:
        assert said.startswith(line_of(fn, at)), said
    return said


def empty() -> None:
    fx.barrier()


@pytest.fixture(autouse=True)
def alive() -> Any:
    """Whatever was refused, the next kernel compiles."""
    yield
    assert "s_endpgm" in compiled(empty, stop_after="llvm").assembly


# --- targets and atoms ----------------------------------------------------------------------------


@pytest.mark.llvm
def test_an_unknown_arch_names_the_known_ones() -> None:
    assert "fix: use one of: gfx90a, gfx942, gfx950" in refused(TargetError, empty, arch="gfx999")


@pytest.mark.llvm
def test_no_arch_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLYLLVM_ARCH", raising=False)
    with pytest.raises(TargetError, match=r"(?s)no architecture.*pass arch='gfx942', or set FLYLLVM_ARCH"):
        flyc.compile(flyc.kernel(empty))


@pytest.mark.llvm
def test_the_variable_decides_where_no_arch_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLLVM_ARCH", "gfx950")
    assert flyc.compile(flyc.kernel(empty), stop_after="llvm").target.processor == "gfx950"


@pytest.mark.llvm
@pytest.mark.parametrize(
    ("arch", "fix"), [("gfx942", "16x16x16"), ("gfx1100", "targets with it: gfx90a, gfx942, gfx950")]
)
def test_an_atom_of_another_chip_names_what_this_one_has(arch: str, fix: str) -> None:
    def kernel() -> None:
        fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 32, fx.Float16, fx.Float32))

    said = refused(TargetError, kernel, arch=arch, at="MFMA")
    assert f"cdna3.mfma<16x16x32, (f16, f16) -> f32> is not on {arch}" in said and fix in said


@pytest.mark.llvm
def test_a_shape_that_no_chip_has_names_the_legal_ones() -> None:
    def kernel() -> None:
        fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 17, fx.Float16, fx.Float32))

    assert "fix: (f16, f16) -> f32 on gfx942: 32x32x8, 16x16x16" in refused(AtomError, kernel, at="MFMA")


@pytest.mark.llvm
def test_a_buffer_copy_of_256_bits_names_the_widths() -> None:
    def kernel() -> None:
        fx.make_copy_atom(fx.rocdl.BufferCopy(256), fx.Float32)

    said = refused(AtomError, kernel, at="BufferCopy")
    assert "buffer_copy<256>" in said and "fix: use one of: 8, 16, 32, 64, 96, 128 bits" in said


@pytest.mark.llvm
@pytest.mark.parametrize("block", [63, 65, 1])
def test_an_mfma_in_a_block_of_no_whole_waves_names_the_multiple(block: int) -> None:
    def kernel() -> None:
        fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16, fx.Float32))

    said = refused(VerifyError, kernel, block=block, at="MFMA")
    assert f"has {block}" in said and "fix: use a block size that is a multiple of 64" in said


@pytest.mark.llvm
def test_a_block_that_no_workgroup_may_have_names_the_limit() -> None:
    assert "gfx942 runs at most 1024" in refused(TraceError, empty, block=1025)


# --- LDS ------------------------------------------------------------------------------------------


def lds_kernel(size_bytes: int) -> Any:
    def kernel(C: fx.Tensor) -> None:
        lds = fx.shared_memory(fx.Int8, size_bytes)
        lds[fx.thread_idx.x] = 1
        C[fx.thread_idx.x] = lds[fx.thread_idx.x]

    return kernel


@pytest.mark.llvm
@pytest.mark.parametrize(("arch", "limit"), [("gfx942", 64 << 10), ("gfx950", 160 << 10)])
def test_lds_over_the_limit_names_the_limit(arch: str, limit: int) -> None:
    art = compiled(lds_kernel(limit), "i8[64]", arch=arch)
    assert art.code_object.kernels["kernel"].lds_bytes == limit
    kernel = lds_kernel(limit + 1)
    said = refused(FlyError, kernel, "i8[64]", arch=arch, at="shared_memory")
    assert f"fix: {arch} has {limit} bytes for a workgroup" in said


@pytest.mark.llvm
def test_allocations_that_exceed_the_limit_together_are_refused() -> None:
    def kernel(C: fx.Tensor) -> None:
        first = fx.shared_memory(fx.Int8, 40 << 10)
        second = fx.shared_memory(fx.Int8, 30 << 10)
        first[0] = second[0] = 1
        C[0] = first[0]

    said = refused(FlyError, kernel, "i8[64]", at="30 << 10")
    assert "fix: gfx942 has 65536 bytes for a workgroup" in said


# --- layouts --------------------------------------------------------------------------------------


@pytest.mark.llvm
def test_a_composition_that_does_not_divide_names_mode_and_numbers() -> None:
    def kernel() -> None:
        fx.composition(fx.make_layout((6, 4), (1, 8)), fx.make_layout(5, 3))

    said = refused(LayoutError, kernel, at="composition")
    assert (
        "composition((6,4):(1,8), 5:3)" in said and "mode 0" in said and "not divisible by" in said and "fix:" in said
    )


@pytest.mark.llvm
def test_the_line_is_that_of_the_helper_and_of_its_caller() -> None:
    def helper() -> None:
        fx.make_copy_atom(fx.rocdl.BufferCopy(256), fx.Float32)  # the helper

    def kernel() -> None:
        helper()

    assert line_of(helper, "the helper") in refused(AtomError, kernel)


# --- specifications and arguments -----------------------------------------------------------------


def one(A: fx.Tensor) -> None:
    A[0] = A[1]


@pytest.mark.llvm
@pytest.mark.parametrize(
    ("specs", "kind", "said"),
    [
        ((), TraceError, "fix: give one specification per parameter"),
        (("f32[4]", "f32[4]"), TraceError, "fix: give one specification per parameter"),
        (("zzz[4]",), ParseError, "unknown element type 'zzz'"),
        (("f32[4",), ParseError, "write e.g. f16"),
        (("f32[4]{pad=3}",), ParseError, "marks are div=N and align=N"),
        (("f32[-4]",), ParseError, "use numbers and '?'"),
        (("f32[4]:(1,1)",), TraceError, "give one stride per extent"),
        (("f32[4]{align=3}",), TraceError, "use a power of two"),
        ((3.5,), LaunchError, "fix: pass an array"),
    ],
)
def test_specifications_that_do_not_fit_say_how_to_write_them(
    specs: tuple[Any, ...], kind: type[FlyError], said: str
) -> None:
    assert said in refused(kind, one, *specs)


@pytest.mark.llvm
def test_an_unknown_constant_names_the_parameters() -> None:
    assert "fix: parameters: A" in refused(TraceError, one, "f32[4]", constants={"B": 3})


@pytest.mark.llvm
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"cov": 700}, "use one of: 400, 500, 600"),
        ({"opt_level": 9}, "use one of: 0, 1, 2, 3"),
        ({"passes": "O9"}, "use one of: auto, none, O1, O2, O3"),
        ({"stop_after": "objects"}, "use one of: fly, atoms, ssa, llvm, object, link"),
    ],
)
def test_an_option_outside_its_set_names_the_set(options: dict[str, Any], said: str) -> None:
    assert said in refused(CodegenError, one, "f32[4]", **options)


@pytest.mark.llvm
def test_a_plain_function_is_not_compiled() -> None:
    with pytest.raises(TraceError, match="decorated with @flyc"):
        flyc.compile(empty, arch="gfx942")


@pytest.mark.llvm
def test_an_unknown_hint_names_the_hints() -> None:
    assert "fix: hints are: agpr, " in refused(TraceError, empty, no_such_hint=3)


@pytest.mark.sim
@pytest.mark.llvm
@pytest.mark.parametrize(
    ("value", "fix"),
    [
        (np.zeros((2, 16), np.float16), "pass an array of float32"),
        (np.zeros(16, np.float32), "pass 2 dimensions"),
        (np.zeros((3, 8), np.float32), "pass a multiple of 2"),
        (np.zeros((2, 7), np.float32), "it is compiled for 8"),
        (np.zeros((8, 2), np.float32).T, "it is compiled for 8"),
    ],
    ids=["type", "rank", "divisibility", "extent", "stride"],
)
def test_an_array_that_does_not_fit_its_specification_says_what_does(value: np.ndarray, fix: str) -> None:
    def kernel(A: fx.Tensor, n: fx.Int32) -> None:
        A[0, 0] = fx.Float32(n)

    art = compiled(kernel, "f32[?{div=2},8]", "i32", stop_after="llvm")
    with pytest.raises(LaunchError, match=re.escape(fix)):
        art.simulate(value, 3, grid=1)


@pytest.mark.sim
@pytest.mark.llvm
@pytest.mark.parametrize("value", [1 << 31, -(1 << 31) - 1, 1.5, "3"])
def test_a_number_that_does_not_fit_its_specification_is_refused(value: Any) -> None:
    def kernel(A: fx.Tensor, n: fx.Int32) -> None:
        A[0] = n

    art = compiled(kernel, "i32[1]", "i32", stop_after="llvm")
    with pytest.raises(LaunchError, match="argument n"):
        art.simulate(np.zeros(1, np.int32), value, grid=1)


@pytest.mark.sim
@pytest.mark.llvm
def test_a_launch_with_other_blocks_grids_or_argument_counts_is_refused() -> None:
    art = compiled(one, "f32[4]", stop_after="llvm")
    a = np.zeros(4, np.float32)
    with pytest.raises(LaunchError, match=r"fix: it is compiled for \(64, 1, 1\)"):
        art.simulate(a, grid=1, block=32)
    for grid in (0, 1.5, True, (1, 1, 1, 1), ()):
        with pytest.raises(LaunchError, match="use one to three positive ints"):
            art.simulate(a, grid=grid)
    with pytest.raises(LaunchError, match=r"below 2\*\*31"):
        art.simulate(a, grid=2**31)
    art.simulate(a, grid=np.int64(1))
    with pytest.raises(LaunchError, match="pass 1 argument"):
        art.simulate(a, a, grid=1)


# --- object files and LLVM IR ---------------------------------------------------------------------


@pytest.mark.llvm
@pytest.mark.parametrize("use", [flyllvm.link, flyllvm.inspect], ids=["link", "inspect"])
def test_a_truncated_file_is_refused_wherever_it_is_cut(use: Any) -> None:
    whole = compiled(empty, stop_after="object").object_bytes
    assert whole is not None and use(whole)
    for size in (0, 1, 4, 63, 64, 200, len(whole) // 2, len(whole) - 1):
        with pytest.raises(LinkError, match="fix:"):
            use(whole[:size])


@pytest.mark.llvm
@pytest.mark.parametrize("use", [flyllvm.link, flyllvm.inspect], ids=["link", "inspect"])
def test_a_foreign_file_is_refused_by_its_machine_or_magic(use: Any) -> None:
    x86 = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\x3e\x00\x01" + bytes(43)
    with pytest.raises(LinkError, match=r"machine 62 \(x86-64\), not for an AMD GPU"):
        use(x86)
    with pytest.raises(LinkError, match="fix:"):
        use(b"MZ" + bytes(200))


BROKEN = [
    ("define void @x() { ret i32 %y }", "expected|type"),
    ("define void @x() {", "expected|end of"),
    ("target triple", "expected"),
    ('target triple = "amdgcn-amd-amdhsa"\n\0', "line 2 of the LLVM IR has a NUL"),
]


@pytest.mark.llvm
@pytest.mark.parametrize(("text", "words"), BROKEN)
def test_broken_llvm_ir_is_refused_with_llvms_words(text: str, words: str) -> None:
    with pytest.raises(CodegenError, match=words) as caught:
        compile_llvm(text, GFX942)
    assert "fix:" in str(caught.value)


@pytest.mark.sim
@pytest.mark.llvm
@pytest.mark.parametrize("text", [text for text, _ in BROKEN])
def test_broken_llvm_ir_is_refused_by_the_simulator(text: str) -> None:
    with pytest.raises(FlyError):
        flyllvm.simulate(text, kernel="x", grid=(1, 1, 1), block=(64, 1, 1), args=[], target="gfx942")


WRONG_CHIP = """target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @k(ptr addrspace(1) %p, <8 x half> %a, <4 x float> %c) {
  %r = call <4 x float> @llvm.amdgcn.mfma.f32.16x16x32.f16(
      <8 x half> %a, <8 x half> %a, <4 x float> %c, i32 0, i32 0, i32 0)
  store <4 x float> %r, ptr addrspace(1) %p
  ret void
}
declare <4 x float> @llvm.amdgcn.mfma.f32.16x16x32.f16(<8 x half>, <8 x half>, <4 x float>, i32, i32, i32)
"""


@pytest.mark.llvm
def test_an_intrinsic_that_llvm_would_abort_on_is_refused_by_name_before_llvm_sees_it() -> None:
    with pytest.raises(TargetError, match=r"llvm\.amdgcn\.mfma\.f32\.16x16x32\.f16"):
        compile_llvm(WRONG_CHIP, GFX942)


@pytest.mark.llvm
def test_an_abort_of_llvm_is_an_error_with_its_words(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLLVM_DUMP_DIR", str(tmp_path))
    with pytest.raises(CodegenError, match=r"(?s)LLVM .*Cannot select.*saved as") as caught:
        compile_llvm(WRONG_CHIP, GFX942, check=False)
    (saved,) = tmp_path.iterdir()
    assert str(saved) in str(caught.value) and "16x16x32" in saved.read_text()


@pytest.mark.llvm
def test_an_intrinsic_of_the_author_that_llvm_lacks_is_refused_at_the_line() -> None:
    def kernel(A: fx.Tensor) -> None:
        v = Builder.current().intrinsic("amdgcn.no.such", t.I32, [])
        A[0] = fx.Int32.wrap(v)

    assert "amdgcn.no.such" in refused(FlyError, kernel, "i32[4]", at="no.such")


@pytest.mark.parametrize("value", [1.5, "x", True])
def test_a_constant_is_checked_against_its_annotation(value: Any) -> None:
    def kernel(A: fx.Tensor, c: fx.Constexpr[int]) -> None:
        A[0] = fx.Int32(c)

    with pytest.raises(LaunchError, match=rf"argument c: {value!r} for Constexpr\[int\]\n  fix: pass a Python int"):
        compiled(kernel, "i32[4]", constants={"c": value}, stop_after="llvm")
    with pytest.raises(LaunchError, match="argument c"):
        flyc.kernel(kernel).trace(["i32[4]"], "gfx942", {"c": value})
