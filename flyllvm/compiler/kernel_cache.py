"""Compiled kernels by all that their code depends on.

Two levels, both in memory, each with one on disk behind it (`cache`).  The first is looked up before tracing: argument
specifications, compile-time values, target, hints, and the world the kernel reads (`watch`).  The second, after
tracing, is the LLVM IR text with target and options: what reached the emitted code is the key, so nothing stale can
come out of it.
"""

from __future__ import annotations

from .artifact import Artifact
from .binding import launch_types
from .cache import Recipe
from .compile import build
from .freeze import Unfreezable, freeze
from .hints import split_hints
from .image import Image, image_stage
from .watch import Watch, has_world

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ..codeobject import CodeObject
    from ..expr.specs import Spec
    from ..ir.core import Kernel
    from ..target import Target
    from .kernel import KernelFunction

_MAX_ENTRIES = 512
_MAX_WORLDS = 8
_STATIC = " addrspace(3) global ["
_DYNAMIC = "addrspace(3) global [0 x i8]"

#: Kernel and key -> (world, compiled), the last used last.
_COMPILED: dict[Any, list[tuple[Watch, Compiled]]] = {}
#: LLVM IR text with target and options -> object and code object.
_OBJECTS: dict[Any, Image] = {}


class Compiled:
    """A kernel ready to launch.

    Attributes:
        artifact: The compilation.
        types: Element type of each entry of the flat argument list, ``None`` for pointers.
        lds_bytes: LDS the kernel declares.
        dynamic_lds_bytes: LDS that the kernel's own allocations want at launch, or ``None`` when it does not say.
        disk: Whether the disk cache may answer, and keeps the result.
        formats: What it prints; empty where it does not.
        uses_dynamic_lds: Whether it reads or writes the LDS given at launch.
    """

    __slots__ = ("artifact", "disk", "dynamic_lds_bytes", "formats", "lds_bytes", "types", "uses_dynamic_lds")

    def __init__(self, artifact: Artifact, disk: bool = True) -> None:
        self.artifact, self.disk = artifact, disk
        self.types = launch_types(artifact.specs)
        self.formats = artifact.printf_formats
        self.lds_bytes = static_lds_bytes(artifact.llvm_ir)
        self.uses_dynamic_lds = _DYNAMIC in artifact.llvm_ir
        self.dynamic_lds_bytes = artifact.dynamic_lds_bytes

    def code_object(self) -> CodeObject:
        """The code object; compiled by LLVM at the first use."""
        artifact = self.artifact
        if artifact._code_object is None:
            options = tuple(repr(getattr(artifact.options, n)) for n in artifact.options.__slots__)
            key = (artifact.llvm_ir, str(artifact.target), artifact.target.wave_size, options)
            found = _OBJECTS.get(key)
            if found is None:
                found = image_stage(
                    artifact.llvm_ir, artifact.target, artifact.options, artifact.timings, cache=self.disk
                )
                _trim(_OBJECTS)
                _OBJECTS[key] = found
            artifact.take(found)
        return artifact.code_object


def static_lds_bytes(llvm_ir: str) -> int:
    """LDS that a kernel has of its own, in bytes, as LLVM lays it out: the most aligned first.

    Where LDS is given at launch, too, the padding in front of that counts.
    """
    parts, given, total = [], 1, 0
    for line in llvm_ir.splitlines():
        if line.startswith("@") and _STATIC in line:
            _, _, tail = line.partition(_STATIC)
            align = int(tail.rpartition("align ")[2])
            if " internal " in line:
                parts.append((align, int(tail.split()[0])))
            else:
                given = max(given, align)
    for align, size in sorted(parts, reverse=True):
        total = -(-total // align) * align + size
    return -(-total // given) * given


def compiled(
    kernel: KernelFunction,
    specs: Sequence[Spec],
    constants: Mapping[str, Any],
    target: Target,
    hints: Mapping[str, Any],
    disk: bool = True,
) -> Compiled:
    """A kernel for these arguments, compiled up to LLVM IR; from the cache when it is the same.

    Raises:
        FlyError: With the author's line.
    """
    try:
        key: Any = (
            # By code and closure, so that a kernel made anew by its factory is the same one.
            kernel.name,
            freeze(kernel.fn),
            tuple(str(s) for s in specs),
            freeze(sorted(constants.items(), key=lambda kv: kv[0])),
            str(target),
            target.wave_size,
            freeze(sorted(hints.items())),
            disk,
        )
    except (Unfreezable, RecursionError):
        return _build(kernel, specs, constants, target, hints, disk)
    for world, found in _COMPILED.get(key, ()):
        if world.valid():
            return found
    # The world is looked at before tracing: a change while tracing makes the entry invalid, not stale.
    world = Watch(kernel.fn, *filter(has_world, constants.values()))
    made = _build(kernel, specs, constants, target, hints, disk)
    if world.why_not is None:
        _trim(_COMPILED)
        worlds = _COMPILED.setdefault(key, [])
        worlds.append((world, made))
        del worlds[:-_MAX_WORLDS]
        _KEPT[id(kernel.fn.__globals__)] = kernel.fn.__globals__
    return made


#: Global namespaces that keys name by their id, so that no other object takes it.
_KEPT: dict[int, dict[str, Any]] = {}


def _build(
    kernel: KernelFunction,
    specs: Sequence[Spec],
    constants: Mapping[str, Any],
    target: Target,
    hints: Mapping[str, Any],
    disk: bool,
) -> Compiled:
    own, settings = split_hints(hints)

    def source() -> Kernel:
        return kernel.trace(specs, target, constants, **own)

    names = [n for n in kernel.parameters() if n not in constants]
    recipe = Recipe(kernel, specs, constants, own) if disk else None
    made = build(source, target, settings, "llvm", specs=specs, parameters=names, recipe=recipe, cache=disk)
    return Compiled(made, disk)


def _trim(cache: dict[Any, Any]) -> None:
    """Keeps a cache bounded: the older half goes."""
    if len(cache) >= _MAX_ENTRIES:
        for key in list(cache)[: _MAX_ENTRIES // 2]:
            cache.pop(key, None)


def clear_caches() -> None:
    """Forgets every compiled kernel."""
    _COMPILED.clear()
    _OBJECTS.clear()
    _KEPT.clear()
