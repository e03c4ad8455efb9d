"""One wave that copies a tile to LDS and reads it as operand A of matrix instructions, by tables of LDS offsets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flyllvm.sim import matrix, simulate
from flyllvm.sim.report import SimReport
from flyllvm.target import Target

#: LDS offset of a byte of the tile, from its row and its byte in the row.
Place = Callable[[int, int], int]
#: Bytes of a row in global memory.
PITCH = 512


class Shape:
    """A matrix instruction, and how its lanes hold operand A.

    Attributes:
        call: The intrinsic without ``llvm.amdgcn.``.
        operand, other, total: LLVM types of A, of B, and of C and D.
        before, after: Operands in front of C and behind it.
        wave: Lanes.
        bytes: Bytes of A per lane.
        piece: Bytes of neighbouring k that a lane holds together.
        element: Bytes of an element.
    """

    def __init__(
        self, target: str, call: str, operand: str, total: str, after: str = "", other: str = "", before: str = ""
    ) -> None:
        self.target, self.call, self.operand, self.total = target, call, operand, total
        self.after, self.other, self.before = after, other or operand, before
        self.wave = 64 if target.startswith("gfx9") else 32
        zeros = tuple(0 for _ in matrix.immediate_positions(call))
        product: Any = matrix.prepare(call, zeros, wave_size=self.wave, target=Target.parse(target))
        byte, _ = product.a.places()
        self.byte = byte.reshape(byte.shape[-2:])
        self.rows, self.depth = self.byte.shape
        self.bytes, self.element, self.copies = product.a.lane_bytes, product.a.element.bits // 8, product.a.replicas
        same = np.flatnonzero(np.diff(self.byte[0], append=-1) != self.element)[0] + 1
        self.piece = min(8, int(same) * self.element)

    def at(self, lane: int, byte: int) -> tuple[int, int]:
        """Row and k of the element that begins at a byte of a lane's registers."""
        row, k = np.argwhere(self.byte == lane % (self.wave // self.copies) * self.bytes + byte)[0]
        return int(row), int(k)


_MODES = ", i32 0, i32 0, i32 0"
MFMA = Shape("gfx942", "mfma.f32.16x16x16f16", "<4 x half>", "<4 x float>", _MODES)
MFMA_32 = Shape("gfx942", "mfma.f32.32x32x8f16", "<4 x half>", "<16 x float>", _MODES)
MFMA_F32 = Shape("gfx90a", "mfma.f32.16x16x4f32", "float", "<4 x float>", _MODES)
MFMA_FP8 = Shape("gfx942", "mfma.f32.16x16x32.fp8.fp8", "i64", "<4 x float>", _MODES)
MFMA_950 = Shape("gfx950", "mfma.f32.16x16x32.f16", "<8 x half>", "<4 x float>", _MODES)
SMFMAC = Shape("gfx942", "smfmac.f32.16x16x32.f16", "<4 x half>", "<4 x float>", ", i32 -286331154, i32 0, i32 0",
               "<8 x half>")  # fmt: skip
WMMA_11 = Shape("gfx1100", "wmma.f32.16x16x16.f16", "<16 x half>", "<8 x float>")
WMMA_12 = Shape("gfx1201", "wmma.f32.16x16x16.f16", "<8 x half>", "<8 x float>")
WMMA_FP8 = Shape("gfx1201", "wmma.f32.16x16x16.fp8.fp8", "<2 x i32>", "<8 x float>")
WMMA_1250 = Shape("gfx1250", "wmma.f32.16x16x32.f16", "<16 x half>", "<8 x float>", ", i1 0, i1 0", before="i16 0, ")
SHAPES = {
    "mfma": MFMA, "mfma 32x32": MFMA_32, "mfma f32": MFMA_F32, "mfma fp8": MFMA_FP8, "mfma of gfx950": MFMA_950,
    "smfmac": SMFMAC, "wmma of gfx11": WMMA_11, "wmma of gfx12": WMMA_12, "wmma fp8": WMMA_FP8,
    "wmma of gfx1250": WMMA_1250,
}  # fmt: skip
COPY = (
    "%v{i} = load <4 x i32>, ptr addrspace(1) %g{i}, align 16\nstore <4 x i32> %v{i}, ptr addrspace(3) %w{i}, align 4\n"
)


class Kernel:
    """The kernel and its tables.

    Args:
        shape: The matrix instruction.
        width: Bytes of a row of the tile; as many instructions as cover it add to one accumulator.
        turned: Rows of the tile are values of k (column-major A), not rows of A.
        blocks: Column-major A's of the same k, side by side in the tile, that one B multiplies.
        copy: The instructions of each part that take what is at ``%g{i}`` to LDS at ``%w{i}``.
        change: Between reading and multiplying: makes ``%x{i}`` of ``%f{i}``.
        offset: The global offset ``%o{i}`` of a part from its row ``%row{i}`` and byte ``%cb{i}`` in it.
        before: In front of everything.
    """

    def __init__(
        self, shape: Shape, width: int, *, turned: bool = False, blocks: int = 1, copy: str = COPY, change: str = "",
        offset: str = "", before: str = "",
    ) -> None:  # fmt: skip
        self.shape, self.width, self.turned = shape, width, turned
        self.height = shape.depth if turned else shape.rows
        self.steps = blocks if turned else width // (shape.depth * shape.element)
        piece = shape.element if turned else shape.piece
        self.piece, self.pieces = piece, shape.bytes // piece
        self.copy, self.change, self.before = copy, change, before
        self.offset = offset or f"%rb{{i}} = mul i32 %row{{i}}, {PITCH}\n%o{{i}} = add i32 %rb{{i}}, %cb{{i}}\n"

    def text(self) -> str:
        """The module."""
        zero = "zeroinitializer"
        # B is not the same at all k, for then the order of A would not matter.
        words = self.shape.bytes // 4 * (2 if self.shape is SMFMAC else 1)
        lane = f"%tb = and i32 %t, {self.shape.wave // self.shape.copies - 1}\n"
        body = lane + f"%bw = insertelement <{words} x i32> zeroinitializer, i32 %tb, i32 0\n"
        body += f"%b = bitcast <{words} x i32> %bw to {self.shape.other}\n"
        body, total = body + "".join(self._written(i) for i in range(self.parts)), zero
        for i in range(self.steps):
            body += self._read(i)
            body += (
                f"%d{i} = call {self.shape.total} @llvm.amdgcn.{self.shape.call}({self.shape.operand} "
                f"%{'x' if self.change else 'f'}{i}, {self.shape.other} %b, {self.shape.before}"
                f"{self.shape.total} {total}{self.shape.after})\n"
            )
            total = zero if self.turned else f"%d{i}"
        return (
            "@writes = internal addrspace(4) constant WRITES\n@reads = internal addrspace(4) constant READS\n"
            "@lds = internal addrspace(3) global [16384 x i8] poison, align 16\n"
            "define amdgpu_kernel void @k(ptr addrspace(1) %a, ptr addrspace(1) %index) {\n"
            "%t = call i32 @llvm.amdgcn.workitem.id.x()\n"
            f"{self.before}{body}ret void\n}}\n"
        )

    @property
    def parts(self) -> int:
        """Parts of 16 bytes that a lane copies."""
        return max(1, self.height * self.width // 16 // self.shape.wave)

    def _written(self, i: int) -> str:
        return (
            f"%n{i} = add i32 %t, {i * self.shape.wave}\n%row{i} = udiv i32 %n{i}, {self.width // 16}\n"
            f"%col{i} = urem i32 %n{i}, {self.width // 16}\n%cb{i} = mul i32 %col{i}, 16\n"
            + self.offset.replace("{i}", str(i))
            + f"%g{i} = getelementptr i8, ptr addrspace(1) %a, i32 %o{i}\n"
            f"%pw{i} = getelementptr i32, ptr addrspace(4) @writes, i32 %n{i}\n"
            f"%wo{i} = load i32, ptr addrspace(4) %pw{i}, align 4\n"
            f"%w{i} = getelementptr i8, ptr addrspace(3) @lds, i32 %wo{i}\n" + self.copy.replace("{i}", str(i))
        )

    def _read(self, i: int) -> str:
        bits, text, vector = 8 * self.piece, "", "poison"
        for j in range(self.pieces):
            n, at = f"{i}_{j}", (i * self.pieces + j) * self.shape.wave
            text += (
                f"%m{n} = add i32 %t, {at}\n%pr{n} = getelementptr i32, ptr addrspace(4) @reads, i32 %m{n}\n"
                f"%ro{n} = load i32, ptr addrspace(4) %pr{n}, align 4\n"
                f"%r{n} = getelementptr i8, ptr addrspace(3) @lds, i32 %ro{n}\n"
                f"%q{n} = load i{bits}, ptr addrspace(3) %r{n}, align {min(4, self.piece)}\n"
                f"%u{n} = insertelement <{self.pieces} x i{bits}> {vector}, i{bits} %q{n}, i32 {j}\n"
            )
            vector = f"%u{n}"
        text += f"%f{i} = bitcast <{self.pieces} x i{bits}> {vector} to {self.shape.operand}\n"
        return text + self.change.replace("{i}", str(i))

    def complete(self, write: Place, read: Place, text: str = "") -> str:
        """The module with its tables: the tile lies in LDS as ``write`` says and is read as ``read`` says."""
        shape, per_row = self.shape, self.width // 16
        writes = [write(n // per_row, n % per_row * 16) for n in range(self.height * per_row)]
        reads = []
        for step in range(self.steps):
            for j in range(self.pieces):
                for lane in range(shape.wave):
                    row, k = shape.at(lane, j * self.piece)
                    if self.turned:
                        reads.append(read(k, (row + step * shape.rows) * shape.element))
                    else:
                        reads.append(read(row, (k + step * shape.depth) * shape.element))
        text = text or self.text()
        for name, table in (("WRITES", writes), ("READS", reads)):
            text = text.replace(name, f"[{len(table)} x i32] [{', '.join(f'i32 {n}' for n in table)}]")
        return text

    @staticmethod
    def args() -> list[Any]:
        """The matrix, and an index of its rows."""
        rng = np.random.default_rng(0)
        return [rng.integers(0, 60, 64 * PITCH).astype(np.uint8), rng.permutation(64).astype(np.int32)]

    def run(self, write: Place, read: Place, *, checks: str = "all", text: str = "") -> SimReport:
        """Runs it; ``text`` may be another one than `text` gives."""
        return simulate(self.complete(write, read, text), grid=1, block=self.shape.wave, args=self.args(),
                        target=self.shape.target, checks=checks, source_name="k.ll")  # fmt: skip


def plain(pitch: int) -> Place:
    """Rows of ``pitch`` bytes."""
    return lambda row, byte: row * pitch + byte


def swizzled(pitch: int, bits: int = 2, shift: int = 0) -> Place:
    """Rows of ``pitch`` bytes whose pieces of 16 change places by ``bits`` bits of the row from ``shift`` on."""
    return lambda row, byte: row * pitch + (byte ^ ((row >> shift & (1 << bits) - 1) << 4))
