"""The module around the instructions: attributes, parameters, line tables, determinism."""

from __future__ import annotations

import subprocess
import sys

import pytest

from flyllvm.codegen import Options, compile_llvm, emit_module
from flyllvm.codegen.amdgpu import Amdgpu
from flyllvm.codegen.debug_info import short_path
from flyllvm.codegen.x86 import X86
from flyllvm.codeobject import inspect, link
from flyllvm.errors import CodegenError, TargetError
from flyllvm.ir import types as t
from flyllvm.ir.core import Kernel, Module
from flyllvm.ir.location import Frame, Location
from tests.codegen.kernels import GFX942, HERE, Making, build, filecheck, kernel


def stores(k: Making) -> None:
    p = k.ptr("p")
    k.b.ptr_store(k.b.constant(1.0, t.F32), k.b.add_offset(p, k.b.thread_id()))


# --- attributes -----------------------------------------------------------------------------------


def test_attributes_say_what_llvms_passes_would_find_out() -> None:
    text = build(stores, known_block_size=(64, 4, 1), waves_per_eu=2).text()
    filecheck(
        text,
        """
        CHECK: define protected amdgpu_kernel void @k(
        CHECK-SAME: !reqd_work_group_size ![[N:[0-9]+]]
        CHECK: attributes #0 = { nounwind "amdgpu-flat-work-group-size"="256,256" "uniform-work-group-size"="true"
        CHECK-SAME: "amdgpu-waves-per-eu"="2" "amdgpu-agpr-alloc"="0"
        CHECK: ![[N]] = !{i32 64, i32 4, i32 1}
        """,
    )
    for name in ("implicitarg-ptr", "workgroup-id-y", "workitem-id-z", "queue-ptr", "flat-scratch-init"):
        assert f'"amdgpu-no-{name}"' in text
    assert '"amdgpu-no-workitem-id-x"' not in text


def test_an_id_that_is_used_has_no_attribute_against_it() -> None:
    def fn(k: Making) -> None:
        p = k.ptr("p", t.I32)
        k.b.ptr_store(k.b.block_id("y"), p)
        k.b.ptr_store(k.b.thread_id("z"), p)

    text = build(fn, known_block_size=(2, 2, 2)).text()
    assert '"amdgpu-no-workgroup-id-y"' not in text and '"amdgpu-no-workitem-id-z"' not in text
    assert '"amdgpu-no-workgroup-id-z"' in text and '"amdgpu-no-workitem-id-y"' in text


def test_attributes_of_one_kernel_do_not_touch_the_next() -> None:
    first = build(lambda k: k.b.ptr_store(k.b.block_id("y"), k.ptr("p", t.I32))).kernel
    second = build(stores).kernel
    second.name = "second"
    text = emit_module(Module([first, second]), GFX942, Options(debug=False))
    zero, one = (line for line in text.splitlines() if line.startswith("attributes"))
    assert "workgroup-id-y" not in zero and "workgroup-id-y" in one


def accumulate(k: Making, vectors: int) -> None:
    p, n = k.ptr("p", align=16), k.arg(t.I32, "n")
    v = k.b.ptr_load(p, 4)
    out = k.b.for_(0, n, 1, [v] * vectors, lambda i, *c: [k.b.binary("arith.addf", x, v) for x in c])
    for i, x in enumerate(out):
        k.b.ptr_store(x, k.b.add_offset(p, 4 * i))


@pytest.mark.parametrize(
    ("vectors", "policy", "free"), [(16, "auto", False), (64, "auto", False), (1, "allow", True), (64, "never", False)]
)
def test_accumulation_registers_are_the_last_resort_unless_allowed(vectors: int, policy: str, free: bool) -> None:
    text = build(lambda k: accumulate(k, vectors)).text(agpr=policy)
    assert ('"amdgpu-agpr-alloc"="0"' not in text) == free


def test_only_chips_with_accumulation_registers_get_their_attribute() -> None:
    assert "agpr" not in build(stores, "gfx1100").text()


def test_options_reach_the_module() -> None:
    text = build(stores).text(cov=600, denormals="flush_f32", fast_math=("contract",))
    assert '"amdhsa_code_object_version", i32 600' in text and "preserve-sign,preserve-sign" in text


def test_fast_math_flags_are_the_operations_own_and_the_modules() -> None:
    def fn(k: Making) -> None:
        p = k.ptr("p")
        x = k.b.ptr_load(p)
        y = k.b.binary("arith.addf", x, x)
        z = k.op("arith.mulf", [y, x], [t.F32], fastmath=("nnan",))
        k.b.ptr_store(k.op("math.fma", [z, z, z], [t.F32], fastmath=("fast",)), p)

    plain = build(fn).text()
    filecheck(plain, "CHECK: fadd float\nCHECK: fmul nnan float\nCHECK: call fast float @llvm.fma.f32")
    filecheck(build(fn).text(fast_math=("contract",)), "CHECK: fadd contract float\nCHECK: fmul contract nnan float")


@pytest.mark.parametrize(
    ("option", "fix"),
    [
        ({"cov": 700}, "400, 500, 600"), ({"opt_level": 4}, "0, 1, 2, 3"), ({"passes": "O4"}, "none, O1"),
        ({"agpr": "some"}, "auto, never, allow"), ({"denormals": "x"}, "ieee, flush_f32"),
        ({"fast_math": ("quick",)}, "nnan, ninf"),
    ],
)  # fmt: skip
def test_an_option_outside_its_set_is_refused(option: dict[str, object], fix: str) -> None:
    with pytest.raises(CodegenError, match=fix):
        Options(**option)  # type: ignore[arg-type]


def test_a_block_that_no_chip_runs_is_refused() -> None:
    with pytest.raises(TargetError, match="at most 1024"):
        build(stores, known_block_size=(1024, 2, 1)).text()
    with pytest.raises(CodegenError, match="one to three positive integers"):
        emit_module(Module([build(stores, known_block_size=(0, 1, 1)).kernel]), GFX942)


# --- parameters -----------------------------------------------------------------------------------


def test_parameters_carry_what_is_known_of_them() -> None:
    def fn(k: Making) -> None:
        k.ptr("a", t.F16, 16, noalias=True, readonly=True, dereferenceable=64)
        k.arg(t.F16, "x")
        k.arg(t.I1, "flag")
        k.arg(t.F8E4M3FN, "small")
        k.arg(t.VectorType(4, t.F32), "v")
        k.arg(t.PtrType(t.F32, "shared"), "s")

    filecheck(
        build(fn).text(preload_kernargs=2),
        """
        CHECK: (ptr addrspace(1) inreg noundef noalias readonly dereferenceable(64) align 16 %a, half inreg noundef %x,
        CHECK-SAME: i8 noundef %flag, i8 noundef %small, <4 x float> noundef %v, ptr addrspace(3) noundef align 4 %s)
        """,
    )


def test_parameter_names_stay_clear_of_values_blocks_and_each_other() -> None:
    def fn(k: Making) -> None:
        for name in ("v0", "entry", "loop1", "v", "x", "x", "odd name"):
            k.arg(t.I32, name)

    filecheck(
        build(fn).text(),
        'CHECK: %v0_, {{.*}} %entry_, {{.*}} %loop1_, {{.*}} %v, {{.*}} %x, {{.*}} %x_, {{.*}} %"odd name")',
    )


@pytest.mark.parametrize(
    ("type_", "fix"),
    [
        (t.PtrType(t.F32, "buffer_desc"), "make the descriptor in the kernel"),
        (t.PtrType(t.F32, "register"), "pass a global pointer"),
        (t.IntTupleType((1, 2)), "the leaves of layouts as numbers"),
        (t.F4E2M1FN, "pass an i8"),
    ],
)
def test_a_parameter_that_no_host_can_pass_is_refused(type_: t.Type, fix: str) -> None:
    with pytest.raises(CodegenError, match=fix):
        build(lambda k: [k.arg(type_, "x")]).text()


def test_modules_have_kernels_of_different_names() -> None:
    with pytest.raises(CodegenError, match="at least one kernel"):
        emit_module(Module([]), GFX942)
    with pytest.raises(CodegenError, match="give each kernel its own name"):
        emit_module(Module([Kernel("k"), Kernel("k")]), GFX942)


def test_two_kernels_may_name_their_lds_alike() -> None:
    def fn(k: Making) -> None:
        k.b.ptr_store(k.b.constant(1.0, t.F32), k.b.shared(t.F32, 64, symbol="tile"))

    kernels = [build(fn).kernel, build(fn).kernel]
    kernels[1].name = "other"
    filecheck(emit_module(Module(kernels), GFX942), "CHECK: @tile = internal\nCHECK-NEXT: @tile.1 = internal")


# --- line tables ----------------------------------------------------------------------------------

CALLER = Frame("/home/author/project/main.py", 20, "kernel", 10)
HELPER = Frame("/home/author/project/lib/helper.py", 3, "load", 1)


def with_lines(k: Making) -> None:
    k.kernel.loc = Location((Frame("/home/author/project/main.py", 10, "kernel", 10),))
    p = k.ptr("p")
    k.b.loc = Location((HELPER, CALLER))
    x = k.b.binary("arith.addf", k.b.ptr_load(p), k.b.ptr_load(k.b.add_offset(p, 1)))
    k.b.loc = Location((CALLER,))
    k.b.ptr_store(x, p)


def test_an_instruction_of_a_helper_is_inlined_at_its_caller() -> None:
    filecheck(
        build(with_lines).text(debug=True, source_prefix="/home/author/project"),
        """
        CHECK: load float{{.*}}, !dbg ![[L:[0-9]+]]
        CHECK: store float{{.*}}, !dbg ![[S:[0-9]+]]
        CHECK: DIFile(filename: "main.py", directory: "")
        CHECK: emissionKind: LineTablesOnly
        CHECK: ![[S]] = !DILocation(line: 20, column: 0, scope: ![[K:[0-9]+]])
        CHECK: DIFile(filename: "lib/helper.py"
        CHECK: ![[H:[0-9]+]] = distinct !DISubprogram(name: "load", {{.*}}line: 1
        CHECK: ![[L]] = !DILocation(line: 3, column: 0, scope: ![[H]], inlinedAt: ![[S]])
        """,
    )


@pytest.mark.llvm
def test_line_tables_hold_lines_and_no_absolute_path() -> None:
    text = build(with_lines).text(debug=True)
    made = compile_llvm(text, GFX942, want=("obj", "asm"))
    assert b"helper.py" in made.object and b"/home/author" not in made.object
    assert ".loc\t" in made.assembly
    assert b".debug_line" not in compile_llvm(build(with_lines).text(), GFX942).object


def test_a_path_is_cut_to_its_prefix_or_its_name() -> None:
    assert short_path("/a/b/c.py", "/a") == "b/c.py"
    assert short_path("/ab/c.py", "/a") == "c.py"
    assert short_path("/a/b/c.py", None) == "c.py"


@pytest.mark.llvm
def test_odd_names_and_paths_are_quoted() -> None:
    def fn(k: Making) -> None:
        k.kernel.name = 'k "\\ é'
        k.b.loc = Location((Frame('/x/ü"\\.py', 3, "<lambda>", 1),))
        stores(k)

    assert compile_llvm(build(fn).text(debug=True), GFX942).object


def test_the_same_module_gives_the_same_text() -> None:
    assert build(with_lines).text(debug=True) == build(with_lines).text(debug=True)


def test_text_does_not_depend_on_the_hash_seed() -> None:
    program = (
        "from tests.codegen.test_module import *\n"
        "def fn(k):\n stores(k); k.b.barrier(); k.b.ptr_store(k.b.block_id('y'), k.ptr('q', t.I32))\n"
        "import hashlib; print(hashlib.sha256(build(fn).text(debug=True).encode()).hexdigest())"
    )
    got = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(got) == 1


# --- the backends' facts --------------------------------------------------------------------------

_LAYOUTS = """
import llvmlite.binding as llvm
llvm.initialize_all_targets()
gpu = "amdgcn-amd-amdhsa"
for triple, cpu in ((gpu, "gfx942"), (gpu, "gfx1250"), ("x86_64-unknown-linux-gnu", "")):
    print(llvm.Target.from_triple(triple).create_target_machine(cpu).target_data)
"""


@pytest.mark.llvm
def test_data_layouts_are_llvms_own() -> None:
    out = subprocess.run([sys.executable, "-c", _LAYOUTS], capture_output=True, text=True, check=True).stdout.split()
    assert out == [Amdgpu.data_layout, Amdgpu.data_layout, X86.data_layout]


def test_the_kernel_location_is_where_errors_about_it_point() -> None:
    made = build(stores, known_block_size=(1, 1, -1))
    assert made.kernel.loc is HERE
    with pytest.raises(CodegenError, match=r"author.py:7: known_block_size"):
        emit_module(Module([made.kernel]), GFX942)


# --- what the loader sees -------------------------------------------------------------------------


@pytest.mark.llvm
@pytest.mark.parametrize("cov", [400, 500, 600])
def test_hidden_arguments_are_there_only_when_they_are_used(cov: int) -> None:
    def asks(k: Making) -> None:
        k.b.ptr_store(k.op("gpu.block_dim", [], [t.I32], dimension="x"), k.ptr("p", t.I32))

    plain = inspect(link(compile_llvm(build(stores).text(cov=cov), GFX942).object)).kernels["k"]
    asking = inspect(link(compile_llvm(build(asks).text(cov=cov), GFX942).object)).kernels["k"]
    assert plain.kernarg_bytes == 8 and [a.name for a in plain.args] == ["p"]
    # Version 4 reads the block size out of the dispatch packet.
    assert (asking.kernarg_bytes > 200) == (cov >= 500)


@pytest.mark.llvm
def test_the_loader_sees_the_block_size_and_the_static_lds() -> None:
    def fn(k: Making) -> None:
        tile = k.b.shared(t.F32, 1024)
        k.b.ptr_store(k.b.constant(1.0, t.F32), k.b.add_offset(tile, k.b.thread_id()))
        k.b.barrier()
        k.b.ptr_store(k.b.ptr_load(tile), k.ptr("p"))

    text = build(fn, known_block_size=(256, 1, 1)).text()
    info = inspect(link(compile_llvm(text, GFX942).object)).kernels["k"]
    assert info.lds_bytes == 1024 and info.max_workgroup_size == 256
    assert info.vgpr_spill_count == 0 and info.scratch_bytes == 0


# --- names ----------------------------------------------------------------------------------------


def named(name: str, symbol: str | None = None) -> Kernel:
    with kernel(name, GFX942) as k:
        lds = k.b.shared(t.F32, 256, symbol=symbol) if symbol else k.ptr("p")
        k.b.ptr_store(k.b.constant(1.0, t.F32), lds)
    return k.kernel


def test_lds_makes_way_for_a_kernel_of_its_name() -> None:
    text = emit_module(Module([named("a", "tile"), named("tile", "tile")]), GFX942)
    assert "@tile.1 = internal addrspace(3) global" in text and "@tile.2 = internal addrspace(3) global" in text
    assert "amdgpu_kernel void @tile(" in text


@pytest.mark.parametrize(
    ("kernels", "said"),
    [
        ([("a", None), ("a", None)], "two globals are called a"),
        ([("flyllvm.dynamic_lds", None)], "two globals are called flyllvm.dynamic_lds"),
        ([("llvm.sqrt", None)], "the name llvm.sqrt: LLVM keeps names"),
        ([("a", "llvm.used")], "the name llvm.used: LLVM keeps names"),
    ],
)
def test_names_that_clash_are_refused(kernels: list[tuple[str, str | None]], said: str) -> None:
    with pytest.raises(CodegenError, match=rf"{said}(?s:.)*fix: (rename it|give each kernel its own name)"):
        emit_module(Module([named(*k) for k in kernels]), GFX942)
