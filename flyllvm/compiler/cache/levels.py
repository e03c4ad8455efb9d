"""The two levels of the disk cache.

First level, looked up before tracing: what a kernel is made from → its LLVM IR.  Second level: LLVM IR, target, options
and llvmlite → object and linked image.  The device, its visibility and the stream are in neither.
"""

from __future__ import annotations

from _blake2 import blake2b

from . import identity
from .store import open_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ...codegen.options import Options
    from ...target import Target
    from ..artifact import Artifact
    from ..kernel import KernelFunction
    from .world import World

#: Options that change what LLVM does with a text; the others have done their work when the text is there.
_LLVM_OPTIONS = ("cov", "opt_level", "passes")


class Recipe:
    """What a kernel is compiled from.

    Args:
        kernel: The kernel.
        specs: Specifications of its run-time arguments.
        constants: Compile-time values by parameter name.
        hints: Hints of the kernel.

    Attributes:
        why_not: Why the first level does not know this kernel, or ``None``.
    """

    __slots__ = ("_world", "constants", "hints", "kernel", "specs", "why_not")

    def __init__(
        self, kernel: KernelFunction, specs: Sequence[Any], constants: Mapping[str, Any], hints: Mapping[str, Any]
    ) -> None:
        self.kernel = kernel
        self.specs = specs
        self.constants = constants
        self.hints = hints
        self.why_not: str | None = None
        self._world: World | None = None

    def world(self, options: Options) -> World | None:
        """The sum over all that tracing reads, at this moment; ``None`` where something has no value."""
        from .world import Unknown, World

        try:
            return World(
                self.kernel.fn,
                self.kernel.name,
                [(str(spec), spec) for spec in self.specs],
                dict(sorted(self.constants.items())),
                dict(sorted(self.hints.items())),
                whole_paths=options.source_prefix is not None,
            )
        except Unknown as e:
            self.why_not = f"{self.kernel.name} reads {e}"
        except RecursionError:
            self.why_not = f"{self.kernel.name} reads values that nest too deeply"
        return None

    def key(self, target: Target, options: Options, ssa: bool) -> str | None:
        """The key of the first level; ``None`` where the kernel has none."""
        world = self._world = self.world(options)
        if world is None:
            return None
        settings = [f"{name}={getattr(options, name)!r}" for name in options.__slots__]
        return _sum("source", identity.own_files(), identity.python(), world.sum, *_target(target), str(ssa), *settings)

    def unchanged(self, options: Options) -> bool:
        """Whether what was read is still what the key was made from, so that the traced code belongs to the key."""
        now = self.world(options)
        return now is not None and self._world is not None and now.sum == self._world.sum and _traced_from(now.files)


def _traced_from(files: Mapping[str, bytes]) -> bool:
    """Whether the texts that were rewritten are those of the sum: lines that were once read are kept."""
    from ..rewrite_source import lines_of

    for path, data in files.items():
        lines = lines_of(path)
        try:
            text = data.decode().removeprefix("\ufeff").replace("\r\n", "\n")
        except UnicodeDecodeError:
            return False
        if lines and "".join(lines).rstrip("\n") != text.rstrip("\n"):
            return False
    return True


def find_source(recipe: Recipe, artifact: Artifact) -> str | None:
    """Fills an artifact with what the same kernel gave before.

    Returns:
        The key to keep it under where it is not known; ``None`` where it is, or cannot be kept.
    """
    cache = open_cache()
    key = recipe.key(artifact.target, artifact.options, artifact.ssa) if cache is not None else None
    if cache is None or key is None:
        return None
    found = cache.get("source", key)
    if found is None:
        return key
    facts, parts = found
    artifact.name = facts["name"]
    block = facts["known_block_size"]
    artifact.known_block_size = None if block is None else (block[0], block[1], block[2])
    artifact.dynamic_lds_bytes = facts["dynamic_lds_bytes"]
    artifact.llvm_ir = parts["llvm_ir"]
    artifact.from_cache = "source"
    return None


def keep_source(key: str, recipe: Recipe, artifact: Artifact) -> None:
    """Keeps what a kernel became, when nothing that it reads has changed meanwhile."""
    cache = open_cache()
    if cache is None or not recipe.unchanged(artifact.options):
        return
    facts = {
        "name": artifact.name,
        "target": str(artifact.target),
        "known_block_size": artifact.known_block_size,
        "dynamic_lds_bytes": artifact.dynamic_lds_bytes,
    }
    cache.put("source", key, facts, {"llvm_ir": artifact.llvm_ir})


def image_key(llvm_ir: str, target: Target, options: Options) -> str | None:
    """The key of the second level; ``None`` without a cache, or where the worker's llvmlite is not known."""
    llvm = identity.llvm() if open_cache() is not None else None
    if llvm is None:
        return None
    settings = [f"{name}={getattr(options, name)!r}" for name in _LLVM_OPTIONS]
    return _sum("image", identity.back_end(), llvm, llvm_ir, *_target(target), *settings)


def find_image(key: str | None) -> tuple[dict[str, Any], bytes, bytes] | None:
    """(facts, object, linked image) of a module that was compiled before."""
    cache = open_cache()
    found = cache.get("image", key) if cache is not None and key is not None else None
    return None if found is None else (found[0], found[1]["object"], found[1]["image"])


def keep_image(key: str | None, facts: Mapping[str, Any], object_bytes: bytes, image: bytes) -> None:
    """Keeps what LLVM and the linker made of a module."""
    cache = open_cache()
    if cache is not None and key is not None:
        cache.put("image", key, facts, {"object": object_bytes, "image": image})


def _target(target: Target) -> tuple[str, ...]:
    return str(target), target.processor, str(target.wave_size), target.llvm_features


def _sum(*words: str) -> str:
    made = blake2b(digest_size=20)
    for word in words:
        data = word.encode("utf-8", "surrogatepass")
        made.update(b"%d:" % len(data))
        made.update(data)
    return made.hexdigest()
