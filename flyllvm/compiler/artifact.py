"""What a compilation gives: the code object, the text of every stage, and a way to run it."""

from __future__ import annotations

from ..errors import CodegenError
from .binding import bind, launch_types
from .pipeline import Timings, lower, module_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TextIO

    from ..codegen.options import Options
    from ..codeobject import CodeObject
    from ..expr.specs import Spec
    from ..ir.core import Kernel, Module
    from ..target import Target
    from .image import Image


class Artifact:
    """A compiled kernel.

    Attributes:
        name: Symbol name of the kernel.
        target: Target it was compiled for.
        specs: Specifications of the arguments, in order.
        parameters: Their names.
        known_block_size: Work items per workgroup it was compiled for, or ``None``.
        dynamic_lds_bytes: LDS that the kernel's own allocations want at launch, or ``None`` when it does not say.
        llvm_ir: The LLVM IR text given to LLVM (and to the simulator).
        passes: LLVM's IR pipeline that the code object was made with; the option's word before.
        object_bytes: The relocatable object, ``None`` when compilation stopped before.
        from_cache: ``source`` where the disk cache knew the kernel before it was traced, else ``None``.
        timings: CPU time of each stage.
    """

    def __init__(
        self,
        *,
        source: Callable[[], Kernel | Module],
        name: str,
        target: Target,
        options: Options,
        specs: Sequence[Spec] = (),
        parameters: Sequence[str] = (),
        ssa: bool = True,
    ) -> None:
        self._source = source
        self.name = name
        self.target = target
        self.options = options
        self.specs = list(specs)
        self.parameters = list(parameters)
        self.ssa = ssa
        self.known_block_size: tuple[int, int, int] | None = None
        self.dynamic_lds_bytes: int | None = None
        self._launcher: Any = None
        self._printf_formats: list[str] | None = None
        self.timings = Timings()
        self.from_cache: str | None = None
        self.llvm_ir = ""
        self.object_bytes: bytes | None = None
        self.passes = options.passes
        self._code_object: CodeObject | None = None
        self._assembly: str | None = None

    def take(self, image: Image) -> None:
        """Makes an image this artifact's own."""
        self.object_bytes, self._code_object, self.passes = image.object_bytes, image.code, image.passes

    @property
    def code_object(self) -> CodeObject:
        """The linked code object.

        Raises:
            CodegenError: Compilation was stopped before linking.
        """
        if self._code_object is None:
            raise CodegenError(f"{self.name} was not compiled to a code object", fix="compile without stop_after")
        return self._code_object

    @property
    def printf_formats(self) -> list[str]:
        """What the kernel prints, as `flyllvm.printf` keeps it; a kernel that prints has a trailing argument for it."""
        if self._printf_formats is None:
            from ..printf import formats_in

            return formats_in(self.llvm_ir)
        return self._printf_formats

    @property
    def fly_ir(self) -> str:
        """Text at stage ``fly``; the kernel is traced again for it."""
        return self.stage_text("fly")

    @property
    def atoms_ir(self) -> str:
        """Text at stage ``atoms``; the kernel is traced again for it."""
        return self.stage_text("atoms")

    @property
    def ssa_ir(self) -> str:
        """Text at stage ``ssa``; the kernel is traced again for it."""
        return self.stage_text("ssa")

    def stage_text(self, stage: str) -> str:
        """Text of a fly IR stage: ``fly``, ``atoms`` or ``ssa``.

        Raises:
            CodegenError: A kernel is past that stage already.
        """
        from ..ir.printer import print_module
        from .pipeline import STAGES, atoms_stage, ssa_stage

        module = module_of(self._source())
        for kernel in module.kernels:
            at = kernel.attrs["stage"]
            if at in STAGES[STAGES.index(stage) + 1 :]:
                raise CodegenError(
                    f"{kernel.name} is at stage {at}: its text of stage {stage} cannot be made from that",
                    kernel.loc,
                    f"ask for stage {at} or a later one",
                )
        if stage in ("atoms", "ssa"):
            module = atoms_stage(module, self.target)
        if stage == "ssa":
            module = ssa_stage(module, self.target)
        return print_module(module)

    @property
    def assembly(self) -> str:
        """LLVM's assembly text; made on first use."""
        if self._assembly is None:
            self._assembly = str(self._llvm("asm").assembly)
        return self._assembly

    @property
    def optimised_ir(self) -> str:
        """The LLVM IR after LLVM's own IR passes; made on each use."""
        return str(self._llvm("opt").optimised_ir)

    def _llvm(self, want: str) -> Any:
        from ..codegen.client import compile_llvm

        o = self.options
        return compile_llvm(
            self.llvm_ir, self.target, opt_level=o.opt_level, passes=self.passes, cov=o.cov, want=(want,)
        )

    def build_text(self) -> None:
        """Runs the stages up to the LLVM IR text."""
        module = self.timings.run("fly", lambda: module_of(self._source()))
        if not module.kernels:
            raise CodegenError("a module without kernels", fix="add at least one kernel")
        kernel = module.kernels[0]
        self.name = kernel.name
        self.known_block_size = kernel.attrs.get("known_block_size")
        self.dynamic_lds_bytes = kernel.attrs.get("dynamic_lds_bytes")
        self.llvm_ir = lower(module, self.target, self.options, ssa=self.ssa, timings=self.timings)

    def simulate(
        self,
        *args: Any,
        grid: Any = None,
        block: Any = None,
        dynamic_lds_bytes: int | None = None,
        **options: Any,
    ) -> Any:
        """Runs the kernel's LLVM IR in the simulator; arrays are changed in place.

        Args:
            args: One array or number per argument.
            grid: Workgroups (x, y, z).
            block: Work items per workgroup; by default what the kernel was compiled for.
            dynamic_lds_bytes: LDS given at launch, in bytes; by default what the kernel's own allocations need.
            options: Passed to ``flyllvm.simulate``, such as ``printf_to``.

        Raises:
            LaunchError: Arguments or block size do not fit.
            SimError: The kernel has a fault.
        """
        from ..atoms.cost import matrix_cycles
        from ..runtime.simulated import simulate_launch

        report = simulate_launch(
            self.llvm_ir,
            self.name,
            _three(grid, "grid"),
            self.block_size(block),
            self._flat(args),
            self.target,
            self._dynamic_lds(dynamic_lds_bytes),
            **options,
        )
        report.matrix_cycles = matrix_cycles(report.instructions, self.target.processor)
        return report

    def __call__(
        self, *args: Any, grid: Any = None, block: Any = None, smem: int | None = None, stream: Any = None
    ) -> None:
        """Launches the kernel: device arrays on a GPU, host arrays in the simulator.

        Args:
            args: One per parameter that is no compile-time value.
            grid: Workgroups in x, y, z.
            block: Work items per workgroup; by default what the kernel was compiled for.
            smem: LDS given at launch, in bytes.
            stream: The stream; by default the device's default stream.

        Raises:
            LaunchError: An argument, a size or the device does not fit; with the line of the launch.
        """
        if self._launcher is None:
            from .launch_artifact import ArtifactLauncher

            self._launcher = ArtifactLauncher(self)
        self._launcher.launch(args, grid, block, smem, stream)

    def run(
        self,
        *args: Any,
        grid: Any = None,
        block: Any = None,
        dynamic_lds_bytes: int | None = None,
        printf_to: TextIO | None = None,
    ) -> str:
        """Runs the kernel on NumPy arrays: on a GPU that fits the target, else in the simulator.

        ``FLYLLVM_DEVICE`` (auto, hip, sim) decides.  Arrays are copied to the GPU and back.

        Args:
            args: One array or number per argument.
            grid: Workgroups (x, y, z).
            block: Work items per workgroup; by default what the kernel was compiled for.
            dynamic_lds_bytes: LDS given at launch, in bytes; by default what the kernel's own allocations need.
            printf_to: Where the lines of ``fx.printf`` go; by default ``sys.stdout``.

        Returns:
            Where it ran: the device's name, or ``simulator``.

        Raises:
            LaunchError: Arguments, sizes or the device do not fit.
            SimError: The simulator found a fault.
        """
        from ..runtime.choice import find_device

        device = find_device(self.target)
        if device is None:
            self.simulate(*args, grid=grid, block=block, dynamic_lds_bytes=dynamic_lds_bytes, printf_to=printf_to)
            return "simulator"
        from ..runtime import DeviceArray, load_module, synchronize

        device.use()
        flat = self._flat(args)
        arrays = [(i, x) for i, x in enumerate(flat) if len(getattr(x, "shape", ())) > 0]
        on_device = {i: DeviceArray.from_numpy(x) for i, x in arrays}
        function = load_module(self.code_object).function(self.name)
        shape = _three(grid, "grid"), self.block_size(block)
        given = [on_device.get(i, x) for i, x in enumerate(flat)]
        types = launch_types(self.specs) if self.specs else None
        lds, formats = self._dynamic_lds(dynamic_lds_bytes), self.printf_formats
        if formats:
            from ..runtime.printing import launch_printing

            launch_printing(function, *shape, given, formats, types=types, dynamic_lds_bytes=lds, printf_to=printf_to)
        else:
            function.launch(*shape, given, types=types, dynamic_lds_bytes=lds)
        synchronize()
        for i, x in arrays:
            x[...] = on_device[i].numpy()
        return device.name

    def _dynamic_lds(self, given: int | None) -> int:
        """The LDS of a launch, in bytes.

        Raises:
            LaunchError: It is less than what the kernel's own allocations need.
        """
        from ..errors import LaunchError

        needed = self.dynamic_lds_bytes or 0
        if given is not None and given < needed:
            raise LaunchError(
                f"{self.name} is launched with {given} bytes of LDS; its allocations need {needed}",
                fix=f"leave dynamic_lds_bytes out, or give at least {needed}",
            )
        return needed if given is None else given

    def _flat(self, args: Sequence[Any]) -> list[Any]:
        return bind(self.parameters, self.specs, args) if self.specs else list(args)

    def block_size(self, block: Any) -> tuple[int, int, int]:
        """The block size of a launch, checked against what the kernel was compiled for.

        Raises:
            LaunchError: None is given where none is known, or it differs.
        """
        from ..errors import LaunchError

        known = self.known_block_size
        if block is None:
            if known is None:
                raise LaunchError(f"launch of {self.name} without a block size", fix="pass block=(x, y, z)")
            return known
        full = _three(block, "block")
        if known is not None and full != tuple(known):
            raise LaunchError(f"{self.name} is launched with block {full}", fix=f"it is compiled for {tuple(known)}")
        return full


def _three(size: Any, what: str) -> tuple[int, int, int]:
    """One to three extents as three.

    Raises:
        LaunchError: They are no positive ints.
    """
    from operator import index

    from ..errors import LaunchError

    parts = tuple(size) if isinstance(size, (tuple, list)) else (size,)
    try:
        sizes = tuple(-1 if isinstance(n, bool) else index(n) for n in parts)
    except TypeError:
        sizes = ()
    if not 1 <= len(sizes) <= 3 or min(sizes) < 1:
        raise LaunchError(f"{what}={size!r}", fix="use one to three positive ints")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z
