"""Launches of a kernel that ``flyc.compile`` returned."""

from __future__ import annotations

from ..errors import FlyError, LaunchError
from .binding_call import Unkeyed, signature
from .binding_values import Fields, Number, for_spec, stream_handle
from .kernel_cache import Compiled
from .launch import Bound, author_line, block_size, check_grid, check_lds
from .place import Place, current_place
from .replay import Launch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .artifact import Artifact

_MAX_RECORDS = 1024


class ArtifactLauncher:
    """Launches of one artifact; a signature seen before is put into the stream at once."""

    __slots__ = ("_compiled", "_place", "_records", "artifact")

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact
        self._compiled = Compiled(artifact)
        self._place: Place | None = None
        self._records: dict[Any, Launch] = {}

    def launch(self, args: Sequence[Any], grid: Any, block: Any, smem: Any, stream: Any) -> None:
        """Launches with these arguments.

        Raises:
            LaunchError: They do not fit what was compiled.
        """
        try:
            shape = (grid, block, smem)
            part, addresses = signature(args)
            key: Any = (part, shape)
            found = self._records.get(key) if stream is None else None
        except (Unkeyed, TypeError):
            key, addresses, found = None, None, None
        if found is not None:
            found.run(args, addresses or ())
            return
        try:
            made = self._prepare(args, grid, block, smem, stream)
            made.run(args, [p.arg.address for p in made.pointers] if addresses is None else addresses)
        except FlyError as e:
            raise e if e.where is not None else e.at(author_line(3)) from None
        if key is not None and stream is None:
            if len(self._records) >= _MAX_RECORDS:
                self._records.clear()
            self._records[key] = made

    def _prepare(self, args: Sequence[Any], grid: Any, block: Any, smem: Any, stream: Any) -> Launch:
        artifact = self.artifact
        if self._place is None:
            self._place = current_place(artifact.target)
        place = self._place
        names, specs = artifact.parameters, artifact.specs
        if len(args) != len(specs):
            raise LaunchError(
                f"{len(args)} arguments for {', '.join(names) or 'none'}",
                fix=f"pass {len(specs)} arguments in this order",
            )
        bound = Bound()
        for i, (name, spec, value) in enumerate(zip(names, specs, args, strict=True)):
            arg = for_spec(name, value, spec)
            if not isinstance(arg, (Number, Fields)):
                arg.slot, arg.offset_bytes = i, 0
            bound.add(name, arg, place)
        size = block_size(artifact.name, block, artifact.known_block_size, place)
        full = check_grid(grid, size, place)
        lds = check_lds(self._compiled, smem, place)
        return Launch(self._compiled, place, full, size, lds, bound.flat, bound.pointers, stream_handle(stream), None)
