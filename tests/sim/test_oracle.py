"""Instructions that mean the same on every target: the simulator agrees with the host CPU, through LLVM's JIT."""

from __future__ import annotations

import numpy as np
import pytest

from tests.sim.both import LANES, Function, interesting, run_both

pytestmark = [pytest.mark.llvm, pytest.mark.sim]

_INT = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
_FLOAT = {"float": np.float32, "double": np.float64}


def _same(got: np.ndarray, want: np.ndarray) -> bool:
    if got.dtype.kind == "f":
        return bool(np.array_equal(got, want, equal_nan=True) and np.array_equal(_signs(got), _signs(want)))
    return bool(np.array_equal(got, want))


def _signs(a: np.ndarray) -> np.ndarray:
    return np.signbit(a) & ~np.isnan(a)


def _check(functions: list[Function], declarations: str = "") -> None:
    wrong = [
        f"{f.definition()} lane {int(np.argwhere(g != w)[0][0])}: {[a[np.argwhere(g != w)[0][0]] for a in f.inputs]} "
        f"gives {g[np.argwhere(g != w)[0][0]]}, host {w[np.argwhere(g != w)[0][0]]}"
        for f, (g, w) in zip(functions, run_both(functions, declarations), strict=True)
        if not _same(g, w)
    ]
    assert not wrong, "\n".join(wrong)


def _binary(name: str, op: str, t: str, dtype: object, rng: np.random.Generator, vector: int = 0) -> Function:
    llvm = f"<{vector} x {t}>" if vector else t
    shape = (LANES, vector) if vector else (LANES,)
    a, b = interesting(dtype, rng, shape), interesting(dtype, rng, shape)
    body = f"  %r = {op} {llvm} %a0, %a1\n  ret {llvm} %r"
    if op.split()[0] in ("udiv", "sdiv", "urem", "srem"):
        b |= np.array(1, dtype)
        if op[0] == "s":
            b &= np.array(np.iinfo(dtype).max >> 1, dtype)
    if op.split()[0] in ("shl", "lshr", "ashr"):
        b %= np.array(np.iinfo(dtype).bits, dtype)
    return Function(name, llvm, [llvm, llvm], body, [a, b], np.zeros(shape, dtype))


def test_integer_arithmetic_agrees_with_the_host() -> None:
    rng = np.random.default_rng(1)
    ops = "add sub mul udiv sdiv urem srem and or xor shl lshr ashr".split()
    functions = [_binary(f"{op}_{bits}", op, f"i{bits}", _INT[bits], rng) for op in ops for bits in _INT]
    functions += [_binary(f"{op}_v4", op, "i32", np.uint32, rng, 4) for op in ops]
    _check(functions)


def test_odd_integer_widths_agree_with_the_host() -> None:
    rng = np.random.default_rng(2)
    functions = []
    for bits in (1, 3, 7, 12, 24, 33, 48):
        wide = next(w for w in _INT if w >= bits)
        for op in "add sub mul and or xor udiv urem sdiv srem shl lshr ashr".split():
            a, b = interesting(_INT[wide], rng, (LANES,)), interesting(_INT[wide], rng, (LANES,))
            fix = {"s": f"\n  %y1 = urem i{bits} %y0, {bits}\n  %y = add i{bits} %y1, 0", "d": ""}
            guard = f"\n  %y = add i{bits} %y0, 0"
            if op in ("shl", "lshr", "ashr"):
                guard = fix["s"] if bits > 1 else f"\n  %y = xor i{bits} %y0, %y0"
            elif op in ("udiv", "urem"):
                guard = f"\n  %y = or i{bits} %y0, 1"
            elif op in ("sdiv", "srem"):
                if bits == 1:
                    continue
                guard = f"\n  %y1 = or i{bits} %y0, 1\n  %y = lshr i{bits} %y1, 1\n"
                guard = f"\n  %y1 = lshr i{bits} %y0, 2\n  %y = or i{bits} %y1, 1"
            head = (
                f"  %x = trunc i{wide} %a0 to i{bits}\n  %y0 = trunc i{wide} %a1 to i{bits}" if bits != wide else
                f"  %x = add i{wide} %a0, 0\n  %y0 = add i{wide} %a1, 0"
            )  # fmt: skip
            for ext in ("zext", "sext"):
                body = (
                    f"{head}{guard}\n  %z = {op} i{bits} %x, %y\n  %r = {ext} i{bits} %z to i{wide}\n"
                    f"  ret i{wide} %r"
                )  # fmt: skip
                functions.append(
                    Function(f"{op}_{ext}_{bits}", f"i{wide}", [f"i{wide}"] * 2, body, [a, b], np.zeros(LANES, a.dtype))
                )
    _check(functions)


def test_float_arithmetic_agrees_with_the_host() -> None:
    rng = np.random.default_rng(3)
    ops = "fadd fsub fmul fdiv".split()
    functions = [_binary(f"{op}_{t}", op, t, dtype, rng) for op in ops for t, dtype in _FLOAT.items()]
    functions += [_binary(f"{op}_v4", op, "float", np.float32, rng, 4) for op in ops]
    _check(functions)


def test_comparisons_and_selects_agree_with_the_host() -> None:
    rng = np.random.default_rng(4)
    functions = []
    for pred in "eq ne ugt uge ult ule sgt sge slt sle".split():
        for bits, dtype in _INT.items():
            t = f"i{bits}"
            a, b = interesting(dtype, rng, (LANES,)), interesting(dtype, rng, (LANES,))
            b = np.where(rng.random(LANES) < 0.3, a, b)
            body = f"  %c = icmp {pred} {t} %a0, %a1\n  %r = select i1 %c, {t} %a0, {t} %a1\n  ret {t} %r"
            functions.append(Function(f"{pred}_{bits}", t, [t, t], body, [a, b], np.zeros(LANES, dtype)))
    for pred in "false oeq ogt oge olt ole one ord uno ueq ugt uge ult ule une true".split():
        for t, dtype in _FLOAT.items():
            a, b = interesting(dtype, rng, (LANES,)), interesting(dtype, rng, (LANES,))
            b = np.where(rng.random(LANES) < 0.3, a, b)
            body = f"  %c = fcmp {pred} {t} %a0, %a1\n  %r = zext i1 %c to i32\n  ret i32 %r"
            functions.append(Function(f"f{pred}_{t}", "i32", [t, t], body, [a, b], np.zeros(LANES, np.uint32)))
    _check(functions)


def _unary(name: str, source: str, target: str, body: str, a: np.ndarray, out: np.ndarray) -> Function:
    return Function(name, target, [source], f"{body}\n  ret {target} %r", [a], out)


def test_conversions_agree_with_the_host() -> None:
    rng = np.random.default_rng(5)
    functions = []
    for bits, dtype in _INT.items():
        a = interesting(dtype, rng, (LANES,))
        for to, to_dtype in _INT.items():
            for op in ("zext", "sext") if to > bits else ("trunc",) if to < bits else ():
                body = f"  %r = {op} i{bits} %a0 to i{to}"
                functions.append(_unary(f"{op}_{bits}_{to}", f"i{bits}", f"i{to}", body, a, np.zeros(LANES, to_dtype)))
        for t, f_dtype in _FLOAT.items():
            for op in ("sitofp", "uitofp"):
                body = f"  %r = {op} i{bits} %a0 to {t}"
                functions.append(_unary(f"{op}_{bits}_{t}", f"i{bits}", t, body, a, np.zeros(LANES, f_dtype)))
            small = (rng.random(LANES) * 127).astype(f_dtype)
            for op in ("fptosi", "fptoui"):
                body = f"  %r = {op} {t} %a0 to i{bits}"
                functions.append(_unary(f"{op}_{t}_{bits}", t, f"i{bits}", body, small, np.zeros(LANES, dtype)))
    f32, f64 = interesting(np.float32, rng, (LANES,)), interesting(np.float64, rng, (LANES,))
    f64 = np.where(rng.random(LANES) < 0.5, f64, f32.astype(np.float64) * (1 + 2.0**-25))
    functions.append(_unary("ext", "float", "double", "  %r = fpext float %a0 to double", f32, np.zeros(LANES)))
    functions.append(
        _unary("narrow", "double", "float", "  %r = fptrunc double %a0 to float", f64, np.zeros(LANES, np.float32))
    )
    pair = interesting(np.uint32, rng, (LANES, 2))
    functions.append(
        _unary("cast", "<2 x i32>", "i64", "  %r = bitcast <2 x i32> %a0 to i64", pair, np.zeros(LANES, np.uint64))
    )
    functions.append(
        _unary(
            "cast8", "<2 x i32>", "<8 x i8>", "  %r = bitcast <2 x i32> %a0 to <8 x i8>", pair,
            np.zeros((LANES, 8), np.uint8),
        )
    )  # fmt: skip
    body = "  %c = icmp slt <8 x i8> %a0, zeroinitializer\n  %r = bitcast <8 x i1> %c to i8"
    bytes_ = interesting(np.uint8, rng, (LANES, 8))
    functions.append(_unary("bits", "<8 x i8>", "i8", body, bytes_, np.zeros(LANES, np.uint8)))
    _check(functions)


def test_half_and_bfloat_conversions_round_to_nearest_even() -> None:
    rng = np.random.default_rng(6)
    values = interesting(np.float32, rng, (LANES,))
    values[np.isnan(values)] = 1.0
    to_half = _unary("half", "float", "half", "  %r = fptrunc float %a0 to half", values, np.zeros(LANES, np.float16))
    halves = np.arange(LANES, dtype=np.uint16) * 257
    from_half = _unary(
        "back", "i16", "float", "  %h = bitcast i16 %a0 to half\n  %r = fpext half %h to float", halves,
        np.zeros(LANES, np.float32),
    )  # fmt: skip
    _check([to_half, from_half])


_INTRINSICS_1 = {
    "ctpop": "i", "bitreverse": "i", "bswap": "i", "fabs": "f", "floor": "f", "ceil": "f", "trunc": "f", "rint": "f",
    "nearbyint": "f", "roundeven": "f", "round": "f", "sqrt": "f",
}  # fmt: skip
_INTRINSICS_2 = {
    "smin": "i", "smax": "i", "umin": "i", "umax": "i", "sadd.sat": "i", "uadd.sat": "i", "ssub.sat": "i",
    "usub.sat": "i", "minnum": "f", "maxnum": "f", "copysign": "f", "minimum": "f", "maximum": "f",
}  # fmt: skip


def test_intrinsics_agree_with_the_host() -> None:
    rng = np.random.default_rng(7)
    functions, declarations = [], ""
    types = {"i": [(f"i{b}", d) for b, d in _INT.items()], "f": list(_FLOAT.items())}
    for names, count in ((_INTRINSICS_1, 1), (_INTRINSICS_2, 2), ({"fshl": "i", "fshr": "i", "fma": "f"}, 3)):
        for name, kind in names.items():
            for t, dtype in types[kind]:
                if name == "bswap" and t == "i8":
                    continue
                suffix = {"float": "f32", "double": "f64"}.get(t, t)
                full = f"llvm.{name}.{suffix}"
                declarations += f"declare {t} @{full}({', '.join([t] * count)})\n"
                inputs = [interesting(dtype, rng, (LANES,)) for _ in range(count)]
                args = ", ".join(f"{t} %a{i}" for i in range(count))
                body = f"  %r = call {t} @{full}({args})\n  ret {t} %r"
                if name in ("minnum", "maxnum"):  # the order of zeros is unspecified
                    inputs = [np.where(a == 0, dtype(1), a) for a in inputs]
                ident = f"{name.replace('.', '_')}_{suffix}"
                functions.append(Function(ident, t, [t] * count, body, inputs, np.zeros(LANES, dtype)))
    for name in ("ctlz", "cttz", "abs"):
        for t, dtype in types["i"]:
            declarations += f"declare {t} @llvm.{name}.{t}({t}, i1)\n"
            body = f"  %r = call {t} @llvm.{name}.{t}({t} %a0, i1 false)\n  ret {t} %r"
            a = interesting(dtype, rng, (LANES,))
            functions.append(Function(f"{name}_{t}", t, [t], body, [a], np.zeros(LANES, dtype)))
    for op in ("sadd", "uadd", "ssub", "usub", "smul", "umul"):
        for t, dtype in types["i"]:
            full = f"llvm.{op}.with.overflow.{t}"
            declarations += f"declare {{{t}, i1}} @{full}({t}, {t})\n"
            body = (
                f"  %p = call {{{t}, i1}} @{full}({t} %a0, {t} %a1)\n  %v = extractvalue {{{t}, i1}} %p, 0\n"
                f"  %o = extractvalue {{{t}, i1}} %p, 1\n  %w = xor {t} %v, 1\n"
                f"  %r = select i1 %o, {t} %w, {t} %v\n  ret {t} %r"
            )  # fmt: skip
            inputs = [interesting(dtype, rng, (LANES,)) for _ in range(2)]
            functions.append(Function(f"{op}_{t}", t, [t, t], body, inputs, np.zeros(LANES, dtype)))
    _check(functions, declarations)


def test_vectors_agree_with_the_host() -> None:
    rng = np.random.default_rng(8)
    a, b = interesting(np.uint32, rng, (LANES, 4)), interesting(np.uint32, rng, (LANES, 4))
    index = (rng.integers(0, 4, LANES)).astype(np.uint32)
    v, out = "<4 x i32>", np.zeros((LANES, 4), np.uint32)
    shuffles = ["0, i32 5, i32 2, i32 7", "3, i32 2, i32 1, i32 0", "4, i32 5, i32 6, i32 7"]
    functions = [
        Function(
            f"shuffle{i}", v, [v, v],
            f"  %r = shufflevector {v} %a0, {v} %a1, <4 x i32> <i32 {m}>\n  ret {v} %r", [a, b], out,
        )
        for i, m in enumerate(shuffles)
    ]  # fmt: skip
    body = f"  %e = extractelement {v} %a0, i32 %a1\n  %r = insertelement {v} %a0, i32 %e, i32 1\n  ret {v} %r"
    functions.append(Function("extract", v, [v, "i32"], body, [a, index], out))
    body = f"  %r = insertelement {v} %a0, i32 77, i32 %a1\n  ret {v} %r"
    functions.append(Function("insert", v, [v, "i32"], body, [a, index], out))
    body = (
        f"  %x = insertelement {v} poison, i32 1, i32 0\n  %e = extractelement {v} %a0, i32 3\n"
        f"  %y = insertelement {v} %x, i32 %e, i32 1\n  %z = insertelement {v} %y, i32 %e, i32 2\n"
        f"  %w = insertelement {v} %z, i32 9, i32 3\n  ret {v} %w"
    )  # fmt: skip
    functions.append(Function("build", v, [v], body, [a], out))
    body = (
        f"  %c = icmp ult {v} %a0, %a1\n  %s = select <4 x i1> %c, {v} %a0, {v} %a1\n"
        f"  %p = insertvalue {{ {v}, i32 }} poison, {v} %s, 0\n  %q = insertvalue {{ {v}, i32 }} %p, i32 3, 1\n"
        f"  %r = extractvalue {{ {v}, i32 }} %q, 0\n  ret {v} %r"
    )  # fmt: skip
    functions.append(Function("select", v, [v, v], body, [a, b], out))
    _check(functions)


def test_control_flow_agrees_with_the_host() -> None:
    rng = np.random.default_rng(9)
    a, b = interesting(np.uint32, rng, (LANES,)), interesting(np.uint32, rng, (LANES,))
    nested = """
  %c = icmp slt i32 %a0, 0
  br i1 %c, label %neg, label %pos
neg:
  %d = icmp ult i32 %a1, 1000
  br i1 %d, label %small, label %large
small:
  %s = add i32 %a0, %a1
  br label %join
large:
  %l = sub i32 %a0, %a1
  br label %join
join:
  %j = phi i32 [ %s, %small ], [ %l, %large ]
  br label %end
pos:
  %p = xor i32 %a0, %a1
  br label %end
end:
  %r = phi i32 [ %j, %join ], [ %p, %pos ]
  ret i32 %r"""
    loop = """
  %n = and i32 %a0, 31
  br label %head
head:
  %i = phi i32 [ 0, %0 ], [ %i1, %latch ]
  %x = phi i32 [ %a1, %0 ], [ %x2, %latch ]
  %done = icmp uge i32 %i, %n
  br i1 %done, label %exit, label %body
body:
  %x1 = mul i32 %x, 1664525
  %odd = and i32 %x1, 64
  %brk = icmp eq i32 %odd, 64
  br i1 %brk, label %early, label %latch
latch:
  %x2 = add i32 %x1, %i
  %i1 = add i32 %i, 1
  br label %head
early:
  %e = xor i32 %x1, %i
  br label %out
exit:
  br label %out
out:
  %r = phi i32 [ %e, %early ], [ %x, %exit ]
  ret i32 %r"""
    switch = """
  %k = and i32 %a0, 3
  switch i32 %k, label %other [ i32 0, label %zero
                                i32 1, label %one
                                i32 2, label %one ]
zero:
  br label %end
one:
  %o = phi i32 [ 5, %0 ], [ 5, %0 ]
  %q = mul i32 %a1, %o
  br label %end
other:
  br label %end
end:
  %r = phi i32 [ 7, %zero ], [ %q, %one ], [ %a1, %other ]
  ret i32 %r"""
    swap = """
  %n = and i32 %a0, 7
  br label %head
head:
  %i = phi i32 [ 0, %0 ], [ %i1, %head ]
  %x = phi i32 [ %a0, %0 ], [ %y, %head ]
  %y = phi i32 [ %a1, %0 ], [ %x, %head ]
  %i1 = add i32 %i, 1
  %more = icmp ult i32 %i, %n
  br i1 %more, label %head, label %out
out:
  %r = sub i32 %x, %y
  ret i32 %r"""
    bodies = {"nested": nested, "loop": loop, "switch": switch, "swap": swap}
    _check([Function(n, "i32", ["i32", "i32"], t, [a, b], np.zeros(LANES, np.uint32)) for n, t in bodies.items()])
