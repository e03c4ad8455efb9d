"""LLVM IR that is malformed, that LLVM dies on, or that keeps it busy: one module per case."""

# ruff: noqa: E501  # a table

from __future__ import annotations

#: Name -> (module, processor).  What each message says is in ``golden/hostile.txt``.
CASES: dict[str, tuple[str, str]] = {}

P = "ptr addrspace(1) %p"
RSRC = "ptr addrspace(8) %r"
LDS = "addrspace(3)"
A, V, M, S = "llvm.amdgcn.", "<4 x float>", "<4 x i32>", "<8 x i32>"


def case(name: str, text: str, arch: str = "gfx942") -> None:
    """Adds a module."""
    assert name not in CASES
    CASES[name] = (text, arch)


def body(name: str, code: str, args: str = "", tail: str = "", arch: str = "gfx942") -> None:
    """Adds a module with one kernel; lines of code end in ``;``."""
    lines = "".join(f"  {line.strip()}\n" for line in code.split(";") if line.strip())
    if "ret void" not in code and "unreachable" not in code:
        lines += "  ret void\n"
    case(name, f"define amdgpu_kernel void @k({args}) {{\n{lines}}}\n{tail}\n", arch)


def call(name: str, result: str, callee: str, args: str, given: str = "", arch: str = "gfx942") -> None:
    """Adds a kernel that stores the result of one call; the declaration follows from the arguments."""
    types = ", ".join(_type(a) for a in _split(args))
    use = f"%y = call {result} @{callee}({args}); store {result} %y, {P}"
    if result == "void":
        use = f"call void @{callee}({args})"
    body(name, use, f"{given}{', ' if given else ''}{P}", f"declare {result} @{callee}({types})", arch)


def _split(args: str) -> list[str]:
    out, depth = [""], 0
    for c in args:
        depth += (c in "<([{") - (c in ">)]}")
        if c == "," and not depth:
            out.append("")
        else:
            out[-1] += c
    return [a.strip() for a in out if a.strip()]


def _type(arg: str) -> str:
    return arg.rpartition(" ")[0] if not arg.endswith("}") else arg.partition(" {")[0]


# --- text that is no module ----------------------------------------------------------------------------------

case("empty", "")
case("blank", "\n\n")
case("comment only", "; nothing here\n")
case("prose", "this is not LLVM IR")
case("binary", "BC\xc0\xde\x35\x14")
case("nul", "define void @k() {\n\0}")
case("surrogate", "; \udc80\ndefine void @k() { ret void }")
case("mlir", "module { func.func @k() { return } }")
case("unclosed function", "define amdgpu_kernel void @k() {")
case("unclosed argument list", "define amdgpu_kernel void @k( {")
case("unclosed string", 'target triple = "amdgcn')
case("no terminator", "define amdgpu_kernel void @k() {\n}")
case("two functions of one name", "define void @k() {\n ret void\n}\ndefine void @k() {\n ret void\n}")
case("declaration only", "declare amdgpu_kernel void @k()")
case("plain function only", "define void @f() {\n  ret void\n}")
case("global only", "@x = addrspace(1) global i32 0")
case("deep type", "@x = addrspace(1) global " + "[1 x " * 5000 + "i8" + "]" * 5000 + " zeroinitializer")
case("deep constant", "@x = addrspace(1) global i32 " + "add(i32 " * 3000 + "0" + ", i32 1)" * 3000)
case("deep parentheses", "define void @k() {\n  ret void " + "(" * 100000)
case("long name", f"define amdgpu_kernel void @{'k' * 300000}() {{\n  ret i32 0\n}}")
case("wrong triple", 'target triple = "nvptx64-nvidia-cuda"\ndefine void @k() {\n  ret void\n}')
case("host triple", 'target triple = "x86_64-pc-linux-gnu"\ndefine void @k() {\n  ret void\n}')
case("nonsense triple", 'target triple = "potato"\ndefine void @k() {\n  ret void\n}')
case("wrong layout", 'target datalayout = "potato"\ndefine amdgpu_kernel void @k() {\n  ret void\n}')
case("big endian", 'target datalayout = "E"\ndefine amdgpu_kernel void @k() {\n  ret void\n}')
case("other layout", 'target datalayout = "e-p:32:32-i64:64"\ndefine amdgpu_kernel void @k() {\n  ret void\n}')
case("layout of zero", 'target datalayout = "e-p:0:0"\ndefine amdgpu_kernel void @k() {\n  ret void\n}')
case("other processor", 'define amdgpu_kernel void @k() "target-cpu"="gfx1100" {\n  ret void\n}')
case("unknown processor", 'define amdgpu_kernel void @k() "target-cpu"="gfx999" {\n  ret void\n}')

# --- types and values ----------------------------------------------------------------------------------------

body("float in an int", "%x = add i32 1.0, 2")
body("int in a float", "%x = fadd float 1, %x")
body("int width 0", "%x = add i0 0, 0")
body("int width 9 million", "%x = add i9000000 0, 0")
body("undefined value", f"store i32 %x, {P}", P)
body("use before definition", f"%a = add i32 %b, 1; %b = add i32 1, 1; store i32 %a, {P}", P)
body("mixed types", "%x = add i32 %a, %b", "i32 %a, i64 %b")
body("vector of void", "%x = alloca <4 x void>, addrspace(5)")
body("vector of length 0", f"store <0 x i32> poison, {P}", P)
body("vector of a vector", f"store <2 x <2 x i32>> poison, {P}", P)
body("scalable vector", f"store <vscale x 4 x i32> zeroinitializer, {P}", P)
body("vector of 2**31", f"%x = load <2147483648 x i8>, {P}; store <2147483648 x i8> %x, {P}", P)
body("fp128", f"%x = load fp128, {P}; %y = fdiv fp128 %x, %x; store fp128 %y, {P}", P)
body("x86 float", f"%x = load x86_fp80, {P}; %y = fadd x86_fp80 %x, %x; store x86_fp80 %y, {P}", P)
body("double double", f"%x = load ppc_fp128, {P}; %y = fmul ppc_fp128 %x, %x; store ppc_fp128 %y, {P}", P)
body("remainder of bf16", f"%x = load bfloat, {P}; %y = frem bfloat %x, %x; store bfloat %y, {P}", P)
body("token value", "%x = add token none, none")
body("label value", "%x = add label %x, %x")
body("metadata value", "%x = add metadata !0, !0")
body("opaque struct", f"%x = load %t, {P}", P, "%t = type opaque")
body("recursive struct", f"%x = load %t, {P}", P, "%t = type { %t }")
body("pointer arithmetic", "%x = add ptr addrspace(1) %p, %p", P)
body("extract out of range", f"%x = extractvalue {{i32}} poison, 4; store i32 %x, {P}", P)
body("shuffle of other length", "%x = shufflevector <2 x i32> poison, <4 x i32> poison, <2 x i32> zeroinitializer")
body("bitcast of other size", "%x = bitcast i32 0 to i64")
body("cast to wider", "%x = trunc i32 0 to i64")
body("space cast by bitcast", "%x = bitcast ptr addrspace(1) %p to ptr addrspace(3)", P)
body(
    "LDS to global",
    "%x = addrspacecast ptr addrspace(3) %l to ptr addrspace(1); store i32 0, ptr addrspace(1) %x",
    "ptr addrspace(3) %l",
)
body("global to LDS", f"%x = addrspacecast {P} to ptr addrspace(3); store i32 0, ptr addrspace(3) %x", P)
body("address space 42", "store i32 0, ptr addrspace(42) null")
body("address space 2**24", "store i32 0, ptr addrspace(16777216) null")
body("space 9", "store i32 0, ptr addrspace(9) %q", "ptr addrspace(9) %q")
body("descriptor as pointer", f"store i32 0, {RSRC}", RSRC)
body("align 3", f"store i32 0, {P}, align 3", P)
body("align 2**40", f"store i32 0, {P}, align 1099511627776", P)

# --- control flow ----------------------------------------------------------------------------------------------

body("branch to nowhere", "br label %nowhere")
body("branch on int", "br i32 0, label %a, label %a; a:; ret void")
body("code after ret", "ret void; %x = add i32 0, 0")
body("ret value", "ret i32 0")
body("phi in the middle", "br label %a; a:; %x = add i32 0, 0; %y = phi i32 [0, %0]; ret void")
body("phi without edge", "br label %a; a:; %y = phi i32 [0, %a]; ret void")
body("entry with predecessor", "br label %a; a:; br label %0; ret void")
body("unnamed block reference", "br label %7; ret void")
body("loop node", "br label %l; l:; br i1 true, label %l, label %e, !llvm.loop !0; e:; ret void", "", "!0 = !{}")
body("indirect branch", "indirectbr ptr %q, [label %a, label %b]; a:; ret void; b:; fence release; ret void", "ptr %q")
body("call branch", 'callbr void asm sideeffect "s_nop 0", ""() to label %a []; a:; ret void')
case(
    "invoke",
    "define amdgpu_kernel void @k() personality ptr null {\n  invoke void @f() to label %a unwind label %b\n"
    "a:\n  ret void\nb:\n  %x = landingpad i32 cleanup\n  ret void\n}\ndeclare void @f()",
)
case(
    "landing pad",
    "define amdgpu_kernel void @k() personality ptr @p {\n  invoke void @f() to label %a unwind label %b\n"
    "a:\n  ret void\nb:\n  %x = landingpad {ptr, i32} cleanup\n  resume {ptr, i32} %x\n}\ndeclare void @f()\n"
    "declare i32 @p(...)",
)
case(
    "catch pad",
    "define amdgpu_kernel void @k() personality ptr @p {\n  invoke void @f() to label %a unwind label %b\n"
    "a:\n  ret void\nb:\n  %x = catchswitch within none [label %c] unwind to caller\nc:\n"
    "  %y = catchpad within %x [ptr null]\n  catchret from %y to label %a\n}\ndeclare void @f()\ndeclare i32 @p(...)",
)
body(
    "recursion",
    "call void @f(i32 7)",
    "",
    "define void @f(i32 %n) {\n  %c = icmp eq i32 %n, 0\n  br i1 %c, label %e, label %r\nr:\n  %m = sub i32 %n, 1\n"
    "  call void @f(i32 %m)\n  fence acq_rel\n  ret void\ne:\n  ret void\n}",
)
body(
    "mutual recursion",
    "call void @f(i32 7)",
    "",
    "define void @f(i32 %n) {\n  call void @g(i32 %n)\n  fence acq_rel\n  ret void\n}\n"
    "define void @g(i32 %n) {\n  call void @f(i32 %n)\n  fence acq_rel\n  ret void\n}",
)
body("kernel that calls itself", "call amdgpu_kernel void @k()")
body("kernel called as function", "call void @k()")
body("indirect call", f"%f = load ptr, {P}; call void %f()", P)
body(
    "call through a table",
    "%f = load ptr, ptr addrspace(1) @t; call void %f()",
    "",
    "@t = addrspace(1) global ptr @g\ndefine void @g() {\n  ret void\n}",
)
body("call of undefined", "call void @f()", "", "declare void @f()")
body("call of malloc", f"%x = call ptr @malloc(i64 64); store ptr %x, {P}", P, "declare ptr @malloc(i64)")
body("call of printf", "%x = call i32 (ptr, ...) @printf(ptr null, i32 1)", "", "declare i32 @printf(ptr, ...)")
body("varargs kernel", "ret void", "...")
case(
    "varargs function",
    "define amdgpu_kernel void @k() {\n  call void (i32, ...) @f(i32 1, i32 2)\n  ret void\n}\n"
    "define void @f(i32 %a, ...) {\n  %l = alloca ptr, addrspace(5)\n  call void @llvm.va_start.p5(ptr addrspace(5) %l)\n"
    "  ret void\n}\ndeclare void @llvm.va_start.p5(ptr addrspace(5))",
)
body("va_arg", "%x = va_arg ptr null, i32")
case("kernel that returns", "define amdgpu_kernel i32 @k() {\n  ret i32 0\n}")
case("interrupt convention", "define x86_intrcc void @k(ptr byval(i32) %p) {\n  ret void\n}")
case("nvptx kernel", "define ptx_kernel void @k() {\n  ret void\n}")
case("pixel shader", "define amdgpu_ps void @k() {\n  ret void\n}")
case("convention 1023", "define cc1023 void @k() {\n  ret void\n}")
case("unknown convention", "define cc99999 void @k() {\n  ret void\n}")
case("unknown garbage collector", 'define amdgpu_kernel void @k() gc "no-such" {\n  ret void\n}')
case(
    "statepoint",
    'define amdgpu_kernel void @k() gc "statepoint-example" {\n  call void @f()\n  ret void\n}\ndeclare void @f()',
)
body("must tail", "musttail call void @f(i32 0); ret void", "", "declare void @f(i32)")
body(
    "thread local",
    f"%x = load i32, ptr addrspace(1) @t; store i32 %x, {P}",
    P,
    "@t = thread_local addrspace(1) global i32 0",
)
case(
    "ifunc",
    "define amdgpu_kernel void @k() {\n  call void @f()\n  ret void\n}\n@f = ifunc void (), ptr @r\n"
    "define ptr @r() {\n  ret ptr null\n}",
)
case("alias to nothing", "@a = alias void (), ptr @f\ndeclare void @f()")
case("comdat", "$c = comdat any\ndefine amdgpu_kernel void @k() comdat($d) {\n  ret void\n}")
case(
    "constructor",
    "@llvm.global_ctors = appending global [1 x i32] [i32 0]\ndefine amdgpu_kernel void @k() {\n  ret void\n}",
)
body("dynamic alloca", "%x = alloca i8, i32 %n, addrspace(5); store volatile i8 1, ptr addrspace(5) %x", "i32 %n")
body(
    "alloca in a loop",
    "br label %l; l:; %x = alloca i32, addrspace(5); store volatile i32 1, ptr addrspace(5) %x; "
    "%c = load volatile i1, ptr addrspace(1) null; br i1 %c, label %l, label %e; e:; ret void",
)
body("alloca of 3 GiB", "%x = alloca [3221225472 x i8], addrspace(5); store volatile i8 1, ptr addrspace(5) %x")
body("alloca of 1 MiB", "%x = alloca [1048576 x i8], addrspace(5); store volatile i8 1, ptr addrspace(5) %x")
body("alloca in space 0", "%x = alloca i32; store volatile i32 1, ptr %x")
body("alloca of unsized", "%x = alloca %t, addrspace(5)", "", "%t = type opaque")

# --- memory ----------------------------------------------------------------------------------------------------


def lds(name: str, definition: str, arch: str = "gfx942", use: str = "store i8 1, ptr addrspace(3) @l") -> None:
    """Adds a kernel that uses one LDS variable."""
    body(name, use, "", definition, arch)


lds("LDS over 64 KiB", "@l = addrspace(3) global [65537 x i8] poison")
lds("LDS over 160 KiB", "@l = addrspace(3) global [163841 x i8] poison", arch="gfx950")
lds("LDS of 2**40", "@l = addrspace(3) global [1099511627776 x i8] poison")
lds(
    "LDS over in two",
    "@l = addrspace(3) global [40000 x i8] poison\n@m = addrspace(3) global [40000 x i8] poison",
    use="store i8 1, ptr addrspace(3) @l; store i8 1, ptr addrspace(3) @m",
)
lds("LDS initialiser", "@l = addrspace(3) global i32 7")
lds("LDS constant", "@l = addrspace(3) constant i32 7")
lds("scratch variable", "@l = addrspace(5) global i32 0", use="store i32 1, ptr addrspace(5) @l")
lds("GDS", "@l = addrspace(2) global i32 poison", use="store i32 1, ptr addrspace(2) @l")
body(
    "global of 2**40",
    "store i8 1, ptr addrspace(1) @g",
    "",
    "@g = addrspace(1) global [1099511627776 x i8] zeroinitializer",
)
body("kernarg over the limit", "ret void", "[70000 x i8] %x")
body("kernarg of 2**33", "ret void", "[8589934592 x i8] %x")
body("byref of nothing", "ret void", "ptr addrspace(4) byref(void) %x")
body("byval argument", f"%v = load i32, ptr addrspace(5) %x; store i32 %v, {P}", f"ptr addrspace(5) byval(i32) %x, {P}")
body("result by pointer", "ret void", "ptr addrspace(5) sret(i32) %x")
body("atomic vector", f"%x = atomicrmw add {P}, <8 x i32> zeroinitializer seq_cst", P)
body("atomic wide", f"%x = atomicrmw add {P}, i128 0 seq_cst; store i128 %x, {P}", P)
body("atomic i24", f"%x = atomicrmw add {P}, i24 0 seq_cst; store i24 %x, {P}", P)
body("atomic fadd i32", f"%x = atomicrmw fadd {P}, i32 0 seq_cst", P)
body("atomic nand bf16", f"%x = atomicrmw nand {P}, bfloat 0.0 seq_cst", P)
body("atomic load of a struct", f"%x = load atomic {{i32, i32}}, {P} seq_cst, align 8", P)
body("atomic load without align", f"%x = load atomic i64, {P} seq_cst, align 1; store i64 %x, {P}", P)
body("acquire store", f"store atomic i32 0, {P} acquire, align 4", P)
body("wide compare and swap", f"%x = cmpxchg {P}, i256 0, i256 1 seq_cst seq_cst; store i32 0, {P}", P)
body("unknown scope", f'store atomic i32 0, {P} syncscope("galaxy") release, align 4', P)
body("fence of nothing", "fence monotonic")
body("fence of unknown scope", 'fence syncscope("galaxy") release')
body("atomic in constant memory", "%x = atomicrmw add ptr addrspace(4) %q, i32 1 seq_cst", "ptr addrspace(4) %q")

# --- intrinsics -------------------------------------------------------------------------------------------------

F16V4, F16V16 = "<4 x half> zeroinitializer", "<16 x half> zeroinitializer"
V4, V8, V16 = f"{V} zeroinitializer", "<8 x i32> zeroinitializer", "<16 x float> zeroinitializer"
MFMA = f"{A}mfma.f32.16x16x16f16"

call("intrinsic without a name", "i32", "llvm.amdgcn.", "i32 0")
call("intrinsic that is none", "i32", f"{A}no.such", "i32 0")
call("intrinsic misspelt", "i32", f"{A}workitem.idx", "")
call("target independent misspelt", "i32", "llvm.no.such.i32", "i32 0")
call("intrinsic of another target", "i32", "llvm.nvvm.read.ptx.sreg.tid.x", "")
call("x86 intrinsic", V, "llvm.x86.sse.rcp.ps", V4)
call("arm intrinsic", "i32", "llvm.aarch64.crc32b", "i32 0, i32 0")
call(
    "mfma of gfx950",
    V,
    f"{A}mfma.f32.16x16x32.f16",
    f"<8 x half> zeroinitializer, <8 x half> zeroinitializer, {V4}, i32 0, i32 0, i32 0",
)
call("mfma on a chip without", V, MFMA, f"{F16V4}, {F16V4}, {V4}, i32 0, i32 0, i32 0", arch="gfx1100")
call("mfma of other operands", V, MFMA, f"{V4}, {V4}, {V4}, i32 0, i32 0, i32 0")
call("mfma of other result", "<8 x float>", MFMA, f"{F16V4}, {F16V4}, <8 x float> zeroinitializer, i32 0, i32 0, i32 0")
call("mfma with run-time cbsz", V, MFMA, f"{F16V4}, {F16V4}, {V4}, i32 %n, i32 0, i32 0", given="i32 %n")
call("mfma with three operands", V, MFMA, f"{F16V4}, {F16V4}, {V4}")
call(
    "mfma scale cbsz 9",
    V,
    f"{A}mfma.scale.f32.16x16x128.f8f6f4.v8i32.v8i32",
    f"{V8}, {V8}, {V4}, i32 9, i32 0, i32 0, i32 0, i32 0, i32 0",
    arch="gfx950",
)
call(
    "mfma scale of wrong width",
    V,
    f"{A}mfma.scale.f32.16x16x128.f8f6f4.v3i32.v8i32",
    f"<3 x i32> zeroinitializer, {V8}, {V4}, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0",
    arch="gfx950",
)
call("wmma on CDNA", V, f"{A}wmma.f32.16x16x16.f16.v4f32.v16f16", f"{F16V16}, {F16V16}, {V4}")
call("wmma of 64 lanes in 32", V, f"{A}wmma.f32.16x16x16.f16.v4f32.v16f16", f"{F16V16}, {F16V16}, {V4}", arch="gfx1100")
call(
    "wmma of gfx12 on gfx11",
    "<8 x float>",
    f"{A}wmma.f32.16x16x16.f16.v8f32.v8f16",
    "<8 x half> zeroinitializer, <8 x half> zeroinitializer, <8 x float> zeroinitializer",
    arch="gfx1100",
)
call(
    "sparse on gfx90a",
    V,
    f"{A}smfmac.f32.16x16x32.f16",
    f"{F16V4}, <8 x half> zeroinitializer, {V4}, i32 0, i32 0, i32 0",
    arch="gfx90a",
)
call("sleep of a variable", "void", f"{A}s.sleep", "i32 %n", given="i32 %n")
call("sleep of 64 bits", "void", f"{A}s.sleep", "i64 0")
call("sleep with a result", "i32", f"{A}s.sleep", "i32 0")
call("barrier with an operand", "void", f"{A}s.barrier", "i32 0")
call("wait of a variable", "void", f"{A}s.waitcnt", "i32 %n", given="i32 %n")
call("gfx12 wait on gfx9", "void", f"{A}s.wait.asynccnt", "i16 0")
call("split barrier on gfx9", "void", f"{A}s.barrier.signal", "i32 -1")
call(
    "tensor load on gfx9",
    "void",
    f"{A}tensor.load.to.lds",
    f"<4 x i32> zeroinitializer, {V8}, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer, i32 0",
)
call("transposed read on gfx942", "<2 x i32>", f"{A}ds.read.tr8.b64.v2i32", "ptr addrspace(3) null")
call("transposed read of global", "<2 x i32>", f"{A}ds.read.tr8.b64.v2i32", "ptr addrspace(1) null", arch="gfx950")
call(
    "dpp control 4095", "i32", f"{A}update.dpp.i32", "i32 0, i32 %x, i32 4095, i32 15, i32 15, i1 true", given="i32 %x"
)
call(
    "dpp run-time control",
    "i32",
    f"{A}update.dpp.i32",
    "i32 0, i32 %x, i32 %x, i32 15, i32 15, i1 true",
    given="i32 %x",
)
call("swizzle of a variable", "i32", f"{A}ds.swizzle", "i32 0, i32 %n", given="i32 %n")
call("readlane of a struct", "{i32, i32}", f"{A}readlane.s", "{i32, i32} zeroinitializer, i32 0")
call("readfirstlane of i24", "i24", f"{A}readfirstlane.i24", "i24 0")
call("permlane on CDNA3", "i32", f"{A}permlane16.i32", "i32 0, i32 0, i32 0, i32 0, i1 false, i1 false")
call("permlane swap on CDNA3", "{ i32, i32 }", f"{A}permlane16.swap", "i32 0, i32 0, i1 false, i1 false")
call("buffer load of v8i32", S, f"{A}raw.ptr.buffer.load.v8i32", f"{RSRC}, i32 0, i32 0, i32 0", given=RSRC)
call("buffer load of i24", "i24", f"{A}raw.ptr.buffer.load.i24", f"{RSRC}, i32 0, i32 0, i32 0", given=RSRC)
call(
    "buffer load of run-time policy",
    "i32",
    f"{A}raw.ptr.buffer.load.i32",
    f"{RSRC}, i32 0, i32 0, i32 %n",
    given=f"i32 %n, {RSRC}",
)
call("buffer load through a pointer", "i32", f"{A}raw.ptr.buffer.load.i32", f"{P}, i32 0, i32 0, i32 0")
call(
    "buffer store of v3i8",
    "void",
    f"{A}raw.ptr.buffer.store.v3i8",
    f"<3 x i8> zeroinitializer, {RSRC}, i32 0, i32 0, i32 0",
    given=RSRC,
)
call(
    "buffer store of v16f32",
    "void",
    f"{A}raw.ptr.buffer.store.v16f32",
    f"{V16}, {RSRC}, i32 0, i32 0, i32 0",
    given=RSRC,
)
call(
    "buffer to LDS of 16 bytes",
    "void",
    f"{A}raw.ptr.buffer.load.lds",
    f"{RSRC}, ptr addrspace(3) %l, i32 16, i32 0, i32 0, i32 0, i32 0",
    given=f"{RSRC}, ptr addrspace(3) %l",
)
call(
    "buffer to LDS of 3 bytes",
    "void",
    f"{A}raw.ptr.buffer.load.lds",
    f"{RSRC}, ptr addrspace(3) %l, i32 3, i32 0, i32 0, i32 0, i32 0",
    given=f"{RSRC}, ptr addrspace(3) %l",
)
call(
    "buffer to LDS of n bytes",
    "void",
    f"{A}raw.ptr.buffer.load.lds",
    f"{RSRC}, ptr addrspace(3) %l, i32 %n, i32 0, i32 0, i32 0, i32 0",
    given=f"{RSRC}, ptr addrspace(3) %l, i32 %n",
)
call("global to LDS of 12 bytes", "void", f"{A}global.load.lds", f"{P}, ptr addrspace(3) null, i32 12, i32 0, i32 0")
call("image load", V, f"{A}image.load.2d.v4f32.i32", "i32 15, i32 0, i32 0, <8 x i32> zeroinitializer, i32 0, i32 0")
call("interpolation", "float", f"{A}interp.p1", "float 0.0, i32 0, i32 0, i32 0")
call(
    "export on gfx942",
    "void",
    f"{A}exp.f32",
    "i32 0, i32 15, float 0.0, float 0.0, float 0.0, float 0.0, i1 true, i1 true",
)
call(
    "atomic of a buffer f64 min",
    "double",
    f"{A}raw.ptr.buffer.atomic.fmin.f64",
    f"double 0.0, {RSRC}, i32 0, i32 0, i32 0",
    given=RSRC,
    arch="gfx1100",
)
call(
    "packed bf16 atomic on gfx1100",
    "<2 x bfloat>",
    f"{A}raw.ptr.buffer.atomic.fadd.v2bf16",
    f"<2 x bfloat> zeroinitializer, {RSRC}, i32 0, i32 0, i32 0",
    given=RSRC,
    arch="gfx1100",
)
call("fp8 conversion on gfx90a", "float", f"{A}cvt.f32.fp8", "i32 0, i32 0", arch="gfx90a")
call("fp8 conversion of byte 7", "float", f"{A}cvt.f32.fp8", "i32 %x, i32 7", given="i32 %x")
call(
    "scaled conversion on gfx942",
    "<2 x float>",
    f"{A}cvt.scalef32.pk.f32.fp8",
    "i32 %x, float %s, i1 false",
    given="i32 %x, float %s",
)
call(
    "dot product on gfx90a of bf16",
    "float",
    f"{A}fdot2.f32.bf16",
    "<2 x bfloat> zeroinitializer, <2 x bfloat> zeroinitializer, float 0.0, i1 false",
    arch="gfx90a",
)
call("sine of f64", "double", "llvm.sin.f64", "double %x", given="double %x")
call("exponential of f64", "double", "llvm.exp.f64", "double %x", given="double %x")
call("power of f64", "double", "llvm.pow.f64.f64", "double %x, double %x", given="double %x")
call("square root of fp128", "fp128", "llvm.sqrt.f128", "fp128 %x", given="fp128 %x")
call("tangent", "double", "llvm.tan.f64", "double %x", given="double %x")
call("matrix multiply", "<4 x float>", "llvm.matrix.multiply.v4f32.v4f32.v4f32", f"{V4}, {V4}, i32 3, i32 3, i32 3")
call(
    "masked load of run-time align",
    V,
    "llvm.masked.load.v4f32.p1",
    f"{P}, i32 %n, <4 x i1> zeroinitializer, {V4}",
    given="i32 %n",
)
call("return address", "ptr", "llvm.returnaddress", "i32 %n", given="i32 %n")
call("frame address", "ptr", "llvm.frameaddress.p0", "i32 1")
call("stack save", "ptr", "llvm.stacksave.p0", "")
call("trampoline", "ptr", "llvm.adjust.trampoline", "ptr null")
call("named register", "i64", "llvm.read_register.i64", "metadata !0")
call("cycle counter of other type", "i32", "llvm.readcyclecounter", "")
call("experimental vector", "<vscale x 4 x i32>", "llvm.stepvector.nxv4i32", "")
call("memcpy of run-time volatile", "void", "llvm.memcpy.p1.p1.i64", f"{P}, {P}, i64 4, i1 %v", given="i1 %v")
call("address of a function", "ptr", f"{A}dispatch.ptr", "")
body("musttail intrinsic", f"musttail call void @{A}s.barrier(); ret void", "", f"declare void @{A}s.barrier()")
body("address of an intrinsic", f"store ptr @{A}s.barrier, {P}", P, f"declare void @{A}s.barrier()")
case(
    "intrinsic with a body",
    f"define void @{A}s.barrier() {{\n  ret void\n}}\ndefine amdgpu_kernel void @k() {{\n  ret void\n}}",
)

# --- inline assembly ------------------------------------------------------------------------------------------------

body("assembly that is none", 'call void asm sideeffect "potato", ""()')
body("x86 assembly", 'call void asm sideeffect "movq %rax, %rbx", ""()')
body("assembly constraint", 'call void asm sideeffect "", "{v999999}"(i32 0)')
body("assembly constraint letter", 'call void asm sideeffect "", "Z"(i32 0)')
body("assembly operand missing", 'call void asm sideeffect "s_mov_b32 s0, $7", "s"(i32 0)')
body("assembly of wide register", f'%x = call <64 x i32> asm "", "=v"(); store <64 x i32> %x, {P}', P)
body("assembly that ends the section", 'call void asm sideeffect ".section .potato,\\22ax\\22", ""()')
body("assembly of a tied nothing", 'call i32 asm "", "=v,7"(i32 0)')
body("intel assembly", 'call void asm sideeffect inteldialect "nop", ""()')
case("module assembly", 'module asm ".potato"\ndefine amdgpu_kernel void @k() {\n  ret void\n}')
case("module assembly of a kernel", 'module asm "s_endpgm"\ndefine amdgpu_kernel void @k() {\n  ret void\n}')

# --- attributes and metadata --------------------------------------------------------------------------------------------


def attribute(name: str, text: str, arch: str = "gfx942", code: str = "ret void") -> None:
    """Adds a kernel with a function attribute."""
    case(name, f"define amdgpu_kernel void @k() {text} {{\n  {code}\n}}", arch)


attribute("unknown attribute", "potato")
attribute("align of a function", "align 3")
attribute("group size of text", '"amdgpu-flat-work-group-size"="x"')
attribute("group size reversed", '"amdgpu-flat-work-group-size"="512,64"')
attribute("group size of 4096", '"amdgpu-flat-work-group-size"="1,4096"')
attribute("group size of zero", '"amdgpu-flat-work-group-size"="0,0"')
attribute("waves of text", '"amdgpu-waves-per-eu"="many"')
attribute("registers of text", '"amdgpu-num-vgpr"="x"')
attribute("features that are none", '"target-features"="+potato"')
attribute(
    "features of other wave",
    '"target-features"="+wavefrontsize32"',
    code="store i32 1, ptr addrspace(1) null\n  ret void",
)
attribute("features of two waves", '"target-features"="+wavefrontsize32,+wavefrontsize64"', "gfx1100")
attribute("no denormals known", '"denormal-fp-math"="potato"')
attribute("optnone alone", "optnone")
attribute("memory of nothing", "memory(potato)")
attribute("two linkages", 'section "a" section "b"')
attribute("patchable", '"patchable-function-entry"="x"')
attribute("xray", '"function-instrument"="xray-always"')
attribute(
    "stack protector",
    "sspreq",
    code="%x = alloca [64 x i8], addrspace(5)\n  store volatile i8 0, ptr addrspace(5) %x\n  ret void",
)
attribute("agprs on a chip without", '"amdgpu-agpr-alloc"="x"')

VERSION = '!llvm.module.flags = !{{!0}}\n!0 = !{{i32 1, !"amdhsa_code_object_version", i32 {}}}'
body("code object version 300", "ret void", tail=VERSION.format(300))
body("code object version 700", "ret void", tail=VERSION.format(700))
body(
    "two code object versions",
    "ret void",
    tail='!llvm.module.flags = !{!0, !1}\n!0 = !{i32 1, !"amdhsa_code_object_version", i32 500}\n'
    '!1 = !{i32 1, !"amdhsa_code_object_version", i32 600}',
)
body("module flags of nothing", "ret void", tail="!llvm.module.flags = !{!0}\n!0 = !{}")
body("module flag of text", "ret void", tail='!llvm.module.flags = !{!0}\n!0 = !{!"a", !"b", !"c"}')
body("metadata missing", "ret void, !foo !9")
body("metadata twice", "ret void", tail="!0 = !{}\n!0 = !{}")
body("metadata that holds a value", "ret void", tail="!0 = !{i32 %x}")
body("range of one", f"%x = load i32, {P}, !range !0; store i32 %x, {P}", P, "!0 = !{i32 1}")
body("range of other type", f"%x = load i32, {P}, !range !0; store i32 %x, {P}", P, "!0 = !{i64 0, i64 4}")
body("alias metadata", f"%x = load i32, {P}, !tbaa !0; store i32 %x, {P}", P, "!0 = !{i32 1}")
case(
    "required workgroup of text",
    'define amdgpu_kernel void @k() !reqd_work_group_size !0 {\n  ret void\n}\n!0 = !{!"x", !"y", !"z"}',
)
case(
    "required workgroup of one",
    "define amdgpu_kernel void @k() !reqd_work_group_size !0 {\n  ret void\n}\n!0 = !{i32 1}",
)
case(
    "required workgroup of zero",
    "define amdgpu_kernel void @k() !reqd_work_group_size !0 {\n  ret void\n}\n!0 = !{i32 0, i32 0, i32 0}",
)
case(
    "workgroup over the limit",
    "define amdgpu_kernel void @k() !reqd_work_group_size !0 {\n  ret void\n}\n!0 = !{i32 4096, i32 1, i32 1}",
)
case(
    "used that is none",
    "@llvm.used = appending global [1 x i32] zeroinitializer\ndefine amdgpu_kernel void @k() {\n  ret void\n}",
)
case(
    "kernel in a comdat of others",
    "$k = comdat nodeduplicate\ndefine linkonce_odr amdgpu_kernel void @k() comdat {\n  ret void\n}",
)
case("private kernel", "define internal amdgpu_kernel void @k() {\n  ret void\n}")
case("available elsewhere", "define available_externally amdgpu_kernel void @k() {\n  ret void\n}")
case("weak kernel undefined", "declare extern_weak amdgpu_kernel void @k()")
case("kernel named by bytes", 'define amdgpu_kernel void @"\\00\\FF\\0A"() {\n  ret void\n}')
case("kernel without a name", 'define amdgpu_kernel void @""() {\n  ret void\n}')
case(
    "kernel named like a descriptor",
    "define amdgpu_kernel void @k() {\n  ret void\n}\n@k.kd = addrspace(1) global i32 0",
)

# --- what keeps the optimiser busy ---------------------------------------------------------------------------------

#: Cases that are ended by the limit of time or memory.
BUSY: set[str] = set()


def busy(name: str, text: str) -> None:
    """Adds a module that LLVM does not finish in the time or memory that a test gives."""
    case(name, text)
    BUSY.add(name)


def kernel(code: str, args: str = f"i32 %n, {P}") -> str:
    """A module with one kernel of many lines."""
    return f"define amdgpu_kernel void @k({args}) {{\n{code}\n  ret void\n}}\n"


def chain(n: int, op: str = "mul i32", first: str = "%n") -> str:
    """``n`` operations, each of the last and of an earlier one."""
    lines = [f"  %v0 = {op} {first}, {first}", f"  %v1 = {op} %v0, {first}"]
    return "\n".join([*lines, *(f"  %v{i} = {op} %v{i - 1}, %v{i // 2}" for i in range(2, n))])


busy("20000 products", kernel(chain(30000) + f"\n  store i32 %v29999, {P}"))
busy("divisions of 64 bits", kernel(chain(4000, "sdiv i64", "%m") + f"\n  store i64 %v3999, {P}", f"i64 %m, {P}"))
busy(
    "4000 divisions of f64",
    kernel(chain(6000, "fdiv double", "%m") + f"\n  store double %v5999, {P}", f"double %m, {P}"),
)
busy("remainders of f64", kernel(chain(3000, "frem double", "%m") + f"\n  store double %v2999, {P}", f"double %m, {P}"))
busy(
    "huge switch",
    kernel(
        "  switch i32 %n, label %e [\n"
        + "\n".join(f"    i32 {i * i * 7}, label %b{i}" for i in range(20000))
        + "\n  ]\n"
        + "\n".join(f"b{i}:\n  store volatile i32 {i}, {P}\n  br label %e" for i in range(20000))
        + "\ne:"
    ),
)
busy(
    "nest of 400 loops",
    kernel(
        "  br label %h0\n"
        + "\n".join(
            f"h{i}:\n  %i{i} = phi i32 [0, {'%0' if i == 0 else f'%h{i - 1}'}], [%n{i}, %t{i}]\n  br label %{f'h{i + 1}' if i < 399 else 'x'}"
            for i in range(400)
        )
        + f"\nx:\n  store volatile i32 %n, {P}\n  br label %t399\n"
        + "\n".join(
            f"t{i}:\n  %n{i} = add i32 %i{i}, 1\n  %c{i} = icmp ult i32 %n{i}, %n\n  br i1 %c{i}, label %h{i}, label %{f't{i - 1}' if i else 'e'}"
            for i in reversed(range(400))
        )
        + "\ne:"
    ),
)
busy(
    "ladder of phis",
    kernel(
        "  br label %b0\nb0:\n"
        + "\n".join(
            f"  %c{i} = icmp eq i32 %n, {i}\n  br i1 %c{i}, label %l{i}, label %r{i}\nl{i}:\n  %x{i} = mul i32 %n, {i + 3}\n  store volatile i32 %x{i}, {P}\n  br label %b{i + 1}\n"
            f"r{i}:\n  %y{i} = xor i32 %n, {i + 5}\n  store volatile i32 %y{i}, {P}\n  br label %b{i + 1}\nb{i + 1}:\n  %p{i} = phi i32 [%x{i}, %l{i}], [%y{i}, %r{i}]\n"
            f"  store volatile i32 %p{i}, {P}"
            for i in range(6000)
        )
    ),
)
busy(
    "2000 live vectors",
    kernel(
        "\n".join(
            f"  %a{i} = getelementptr i8, {P}, i64 {i * 64}\n  %v{i} = load volatile <16 x i32>, ptr addrspace(1) %a{i}"
            for i in range(1500)
        )
        + "\n"
        + "\n".join(f"  store volatile <16 x i32> %v{i}, ptr addrspace(1) %a{1499 - i}" for i in range(1500))
    ),
)
busy(
    "shuffles of 4096",
    kernel(
        f"  %v = load <4096 x i8>, {P}\n"
        + "\n".join(
            f"  %s{i} = shufflevector <4096 x i8> %{'v' if i == 0 else f's{i - 1}'}, <4096 x i8> poison, <4096 x i32> <"
            + ", ".join(f"i32 {(j * 37 + i) % 4096}" for j in range(4096))
            + ">"
            for i in range(2)
        )
        + f"\n  store <4096 x i8> %s1, {P}",
        P,
    ),
)
busy(
    "million blocks",
    kernel(
        "  br label %b0\n"
        + "\n".join(f"b{i}:\n  store volatile i32 {i}, {P}\n  br label %b{i + 1}" for i in range(60000))
        + "\nb60000:"
    ),
)
busy(
    "30000 functions",
    "\n".join(f"define void @f{i}(ptr addrspace(1) %p) {{\n  store i32 {i}, {P}\n  ret void\n}}" for i in range(6000))
    + "\ndefine amdgpu_kernel void @k() {\n  ret void\n}\n",
)
busy(
    "huge vector",
    kernel(f"  %x = load <65536 x i32>, {P}\n  %y = mul <65536 x i32> %x, %x\n  store <65536 x i32> %y, {P}"),
)
busy("huge integer", kernel(f"  %x = load i65536, {P}\n  %y = mul i65536 %x, %x\n  store i65536 %y, {P}"))
