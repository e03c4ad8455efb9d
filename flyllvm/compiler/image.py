"""LLVM IR to a linked image: from the disk cache, or by the pipeline of LLVM's that suits the kernel."""

from __future__ import annotations

from ..codegen.levers import choose_passes
from .cache import find_image, image_key, keep_image
from .pipeline import Timings, link_stage, object_stage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..codegen.options import Options
    from ..codeobject import CodeObject
    from ..target import Target


class Image:
    """What LLVM and the linker made.

    Attributes:
        object_bytes: The relocatable object.
        code: The linked code object.
        passes: LLVM's IR pipeline that it was made with.
        why: Why that one.
    """

    __slots__ = ("code", "object_bytes", "passes", "why")

    def __init__(self, object_bytes: bytes, code: CodeObject, passes: str, why: str) -> None:
        self.object_bytes = object_bytes
        self.code = code
        self.passes = passes
        self.why = why

    @property
    def spills(self) -> int:
        """Registers that are spilled, in all kernels."""
        return sum(k.vgpr_spill_count + k.sgpr_spill_count for k in self.code.kernels.values())


def image_stage(
    llvm_ir: str, target: Target, options: Options, clock: Timings, *, cache: bool = True, **limits: Any
) -> Image:
    """LLVM IR text to an object file and a code object; from the disk cache where they are.

    With ``passes="auto"`` a kernel that spills registers is compiled the other way too, and the one that spills less is
    taken: a compile time that costs spills is none.

    Args:
        llvm_ir: Text of `lower`.
        target: The target.
        options: Code generation options.
        clock: Where to add the time of each stage.
        cache: Whether the disk cache is read and written.
        limits: ``timeout`` and ``memory_limit_bytes`` of the compile worker.
    """
    key = clock.run("cache", lambda: image_key(llvm_ir, target, options)) if cache else None
    found = clock.run("cache", lambda: find_image(key)) if cache else None
    if found is not None:
        made: Image = clock.run("read image", lambda: _from_cache(*found))
        clock.note(f"LLVM passes: {made.passes} ({made.why}); from the cache")
        return made
    passes, why = choose_passes(llvm_ir, options.passes)
    made = _make(llvm_ir, target, options, passes, why, clock, limits)
    if options.passes == "auto" and made.spills:
        other = "none" if passes != "none" else "O1"
        second = _make(llvm_ir, target, options, other, "", clock, limits)
        better, worse = (second, made) if second.spills < made.spills else (made, second)
        better.why = f"it spills {better.spills} registers, {worse.passes} spills {worse.spills}"
        made = better
    clock.note(f"LLVM passes: {made.passes} ({made.why})")
    if cache:
        facts = {"name": ", ".join(made.code.kernels), "target": str(target), "passes": made.passes, "why": made.why}
        clock.run("cache", lambda: keep_image(key, facts, made.object_bytes, made.code.image))
    return made


def _make(
    llvm_ir: str, target: Target, options: Options, passes: str, why: str, clock: Timings, limits: dict[str, Any]
) -> Image:
    made = object_stage(llvm_ir, target, options, clock, passes=passes, **limits).object
    return Image(made, clock.run("link", lambda: link_stage(made)), passes, why)


def _from_cache(facts: dict[str, Any], object_bytes: bytes, image: bytes) -> Image:
    from ..codeobject import CodeObject

    # The linker's own image, under a checksum: it is read when somebody asks what it holds.
    return Image(object_bytes, CodeObject(image), facts["passes"], facts["why"])
