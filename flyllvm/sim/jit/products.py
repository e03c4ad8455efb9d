"""Matrix instructions: a function of the host for each kind, called once per wave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import SimError
from .. import matrix
from ..ir import Inst
from ..matrix_core import Product
from ..matrix_dot import FloatDot, IntegerDot
from ..matrix_scaled import ScaledProduct
from ..matrix_sparse import SparseProduct
from . import packed, saturate, small
from .parts import NotCovered, Part, bits_of
from .product_code import Kind, function_text
from .steps import Step

if TYPE_CHECKING:
    from .gen import Gen
    from .lower import Lowering


class MatrixStep(Step):
    """A call of a matrix instruction in every wave."""

    __slots__ = ("kind", "operands", "outputs")

    def __init__(self, kind: Kind, operands: list[list[Part]], outputs: list[Part]) -> None:
        self.kind, self.operands, self.outputs = kind, operands, outputs

    def emit(self, g: Gen) -> None:
        """Writes the step."""
        if self.kind.name not in g.functions:
            g.functions[self.kind.name] = function_text(self.kind, [[p.type for p in o] for o in self.operands])
        pointers = [g.slot(p) for p in (*(p for o in self.operands for p in o), *self.outputs)]

        def body(wave: str) -> None:
            args = ", ".join([*(f"ptr {p}" for p in pointers), f"i64 {wave}"])
            if not self.kind.checks:
                g.w.do(f"call void @{self.kind.name}({args})")
                return
            good = g.w.fresh("copies")
            g.w.branch(g.w.emit(f"call i1 @{self.kind.name}({args})"), g.fault_label, good)
            g.w.start(good)

        g.each_wave(body, whole=True)


def lower(b: Lowering, inst: Inst, name: str) -> list[Part]:
    """The parts of the result of a matrix instruction a dot product or a conversion."""
    program = b.program
    positions = matrix.immediate_positions(name)
    immediates = tuple(b.number(inst.operands[p], "a modifier") for p in positions)
    try:
        prepared = matrix.prepare(name, immediates, wave_size=program.target.wave_size, target=program.target)
    except SimError as e:
        raise NotCovered(e.what) from None
    assumed = matrix.assumption(name)
    if assumed:
        b.warn(inst, assumed)
    operands = [b.parts(o) for i, o in enumerate(inst.operands) if i not in positions]
    if isinstance(prepared, IntegerDot | FloatDot):
        return packed.dot(b, inst, prepared, operands)
    if matrix.flops(name) == 0:
        if b.saturates:
            operands = saturate.clipped(b, inst, positions, operands)
        return small.lower(b, inst, prepared, operands)
    if not isinstance(prepared, Product) or type(prepared) not in (Product, ScaledProduct, SparseProduct):
        raise NotCovered(f"@{inst.callee}")
    literals = [b.literal(inst.operands[p]) for p in matrix.literal_positions(name)]
    scaled = isinstance(prepared, ScaledProduct) and not (prepared.unscaled_at_zero and literals == [0, 0])
    if isinstance(prepared, SparseProduct):
        if bits_of(operands[3][0].type) < prepared.index.bits or len(operands[3]) != 1:
            raise NotCovered(f"an index of less than {prepared.index.bits} bits")
    else:
        operands = operands if scaled else operands[:3]
    words = [name, *map(str, immediates), *(f"{len(o)}{o[0].type}" for o in operands)]
    spelled = "_".join("".join(c if c.isalnum() else "_" for c in word) for word in words)
    kind = Kind(f"matrix_{spelled}", prepared, scaled)
    number = len(b.steps[b.node.index])
    outputs = [Part(kind.result_type(p.type), False, b.node.index, number) for p in operands[2]]
    b.read([p for o in operands for p in o], b.add(MatrixStep(kind, operands, outputs)))
    return outputs
