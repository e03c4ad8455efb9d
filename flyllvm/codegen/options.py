"""Options of code generation."""

from __future__ import annotations

from ..errors import CodegenError

CODE_OBJECT_VERSIONS = (400, 500, 600)
PASSES = ("none", "O1", "O2", "O3")
_AGPR = ("auto", "never", "allow")
_DENORMALS = ("ieee", "flush_f32")


class Options:
    """How fly IR becomes object code.

    Args:
        opt_level: LLVM code generation level, 0 to 3.  1 is as good as 3 on IR emitted here, and faster.
        passes: LLVM's IR pipeline before code generation: ``none``, ``O1``, ``O2``, ``O3``; ``auto`` runs O1 where a
            tile is large, and tries the other way where registers spill.
        debug: Whether to emit line tables, so that a disassembly shows the author's lines.
        cov: Code object version times 100: 400, 500 or 600.
        fast_math: Fast-math flags put on every float instruction (``contract``, ``nnan``, ...); none by default, so
            results are IEEE's.  An operation's own ``fastmath`` attribute comes on top.
        agpr: Accumulation registers: ``auto`` and ``never`` tell LLVM that no assembly names them; it then uses them
            where the vector registers run out, and only there.  ``allow`` leaves that out: results of matrix
            instructions go there first, which costs moves in the hot loop.
        denormals: ``ieee`` keeps denormals; ``flush_f32`` flushes those of f32.
        source_prefix: Prefix cut from source paths in line tables; a path without it is cut to its file name.
        materialise_state: Whether every atom state is built as an LLVM struct where it is made, not only where it
            crosses a branch or a loop.
        preload_kernargs: Leading kernel arguments to preload into scalar registers, 0 to 16 (gfx90a, gfx942, gfx950).

    Raises:
        CodegenError: A value outside its legal set.
    """

    __slots__ = (
        "agpr", "cov", "debug", "denormals", "fast_math", "materialise_state", "opt_level", "passes",
        "preload_kernargs", "source_prefix",
    )  # fmt: skip

    def __init__(
        self,
        *,
        opt_level: int = 1,
        passes: str = "auto",
        debug: bool = True,
        cov: int = 500,
        fast_math: tuple[str, ...] = (),
        agpr: str = "auto",
        denormals: str = "ieee",
        source_prefix: str | None = None,
        materialise_state: bool = False,
        preload_kernargs: int = 0,
    ) -> None:
        from ..ir.ops_arith import FASTMATH

        for name, value, legal in (
            ("opt_level", opt_level, (0, 1, 2, 3)),
            ("passes", passes, ("auto", *PASSES)),
            ("cov", cov, CODE_OBJECT_VERSIONS),
            ("agpr", agpr, _AGPR),
            ("denormals", denormals, _DENORMALS),
        ):
            if value not in legal:
                raise CodegenError(f"option {name} = {value!r}", fix=f"use one of: {', '.join(map(str, legal))}")
        if not isinstance(preload_kernargs, int) or not 0 <= preload_kernargs <= 16:
            raise CodegenError(
                f"option preload_kernargs = {preload_kernargs!r}", fix="use 0 to 16: that many scalar registers exist"
            )
        for flag in fast_math:
            if flag not in FASTMATH:
                raise CodegenError(f"option fast_math holds {flag!r}", fix=f"use: {', '.join(FASTMATH)}")
        self.opt_level = opt_level
        self.passes = passes
        self.debug = debug
        self.cov = cov
        self.fast_math = tuple(fast_math)
        self.agpr = agpr
        self.denormals = denormals
        self.source_prefix = source_prefix
        self.materialise_state = materialise_state
        self.preload_kernargs = preload_kernargs
