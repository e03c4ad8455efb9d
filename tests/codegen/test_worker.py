"""The compile worker: what kills LLVM is an error here, and the next compilation works."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from flyllvm.codegen import compile_llvm
from flyllvm.codegen.client import WorkerPool, default_pool
from flyllvm.codegen.process import command
from flyllvm.codegen.x86 import host_target
from flyllvm.errors import CodegenError
from flyllvm.ir import types as t
from flyllvm.target import Target
from tests.codegen.kernels import GFX942, Making, build, long_module

pytestmark = pytest.mark.llvm


def module(body: str, args: str = "", tail: str = "") -> str:
    return f"define amdgpu_kernel void @k({args}) {{\n  {body}\n  ret void\n}}\n{tail}\n"


P = "ptr addrspace(1) %p"
RSRC = "ptr addrspace(8) %r"
GOOD = module(f"store i32 1, {P}", P)


def calls(call: str, result: str, args: str, declaration: str) -> str:
    """A kernel that stores the result of one call."""
    return module(f"%y = {call}\n  store {result} %y, {P}", f"{args}{P}", f"declare {declaration}")


def f64(name: str) -> str:
    load = f"%x = load double, {P}\n  %y = call double @llvm.{name}.f64(double %x)\n  store double %y, {P}"
    return module(load, P, f"declare double @llvm.{name}.f64(double)")


SLEEP = "@llvm.amdgcn.s.sleep"
LOOP = "br label %l\nl:\n  br i1 true, label %l, label %e, !llvm.loop !0\ne:"
WIDE_LOAD = "<8 x i32> @llvm.amdgcn.raw.ptr.buffer.load.v8i32"
NARROW_STORE = "void @llvm.amdgcn.raw.ptr.buffer.store.v3i8"
DMA = "void @llvm.amdgcn.raw.ptr.buffer.load.lds"
WMMA = "<4 x float> @llvm.amdgcn.wmma.f32.16x16x16.f16.v4f32.v16f16"
SCALED = "<4 x float> @llvm.amdgcn.mfma.scale.f32.16x16x128.f8f6f4.v8i32.v8i32"
V8, V4 = "<8 x i32> zeroinitializer", "<4 x float> zeroinitializer"
LDS = "addrspace(3)"
VERSION = '!llvm.module.flags = !{!0}\n!0 = !{i32 1, !"amdhsa_code_object_version", i32 700}'

# Name -> module, what the message says, target.  All of this ends LLVM's process, or LLVM refuses it.
CRASHES: dict[str, tuple[str, str, str]] = {
    "syntax": ("define void @k( {", "expected", "gfx942"),
    "type": (module("%x = add i32 1.0, 2"), "floating point constant invalid", "gfx942"),
    "undefined": (module("store i32 %x, ptr addrspace(1) null"), "use of undefined value", "gfx942"),
    "immediate": (
        module(f"call void {SLEEP}(i32 %n)", "i32 %n", f"declare void {SLEEP}(i32 immarg)"), "immarg", "gfx942",
    ),
    "signature": (
        module(f"call void {SLEEP}(i64 0)", "", f"declare void {SLEEP}(i64)"), "incorrect argument type", "gfx942",
    ),
    "call of a kernel": (module("call amdgpu_kernel void @k()"), "calling convention", "gfx942"),
    "loop node": (module(LOOP, "", "!0 = !{}"), "SIGABRT", "gfx942"),
    "wave size": (
        calls(f"call {WMMA}(<16 x half> %a, <16 x half> %a, {V4})", "<4 x float>", "<16 x half> %a, ",
              f"{WMMA}(<16 x half>, <16 x half>, <4 x float>)"),
        "Cannot select", "gfx1100",
    ),
    "wide buffer load": (
        calls(f"call {WIDE_LOAD}({RSRC}, i32 0, i32 0, i32 0)", "<8 x i32>", f"{RSRC}, ",
              f"{WIDE_LOAD}(ptr addrspace(8), i32, i32, i32)"),
        "SIGABRT", "gfx942",
    ),
    "v3i8 store": (
        module(f"call {NARROW_STORE}(<3 x i8> zeroinitializer, {RSRC}, i32 0, i32 0, i32 0)", RSRC,
               f"declare {NARROW_STORE}(<3 x i8>, ptr addrspace(8), i32, i32, i32)"),
        "SIGABRT", "gfx942",
    ),
    "wide DMA": (
        module(f"call {DMA}({RSRC}, ptr {LDS} %l, i32 16, i32 0, i32 0, i32 0, i32 0)", f"{RSRC}, ptr {LDS} %l",
               f"declare {DMA}(ptr addrspace(8), ptr {LDS}, i32, i32, i32, i32, i32)"),
        "SIGABRT", "gfx942",
    ),
    "f64 sin": (f64("sin"), "Cannot select", "gfx942"),
    "f64 exp": (f64("exp"), "exit status 1", "gfx942"),
    "fp128": (
        module(f"%x = load fp128, {P}\n  %y = fdiv fp128 %x, %x\n  store fp128 %y, {P}", P), "library call", "gfx942",
    ),
    "inline assembly": (module('call void asm sideeffect "s_nop 0", ""()'), "Inline asm not supported", "gfx942"),
    "asm constraint": (module('call void asm sideeffect "", "{v999999}"(i32 0)'), "exit status 1", "gfx942"),
    "LDS limit": (
        f"@l = {LDS} global [70000 x i8] poison\n" + module(f"store i8 1, ptr {LDS} @l"), "local memory", "gfx942",
    ),
    "LDS initialiser": (
        f"@l = {LDS} global i32 7\n" + module(f"store i32 1, ptr {LDS} @l"), "initializer", "gfx942",
    ),
    "dpp control": (
        calls("call i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 %x, i32 4095, i32 15, i32 15, i1 true)", "i32",
              "i32 %x, ", "i32 @llvm.amdgcn.update.dpp.i32(i32, i32, i32, i32, i32, i1)"),
        "dpp", "gfx942",
    ),
    "code object version": (module("ret void", "", VERSION), "exit status 1", "gfx942"),
    "group size": (
        module("ret void").replace(") {", ') "amdgpu-flat-work-group-size"="x" {', 1), "exit status 1", "gfx942",
    ),
    "scaled cbsz": (
        calls(f"call {SCALED}({V8}, {V8}, {V4}, i32 9, i32 0, i32 0, i32 0, i32 0, i32 0)", "<4 x float>", "",
              f"{SCALED}(<8 x i32>, <8 x i32>, <4 x float>, i32, i32, i32, i32, i32, i32)"),
        "invalid value for cbsz", "gfx950",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CRASHES)
def test_what_llvm_dies_of_is_an_error_and_the_next_kernel_compiles(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, says, arch = CRASHES[name]
    monkeypatch.setenv("FLYLLVM_DUMP_DIR", str(tmp_path))
    with pytest.raises(CodegenError) as e:
        compile_llvm(text, Target.parse(arch), check=False)
    assert says in str(e.value) and str(e.value).startswith("LLVM ")
    # The module is there to look at, under the name that the message gives.
    (saved,) = tmp_path.iterdir()
    assert str(saved) in str(e.value) and saved.read_text().startswith(text)
    assert compile_llvm(GOOD, GFX942).object[:4] == b"\x7fELF"


def test_a_dead_workers_module_is_saved_without_being_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLYLLVM_DUMP_DIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(CodegenError, match=f"the module is saved as {tmp_path}"):
        compile_llvm(module('call void asm sideeffect "s_nop 0", ""()'), GFX942)
    assert len(list(tmp_path.iterdir())) == 1


# --- results --------------------------------------------------------------------------------------


def test_object_assembly_and_optimised_ir_come_from_one_call() -> None:
    text = module("%x = add i32 %n, 0\n  store i32 %x, ptr addrspace(1) %p", "ptr addrspace(1) %p, i32 %n")
    made = compile_llvm(text, GFX942, want=("obj", "asm", "opt"), passes="O1")
    assert made.object == compile_llvm(text, GFX942, passes="O1").object
    assert "global_store_dword" in made.assembly
    assert "add i32" not in made.optimised_ir and "define" in made.optimised_ir
    assert {"parse", "verify", "passes", "codegen", "assembly"} <= made.timings.keys()


def test_the_same_text_gives_the_same_object_in_a_fresh_worker() -> None:
    first, second = WorkerPool(), WorkerPool()
    try:
        assert compile_llvm(GOOD, GFX942, pool=first).object == compile_llvm(GOOD, GFX942, pool=second).object
    finally:
        first.close()
        second.close()


def test_the_worker_and_this_process_give_the_same_object() -> None:
    program = (
        "from flyllvm.codegen import compile_llvm; from flyllvm.target import Target; import sys\n"
        f"sys.stdout.buffer.write(compile_llvm({GOOD!r}, Target.parse('gfx942'), in_process=True).object)"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout
    assert out == compile_llvm(GOOD, GFX942).object


def test_a_module_that_names_no_version_gets_the_one_asked_for() -> None:
    abi = {cov: compile_llvm(GOOD, GFX942, cov=cov).object[8] for cov in (400, 500, 600)}
    assert abi == {400: 2, 500: 3, 600: 4}


@pytest.mark.parametrize(
    ("options", "fix"),
    [({"opt_level": 7}, "0, 1, 2, 3"), ({"passes": "Os"}, "none, O1"), ({"want": ("elf",)}, "obj, asm, opt"),
     ({"want": ()}, "obj, asm, opt"), ({"cov": 300}, "400, 500, 600")],
)  # fmt: skip
def test_arguments_outside_their_set_are_refused(options: dict[str, object], fix: str) -> None:
    with pytest.raises(CodegenError, match=fix):
        compile_llvm(GOOD, GFX942, **options)  # type: ignore[arg-type]


def test_every_float_and_integer_operation_selects_on_every_target() -> None:
    from flyllvm.ir.ops_arith import FLOAT_BINARY, FLOAT_UNARY, INT_BINARY, INT_UNARY

    no_f64 = ("math.powf", "math.exp", "math.exp2", "math.log", "math.log2", "math.log10", "math.sin", "math.cos")

    def fn(k: Making, count: int) -> None:
        for elem in (t.F16, t.BF16, t.F32, t.F64, t.I8, t.I16, t.I32, t.I64):
            floats = elem.storage.kind == "float"
            p = k.ptr(f"p_{elem}", elem, 16)
            type_ = t.value_type(count, elem)
            x, y = k.b.ptr_load(p, count), k.b.ptr_load(k.b.add_offset(p, 16), count)
            made = [
                k.op(n, [x, y], [type_])
                for n in (FLOAT_BINARY if floats else INT_BINARY)
                if elem != t.F64 or n not in no_f64
            ]
            made += [
                k.op(n, [x], [type_])
                for n in (FLOAT_UNARY if floats else INT_UNARY)
                if elem != t.F64 or n not in no_f64
            ]
            if floats:
                made.append(k.op("math.fma", [x, y, x], [type_]))
            for i, v in enumerate(made):
                k.b.ptr_store(v, k.b.add_offset(p, 32 * (i + 1)))

    for arch in ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1200", "gfx1250"):
        made = build(lambda k: fn(k, 2), arch)
        assert compile_llvm(made.text(), made.target).object


def test_f64_functions_without_code_are_refused_before_llvm() -> None:
    def fn(k: Making) -> None:
        p = k.ptr("p", t.F64)
        k.b.ptr_store(k.op("math.exp", [k.b.ptr_load(p)], [t.F64]), p)

    with pytest.raises(CodegenError, match=r"author.py:7: math.exp of f64 has no code on gfx942\n.*compute it in f32"):
        build(fn).text()
    assert build(fn, host_target()).text()


# --- limits and life ------------------------------------------------------------------------------


def test_a_compilation_that_takes_too_long_is_ended() -> None:
    start = time.monotonic()
    with pytest.raises(CodegenError, match=r"LLVM did not finish within 0.2 s.*\n.*timeout="):
        compile_llvm(long_module(20000), GFX942, timeout=0.2)
    assert time.monotonic() - start < 5
    assert compile_llvm(GOOD, GFX942).object


def test_a_compilation_that_takes_too_much_memory_is_ended() -> None:
    with pytest.raises(CodegenError, match=r"allow more memory with memory_limit_bytes="):
        compile_llvm(long_module(20000), GFX942, memory_limit_bytes=200 << 20)
    assert compile_llvm(GOOD, GFX942).object


def test_threads_share_a_pool() -> None:
    pool = WorkerPool(2)
    got: list[int] = []
    try:
        threads = [
            threading.Thread(target=lambda: got.append(len(compile_llvm(GOOD, GFX942, pool=pool).object)))
            for _ in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        pool.close()
    assert len(got) == 6 and len(set(got)) == 1


def test_a_pool_has_workers() -> None:
    with pytest.raises(CodegenError, match="use at least one"):
        WorkerPool(0)


def test_what_is_printed_to_stdout_does_not_get_between_the_frames() -> None:
    made = compile_llvm(GOOD, GFX942)
    assert made.messages == ""
    # LLVM warns on stderr and goes on.
    odd = GOOD.replace(") {", ') "amdgpu-waves-per-eu"="99" {', 1)
    assert "desired occupancy was 99" in compile_llvm(odd, GFX942).messages


def workers_of(pid: int) -> list[int]:
    out = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout
    return [int(p) for p in out.split()]


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        return f.read().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads process states from /proc")
@pytest.mark.parametrize("end", ["exit", "kill"])
def test_no_worker_outlives_its_client(end: str) -> None:
    program = (
        "from flyllvm.codegen import compile_llvm; from flyllvm.codegen.client import default_pool\n"
        "from flyllvm.target import Target; import sys, time\n"
        f"compile_llvm({GOOD!r}, Target.parse('gfx942'))\n"
        "print(default_pool()._idle[0].pid, flush=True)\n"
        "sys.stdin.readline()"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        worker = int(client.stdout.readline())
        assert not gone(worker)
        if end == "kill":
            client.send_signal(signal.SIGKILL)
        client.communicate(b"\n")
    for _ in range(200):
        if gone(worker):
            return
        time.sleep(0.02)
    os.kill(worker, signal.SIGKILL)
    raise AssertionError("the worker was still there four seconds after its client")


def test_a_forked_child_uses_a_worker_of_its_own() -> None:
    compile_llvm(GOOD, GFX942)
    ours = default_pool()._idle[0].pid
    child = os.fork()
    if child == 0:
        try:
            ok = bool(compile_llvm(GOOD, GFX942).object) and default_pool()._idle[0].pid != ours
            default_pool().close()
        except BaseException:
            ok = False
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert compile_llvm(GOOD, GFX942).object and default_pool()._idle[0].pid == ours


def test_a_worker_that_cannot_start_says_how_to_name_another() -> None:
    with pytest.raises(CodegenError, match=r"cannot be started.*\n.*FLYLLVM_WORKER_PYTHON"):
        compile_llvm(GOOD, GFX942, pool=WorkerPool(python="/nonexistent/python"))


def test_a_python_without_llvmlite_says_how_to_install_it(tmp_path: Path) -> None:
    fake = tmp_path / "python"
    fake.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    fake.chmod(0o755)
    pool = WorkerPool(python=str(fake))
    try:
        with pytest.raises(
            CodegenError, match=r"llvmlite cannot be imported by .*\n.*pip install 'llvmlite>=0.50,<0.51'"
        ):
            compile_llvm(GOOD, GFX942, pool=pool)
    finally:
        pool.close()


def test_another_version_of_llvmlite_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from flyllvm.codegen import worker

    monkeypatch.setattr(worker, "LLVMLITE", "0.49.")
    assert "flyllvm needs llvmlite 0.49.x" in worker.load_llvm()[1]  # type: ignore[operator]


def test_the_worker_is_also_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    assert command("/usr/bin/python3")[0] == "/usr/bin/python3"
    out = subprocess.run([sys.executable, "-m", "flyllvm.codegen.worker"], input=b"", capture_output=True, timeout=60)
    assert out.returncode == 0 and b"hello" in out.stdout


def test_an_embedder_without_an_interpreter_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "")
    monkeypatch.delenv("FLYLLVM_WORKER_PYTHON", raising=False)
    with pytest.raises(CodegenError, match="set FLYLLVM_WORKER_PYTHON"):
        compile_llvm(GOOD, GFX942, pool=WorkerPool())
