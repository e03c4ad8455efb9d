"""Single AMDGPU instructions that compute each lane by itself or read a register of the machine.

Source: CDNA3, RDNA3, RDNA4 ISA manuals, opcode descriptions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import alu, types as ty
from .ir import Inst
from .values import LDS_APERTURE, PRIVATE_APERTURE, Array, scalar

if TYPE_CHECKING:
    from .compile import Compiler, Op
    from .machine import Machine

Builder = Callable[["Compiler", Inst], "list[Op]"]
U32 = np.uint32


def of_values(fn: Callable[..., Any], count: int) -> Builder:
    """A builder for a function of the first ``count`` operands."""

    def builder(c: Compiler, inst: Inst) -> list[Op]:
        d, slots = c.dest(inst), [c.slot(o) for o in inst.operands[:count]]

        def run(r: list[Any], m: Machine) -> None:
            r[d] = fn(*[r[s] for s in slots])

        return [run]

    return builder


def _bytes(a: Array) -> list[Array]:
    return [(a >> U32(8 * i) & U32(0xFF)).astype(np.int64) for i in range(4)]


def _sad(masked: bool, shift: int = 0) -> Callable[[Array, Array, Array], Array]:
    """Sum of absolute differences of bytes, added to the third operand; ``masked`` skips zero reference bytes."""

    def sad(a: Array, b: Array, c: Array) -> Array:
        parts = [np.where(y == 0, 0, abs(x - y)) if masked else abs(x - y) for x, y in zip(_bytes(a), _bytes(b))]
        return ((sum(parts) << shift) + c.astype(np.int64) & 0xFFFFFFFF).astype(U32)

    return sad


def _sad16(a: Array, b: Array, c: Array) -> Array:
    halves = [abs((a >> U32(s) & U32(0xFFFF)).astype(np.int64) - (b >> U32(s) & U32(0xFFFF)).astype(np.int64))
              for s in (0, 16)]  # fmt: skip
    return (halves[0] + halves[1] + c.astype(np.int64) & 0xFFFFFFFF).astype(U32)


def _lerp(a: Array, b: Array, c: Array) -> Array:
    parts = [x + y + (z & 1) >> 1 for x, y, z in zip(_bytes(a), _bytes(b), _bytes(c))]
    return sum(p.astype(U32) << U32(8 * i) for i, p in enumerate(parts))


def _bitop3(c: Compiler, inst: Inst) -> list[Op]:
    """Any boolean function of three operands: bit ``4a + 2b + c`` of the table."""
    table = c.immediate(inst, 3)

    def fn(x: Array, y: Array, z: Array) -> Array:
        out = np.zeros(np.broadcast_shapes(x.shape, y.shape, z.shape), x.dtype)
        for row in range(8):
            if table >> row & 1:
                out |= (x if row & 4 else ~x) & (y if row & 2 else ~y) & (z if row & 1 else ~z)
        return out

    return of_values(fn, 3)(c, inst)


def _sffbh(a: Array) -> Array:
    """Bits before the first that differs from the sign, -1 where all are equal."""
    wide = a.astype(np.int64)
    flipped = np.where(a >> U32(31) != 0, ~wide & 0xFFFFFFFF, wide)
    length = np.where(flipped > 0, np.floor(np.log2(np.maximum(flipped, 1))).astype(np.int64) + 1, 0)
    return (np.where(flipped == 0, -1, 32 - length) & 0xFFFFFFFF).astype(U32)


def _quadmask(a: Array) -> Array:
    out = np.zeros_like(a)
    four, one = a.dtype.type(0xF), a.dtype.type(1)
    for i in range(a.dtype.itemsize * 2):
        bit = (a >> a.dtype.type(4 * i) & four) != 0
        out |= np.where(bit, one << a.dtype.type(i), a.dtype.type(0))
    return out


def _bitreplicate(a: Array) -> Array:
    out = np.zeros(a.shape, np.uint64)
    for i in range(32):
        out |= (a >> U32(i) & U32(1)).astype(np.uint64) * np.uint64(3) << np.uint64(2 * i)
    return out


def _saturated_sum(signed: bool, largest: bool) -> Callable[[Array, Array, Array], Array]:
    """``add.max`` / ``add.min``: a saturating 32-bit sum, then maximum or minimum with the third operand."""

    def fn(a: Array, b: Array, c: Array) -> Array:
        x, y, z = (alu.sign_extended(v, 32).astype(np.int64) if signed else v.astype(np.int64) for v in (a, b, c))
        low, high = (-(1 << 31), (1 << 31) - 1) if signed else (0, (1 << 32) - 1)
        total = np.clip(x + y, low, high)
        return ((np.maximum if largest else np.minimum)(total, z) & 0xFFFFFFFF).astype(U32)

    return fn


def _prng(a: Array) -> Array:
    """``v_prng_b32``: one step of a 32-bit linear feedback shift register.

    Source: CDNA4 ISA manual, V_PRNG_B32.
    """
    return (a << U32(1)) ^ np.where(a >> U32(31) != 0, U32(197), U32(0))


def _is_in(aperture: int) -> Callable[[Array], Array]:
    return lambda a: a >> np.uint64(32) == aperture


def _rsq_clamp(c: Compiler, inst: Inst) -> list[Op]:
    # the largest bfloat is that float32 with 16 zeros at the end
    top = float.fromhex("0x1.fep127") if inst.type is ty.BFLOAT else float(np.finfo(ty.dtype_of(inst.type)).max)

    def fn(a: Array) -> Array:
        root = 1.0 / np.sqrt(a.astype(np.float64))
        return np.clip(root, -top, top).astype(a.dtype)

    return of_values(alu.widened(inst.type, fn), 1)(c, inst)


def _fdiv_fast(a: Array, b: Array) -> Array:
    return (a.astype(np.float64) / b.astype(np.float64)).astype(a.dtype)


def _legacy_fma(a: Array, b: Array, c: Array) -> Array:
    """Multiply-add in which zero times anything is zero."""
    from . import fma

    fused = fma.function(ty.FLOAT)(a, b, c)
    return np.where((a == 0) | (b == 0), c, fused)


def _div_scale(c: Compiler, inst: Inst) -> list[Op]:
    """``div.scale``: the simulator divides in `_div_fixup`, so nothing needs scaling; the flag is false."""
    first = c.immediate(inst, 2)
    d, a, b = c.dest(inst), c.slot(inst.operands[0]), c.slot(inst.operands[1])

    def run(r: list[Any], m: Machine) -> None:
        value = r[a] if first else r[b]
        r[d] = (value, np.zeros(value.shape, bool))

    return [run]


def _div_fmas(c: Compiler, inst: Inst) -> list[Op]:
    from . import fma

    return of_values(fma.function(inst.type), 3)(c, inst)


def _div_fixup(quotient: Array, denominator: Array, numerator: Array) -> Array:
    """The last step of a division: special cases, and here the correctly rounded quotient."""
    wide = numerator.astype(np.float64) / denominator.astype(np.float64)
    return wide.astype(numerator.dtype) if numerator.dtype != np.float64 else numerator / denominator


def _clock(c: Compiler, inst: Inst) -> list[Op]:
    """A time stamp that grows with the blocks run."""
    d = c.dest(inst)

    def run(r: list[Any], m: Machine) -> None:
        r[d] = scalar(inst.type, m.steps * 64)

    return [run]


def _off_i4(a: Array) -> Array:
    """``cvt.off.f32.i4``: the low four bits as a signed number of sixteenths."""
    low = (a & U32(0xF)).astype(np.int64)
    return (((low ^ 8) - 8) / 16.0).astype(np.float32)


def _static_lds(c: Compiler, inst: Inst) -> list[Op]:
    d = c.dest(inst)
    size = scalar(ty.I32, c.program.lds.static_bytes)

    def run(r: list[Any], m: Machine) -> None:
        r[d] = size

    return [run]


def _end_program(c: Compiler, inst: Inst) -> list[Op]:
    def run(r: list[Any], m: Machine) -> None:
        m.fault(inst, "the wave ends itself in the middle of the kernel, which is not simulated")

    return [run]


CLOCKS = frozenset(
    f"llvm.{name}" for name in ("amdgcn.s.memtime", "amdgcn.s.memrealtime", "readcyclecounter", "readsteadycounter")
)

TABLE: dict[str, Builder] = {
    "amdgcn.sad.u8": of_values(_sad(False), 3),
    "amdgcn.sad.hi.u8": of_values(_sad(False, 16), 3),
    "amdgcn.msad.u8": of_values(_sad(True), 3),
    "amdgcn.sad.u16": of_values(_sad16, 3),
    "amdgcn.lerp": of_values(_lerp, 3),
    "amdgcn.bitop3": _bitop3,
    "amdgcn.sffbh": of_values(_sffbh, 1),
    "amdgcn.s.quadmask": of_values(_quadmask, 1),
    "amdgcn.s.bitreplicate": of_values(_bitreplicate, 1),
    "amdgcn.add.max.i32": of_values(_saturated_sum(True, True), 3),
    "amdgcn.add.max.u32": of_values(_saturated_sum(False, True), 3),
    "amdgcn.add.min.i32": of_values(_saturated_sum(True, False), 3),
    "amdgcn.add.min.u32": of_values(_saturated_sum(False, False), 3),
    "amdgcn.prng.b32": of_values(_prng, 1),
    "amdgcn.is.shared": of_values(_is_in(LDS_APERTURE), 1),
    "amdgcn.is.private": of_values(_is_in(PRIVATE_APERTURE), 1),
    "amdgcn.rsq.clamp": _rsq_clamp,
    "amdgcn.fdiv.fast": of_values(_fdiv_fast, 2),
    "amdgcn.fma.legacy": of_values(_legacy_fma, 3),
    "amdgcn.div.scale": _div_scale,
    "amdgcn.div.fmas": _div_fmas,
    "amdgcn.div.fixup": of_values(_div_fixup, 3),
    "amdgcn.cvt.off.f32.i4": of_values(_off_i4, 1),
    "amdgcn.groupstaticsize": _static_lds,
    "amdgcn.s.memtime": _clock,
    "amdgcn.s.memrealtime": _clock,
    "readcyclecounter": _clock,
    "readsteadycounter": _clock,
    "amdgcn.endpgm": _end_program,
}
