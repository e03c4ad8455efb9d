"""`Simulator`: a run that stops at instructions and lines, to look at values.

The lanes of all workgroups of a chunk run together, so a stop is a place in the program and the set of lanes there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..errors import LaunchError, SimError
from ..target import Target
from . import matrix, matrix_core, run as runs
from .ir import Inst, Reg
from .machine import Machine
from .report import SimReport
from .values import Array


class Simulator:
    """A kernel run that can be stopped.

    Takes the arguments of `simulate` that say what to run (not ``engine``, ``progress``, ``printf_to`` and
    ``resources``).  The grid must fit one chunk, so that all its values can be looked at.

    Raises:
        ParseError, LaunchError, SimError: As `simulate` does.
    """

    def __init__(
        self, ir_text: str, kernel: str | None = None, *, grid: Any, block: Any, args: Sequence[Any],
        target: str | Target | None = None, **options: Any,
    ) -> None:  # fmt: skip
        for name in ("engine", "progress", "printf_to", "resources"):
            if name in options:
                raise LaunchError(f"a run in steps has no option {name!r}", fix="leave it out, or call simulate")
        self.setup = runs.prepare(
            ir_text, kernel, grid=grid, block=block, args=args, target=target, fusing=False, **options
        )
        self.launch, self.program = self.setup.launch, self.setup.launch.program
        groups = self.launch.grid[0] * self.launch.grid[1] * self.launch.grid[2]
        if groups > runs.chunk_groups(self.launch):
            raise LaunchError(f"{groups} workgroups are too many to step through", fix="use a smaller grid")
        self.machine = Machine(self.program, self.launch, 0, groups)
        self.setup.bind(self.machine)
        self._stops = self._walk()
        self.current: Inst | None = None
        self._advance()
        self._moved = False

    def _walk(self) -> Iterator[Inst]:
        """Yields each instruction before it runs."""
        m = self.machine
        node: Any = self.program.nodes[0]
        while node is not None:
            m.begin(node)
            marks = [*node.marks, (len(node.ops), node.node.end)]
            for (start, inst), (end, _) in zip(marks, marks[1:], strict=False):
                yield inst
                with np.errstate(all="ignore"):
                    for op in node.ops[start:end]:
                        op(m.regs, m)
            yield node.node.end
            with np.errstate(all="ignore"):
                node = node.finish(m.regs, m) or m.schedule()

    def _advance(self) -> None:
        self.current, self._moved = next(self._stops, None), True
        if self.current is None and not self.setup.finished:
            self.setup.write_lines()
            self.setup.finish()

    @property
    def where(self) -> str | None:
        """Author's location of the next instruction; ``None`` when the run is over."""
        return None if self.current is None else self.program.where(self.current)

    @property
    def text(self) -> str | None:
        """The next instruction as text."""
        return None if self.current is None else self.program.text_of(self.current)

    def step(self, count: int = 1) -> str | None:
        """Runs instructions, and returns the location of the next one; ``None`` when the run is over."""
        for _ in range(count):
            if self.current is not None:
                self._advance()
        return self.where

    def run_to(self, place: str | int) -> bool:
        """Runs until just before an instruction at a place: ``"file.py:12"``, or a line of the ``.ll`` text.

        The first call may stop at the first instruction; later ones stop at the next one there after the current.

        Returns:
            Whether it stopped there (``False``: the run is over).

        Raises:
            SimError: No instruction of the kernel is at that place.
        """
        if isinstance(place, bool) or not isinstance(place, (int, str)):
            raise SimError(f"{place!r} is no place", fix='pass a line of the LLVM IR, or "file.py:12"')
        if not any(self._is_at(inst, place) for inst in self.program.insts):
            raise SimError(
                f"no instruction of the kernel is at {place!r}", fix=f"one that is: {self._some_place(place)}"
            )
        if not self._moved and self.current is not None and self._is_at(self.current, place):
            self._moved = True
            return True
        while self.current is not None:
            self._advance()
            if self.current is not None and self._is_at(self.current, place):
                return True
        return False

    def _some_place(self, place: str | int) -> str:
        if isinstance(place, int):
            return str(min((inst.line for inst in self.program.insts), key=lambda line: (abs(line - place), line)))
        return repr(self.program.where(self.program.insts[0]))

    def _is_at(self, inst: Inst, place: str | int) -> bool:
        if isinstance(place, int):
            return inst.line == place
        return any(frame == place or frame.endswith("/" + place) for frame in self.program.locator.chain(inst))

    def run(self) -> SimReport:
        """Runs to the end, writes the results into the arrays and returns the report."""
        while self.current is not None:
            self._advance()
        return self.setup.report

    def value(self, name: str, workgroup: int = 0, wave: int | None = None, lane: int | None = None) -> Any:
        """The value of ``%name`` in one workgroup.

        Shape: ``(waves, lanes)`` plus elements; without the axes that ``wave`` and ``lane`` pick.  Structs are tuples.

        Raises:
            SimError: There is no such value, or it has not been computed yet.
        """
        name = str(name).removeprefix("%")
        slot = self.program.slots.get(name)
        if slot is None:
            raise SimError(f"there is no value %{name}", fix="use the name it has in the LLVM IR")
        value = self.machine.regs[slot]
        if value is None:
            raise SimError(f"%{name} has not been computed yet", fix="step further")
        self._check_place(workgroup, wave, lane)
        return self._pick(value, workgroup, wave, lane)

    def _check_place(self, workgroup: int, wave: int | None = None, lane: int | None = None) -> None:
        for what, number, count in zip(("workgroup", "wave", "lane"), (workgroup, wave, lane), self.machine.shape,
                                       strict=True):  # fmt: skip
            if number is not None and (not isinstance(number, (int, np.integer)) or not 0 <= number < count):
                raise SimError(f"there is no {what} {number!r}", fix=f"pass an int from 0 to {count - 1}")

    def _pick(self, value: Any, workgroup: int, wave: int | None, lane: int | None) -> Any:
        if isinstance(value, tuple):
            return tuple(self._pick(v, workgroup, wave, lane) for v in value)
        full = np.broadcast_to(value, self.machine.shape + value.shape[3:])[workgroup]
        if wave is not None:
            full = full[wave]
            return full if lane is None else full[lane]
        return full if lane is None else full[:, lane]

    def lanes(self, workgroup: int = 0) -> Array:
        """Which lanes run the next instruction.  Shape: ``(waves, lanes)``, bool."""
        self._check_place(workgroup)
        return self.machine.mask[workgroup].copy()

    def matrix(self, name: str, workgroup: int = 0, wave: int = 0) -> Array:
        """The matrix that a register fragment stands for, by the first matrix instruction that uses ``%name``.

        Shape: ``(M, K)``, ``(K, N)`` or ``(M, N)`` for operands A, B and the accumulator or result; with several
        blocks one more axis in front.

        Raises:
            SimError: No dense matrix instruction uses it.
        """
        name = str(name).removeprefix("%")
        self._check_place(workgroup, wave)
        for inst in self.program.insts:
            role, product = self._role(inst, name)
            if product is not None:
                raw = np.ascontiguousarray(self.value(name, workgroup)[wave][None])
                return _as_matrix(product, role, raw)
        raise SimError(f"no matrix instruction uses %{name}", fix="name an operand or a result of one")

    def _role(self, inst: Inst, name: str) -> tuple[int, Any]:
        callee = (inst.callee or "").removeprefix("llvm.amdgcn.")
        if inst.op != "call" or not matrix.supports(callee):
            return 0, None
        positions = matrix.immediate_positions(callee)
        registers = [o for i, o in enumerate(inst.operands) if i not in positions]
        role = 2 if inst.name == name else next(
            (i for i, o in enumerate(registers) if isinstance(o, Reg) and o.name == name), None
        )  # fmt: skip
        if role is None or role > 2:
            return 0, None
        values = tuple(int(getattr(inst.operands[p], "value", 0) or 0) for p in positions)
        product = matrix.prepare(callee, values, wave_size=self.machine.wave_size, target=self.program.target)
        return role, product if isinstance(product, matrix_core.Product) else None


def _as_matrix(product: matrix_core.Product, role: int, raw: Array) -> Array:
    if role < 2:
        fetch = product.a if role == 0 else product.b
        return fetch(raw, np.empty((1, *fetch.shape)))[0]
    scratch = matrix_core.Scratch(1, product.a, product.b, product.c)
    shape = scratch.product.shape
    number = np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape)
    place = product.c(number, np.zeros_like(raw), scratch.spread).astype(np.int64).ravel()
    out = np.zeros(number.size, raw.dtype)
    out[place] = raw.ravel()
    return out.reshape(shape)[0]
