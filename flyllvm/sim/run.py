"""Running a kernel over a grid: `simulate`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TextIO

import numpy as np

from ..errors import SimError
from ..printf import HEADER_BYTES, PARAMETER, formats_in, new_buffer, write_lines
from ..target import Target
from . import arguments, inputs
from .checks import level
from .cluster_barrier import cluster_groups
from .compile import Compiler, Program
from .engines import Choice
from .ir import Module
from .launch import Launch
from .machine import Machine
from .parser import parse_module
from .profile import Profile, rows_by_line
from .report import SimReport

# Lanes run at once: enough to hide the cost of a NumPy call, few enough that a chunk's values stay small.
_CHUNK_LANES = 16384
_CHUNK_LDS_BYTES = 48 << 20


@lru_cache(maxsize=8)
def _parsed(ir_text: str, source_name: str) -> Module:
    """A module, kept for its other kernels; compiling works on copies of its instructions."""
    return parse_module(ir_text, source_name)


@lru_cache(maxsize=32)
def compiled(
    ir_text: str, kernel: str | None, target: str | Target | None, source_name: str, checks: str = "default",
    fusing: bool = True, wave_size: int | None = None,
) -> Program:  # fmt: skip
    """Parses and compiles a kernel; the last few are kept.

    Raises:
        ParseError: The text is no valid module.
        LaunchError: The kernel does not exist, or is for another target.
        SimError: It uses something unknown.
    """
    module = _parsed(ir_text, source_name)
    function = inputs.kernel_of(module, kernel)
    chip = inputs.target_of(module, function, target, wave_size)
    return Compiler(module, function, chip, chip.wave_size, level(checks), fusing).build()


def simulate(
    ir_text: Any,
    kernel: str | None = None,
    *,
    grid: Any,
    block: Any,
    args: Sequence[Any],
    target: str | Target | None = None,
    dynamic_lds_bytes: int = 0,
    wave_size: int | None = None,
    checks: str = "default",
    max_steps: int = 2_000_000,
    source_name: str = "<llvm-ir>",
    progress: Callable[[int, int], None] | None = None,
    profile: bool = False,
    printf_to: TextIO | None = None,
    resources: Any = None,
    engine: str = "auto",
    threads: int | None = None,
) -> SimReport:
    """Runs a kernel over NumPy arrays, from its LLVM IR text, with all default checks.

    Arrays stand for device buffers: the kernel may touch exactly their bytes, and they change only if the whole run
    succeeds.  Arrays that overlap in memory overlap for the kernel too.

    Args:
        ir_text: A textual LLVM module, or an artifact of ``flyllvm.compile``, which has one in ``llvm_ir``.
        kernel: Name of the kernel; may be left out where the module has one.
        grid: Workgroups per axis.
        block: Work items per axis.
        args: One per parameter: a contiguous array or ``None`` for a pointer, a number for a scalar.
        target: Target id; by default that of the artifact or the module (``target-cpu``, the triple), else gfx942.
        dynamic_lds_bytes: Bytes of LDS behind ``external addrspace(3) global [0 x i8]``.
        wave_size: Lanes in a wave where the chip has both modes.
        checks: ``none`` (bounds and barriers only), ``default``, or ``all`` (global races, overflow, warnings too).
        max_steps: Basic blocks that a chunk of workgroups may run before it counts as endless.
        source_name: File name for locations without debug information.
        profile: Count memory segments and LDS bank conflicts per line (slower), and tell the occupancy.
        progress: Called with the number of workgroups done and of all, after each chunk.
        printf_to: Where the lines of a kernel that prints go; by default ``sys.stdout``.  They are written while it
            runs, after each chunk of workgroups and where a fault is found.  Such a kernel's trailing argument is made
            here if it is left out.
        resources: The ``KernelInfo`` of the code object, for the report's occupancy; by default, with ``profile``, that
            of the artifact.
        engine: ``numpy`` runs everything; ``jit`` runs most kernels as host code, without checkers; ``auto`` takes
            the second one where nothing needs the first and its compile time pays.
        threads: Workgroups that the second engine may run at the same time; by default ``FLYLLVM_SIM_THREADS``, or 1.

    Raises:
        ParseError: The text is malformed.
        LaunchError: Grid, block or arguments do not fit the kernel.
        SimError: The kernel is faulty, or uses something that the simulator does not know.
    """
    setup = prepare(
        ir_text, kernel, grid=grid, block=block, args=args, target=target, dynamic_lds_bytes=dynamic_lds_bytes,
        wave_size=wave_size, checks=checks, max_steps=max_steps, source_name=source_name, profile=profile,
    )  # fmt: skip
    launch = setup.launch
    total = launch.grid[0] * launch.grid[1] * launch.grid[2]
    step = chunk_groups(launch)
    choice = Choice(engine, setup, checks, profile, threads)
    for first in range(0, total, step):
        if choice.run(first, total, progress):
            setup.write_lines(printf_to, last=True)
            break
        machine = Machine(launch.program, launch, first, min(step, total - first))
        setup.bind(machine)
        try:
            machine.run()
        except SimError:
            setup.write_lines(printf_to)
            raise
        setup.report.divergences += machine.divergences
        setup.write_lines(printf_to, last=first + step >= total)
        if progress is not None:
            progress(min(first + step, total), total)
    choice.close()
    report = setup.finish()
    if resources is None and profile and hasattr(ir_text, "code_object"):
        resources = ir_text.code_object.kernels[report.kernel]
    if resources is not None:
        report.add_resources(resources, launch.program.target)
    return report


class Setup:
    """A launch with its argument values, before or while it runs.

    Attributes:
        launch: What all chunks share.
        values: Value of each parameter.
        report: What is known so far.
        finished: The results are in the caller's arrays.
        printed: Number of the argument that the kernel prints through, and its formats; ``None`` where it does not, or
            where the caller reads the buffer.
        printed_to: Byte of its buffer behind the records that are written out.
    """

    def __init__(self, launch: Launch, values: list[Any], report: SimReport) -> None:
        self.launch, self.values, self.report = launch, values, report
        self.start = time.perf_counter()
        self.finished = False
        self.printed: tuple[int, list[str]] | None = None
        self.printed_to = HEADER_BYTES

    def write_lines(self, to: TextIO | None = None, last: bool = True) -> None:
        """Prints what the kernel printed since it was asked before; ``last`` where nothing comes any more."""
        if self.printed is not None:
            index, formats = self.printed
            buffer = memoryview(self.launch.buffers.bytes_of(index))
            self.printed_to = write_lines(buffer, formats, to, self.printed_to, last)

    def bind(self, machine: Machine) -> None:
        """Puts the arguments into a machine's registers."""
        for slot, value in zip(self.launch.program.param_slots, self.values, strict=True):
            machine.regs[slot] = value

    def finish(self) -> SimReport:
        """Writes the results into the caller's arrays and completes the report."""
        self.launch.buffers.copy_back()
        _fill(self.report, self.launch)
        if self.launch.program.checks.global_races:
            self.report.warnings += self.launch.buffers.broken_noalias(self.launch.program.kernel)
        races, addresses = self.launch.races, self.launch.buffers.address_of
        if races is not None:
            self.report.writers = lambda index, byte: races.writer(addresses[index] + byte)
        self.report.seconds = time.perf_counter() - self.start
        self.finished = True
        return self.report


def prepare(
    ir_text: Any,
    kernel: str | None,
    *,
    grid: Any,
    block: Any,
    args: Sequence[Any],
    target: str | Target | None = None,
    dynamic_lds_bytes: int = 0,
    wave_size: int | None = None,
    checks: str = "default",
    max_steps: int = 2_000_000,
    source_name: str = "<llvm-ir>",
    profile: bool = False,
    fusing: bool = True,
) -> Setup:
    """Compiles the kernel and checks the launch; the arguments are those of `simulate`.

    ``fusing=False`` keeps every instruction a step of its own.

    Raises:
        ParseError, LaunchError, SimError: As `simulate` does.
    """
    start = time.perf_counter()
    if target is None:
        target = getattr(ir_text, "target", None)
    ir_text = inputs.module_text(ir_text)
    dims, items = inputs.dims("grid", grid), inputs.dims("block", block)
    dynamic_lds_bytes = inputs.number("dynamic_lds_bytes", dynamic_lds_bytes, 0)
    max_steps = inputs.number("max_steps", max_steps, 1)
    wave_size = None if wave_size is None else inputs.number("wave_size", wave_size, 1)
    args = inputs.sequence(args)
    if target is not None and not isinstance(target, str):
        target = Target.parse(target)
    level(checks)
    program = compiled(ir_text, inputs.name(kernel), target, str(source_name), checks, fusing, wave_size)
    chip = program.target
    inputs.check_block(program, items, chip)
    inputs.check_promised_sizes(program, dims, items)
    args, formats = _with_printf_buffer(program, ir_text, args)
    arguments.check_count(program.kernel, args)
    buffers = arguments.Buffers(program.kernel, args, program.constants, program.addresses)
    launch = Launch(program, dims, items, chip.wave_size, dynamic_lds_bytes, max_steps, buffers)
    if profile:
        launch.profile = Profile(chip.chip.lds_banks)
    values = launch.by_reference([arguments.value_of(program.kernel, i, a, buffers) for i, a in enumerate(args)])
    setup = Setup(launch, values, SimReport(program.kernel.name, str(chip), dims, items))
    setup.start = start
    setup.report.wave_size = chip.wave_size
    if formats is not None:
        setup.printed = len(args) - 1, formats
    return setup


def _with_printf_buffer(program: Program, ir_text: str, args: Sequence[Any]) -> tuple[Sequence[Any], list[str] | None]:
    """The arguments, with a buffer to print through and the formats where the kernel wants one and none is given."""
    params = program.kernel.params
    if not params or params[-1].name != PARAMETER or len(args) != len(params) - 1:
        return args, None
    return [*args, np.frombuffer(new_buffer(), np.uint8)], formats_in(ir_text)


def chunk_groups(launch: Launch) -> int:
    """Workgroups that run at once."""
    lanes = launch.waves * launch.wave_size
    groups = max(1, _CHUNK_LANES // lanes)
    program = launch.program
    copy = program.lds_layout(launch.dynamic_lds_bytes)[1]
    if copy:
        shadowed = copy + copy * 16 // program.lds_granule + (8 * copy if program.origins is not None else 0)
        groups = min(groups, max(1, _CHUNK_LDS_BYTES // shadowed))
    if program.frame_bytes:
        followed = program.origins is not None and program.origins.through_stack
        groups = min(groups, max(1, (64 << 20) // ((10 if followed else 2) * program.frame_bytes * lanes)))
    whole = cluster_groups(launch.grid, program.cluster)  # workgroups that wait for each other run at once
    return max(whole, groups // whole * whole)


def _fill(report: SimReport, launch: Launch) -> None:
    program = launch.program
    report.lds_bytes = program.lds.static_bytes + launch.dynamic_lds_bytes
    for places, (_, lanes, waves) in zip(program.places(), launch.counts, strict=True):
        for place in places if waves else ():
            report.lane_instructions += lanes * place.instructions
            report.matrix_flops += waves * place.matrix_flops
            for kind, count in place.kinds.items():
                report.instructions[kind] = report.instructions.get(kind, 0) + waves * count
    report.warnings = list(launch.warnings)
    report.lines = rows_by_line(launch, launch.profile)
    if launch.profile is not None:
        report.profiled = True
        for inst, words in launch.profile.bank_words.items():
            report.banks[f"{program.where(inst)}: {program.text_of(inst)}"] = [int(w) for w in words]
    for inst, lanes in launch.clipped.items():
        where = program.where(inst)
        report.clipped[where] = report.clipped.get(where, 0) + lanes
