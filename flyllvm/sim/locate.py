"""Where an instruction stands in the author's source: ``!dbg`` chains, or the line of the ``.ll`` text."""

from __future__ import annotations

import re

from .ir import Inst, Module

_FIELD = re.compile(r'(\w+): (?:"([^"]*)"|(![0-9]+)|(-?[0-9]+))')


def _fields(text: str) -> dict[str, str]:
    return {m[1]: m[2] if m[2] is not None else (m[3] or m[4]) for m in _FIELD.finditer(text)}


class Locator:
    """Turns instructions into locations, with a cache."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.cache: dict[str, list[str]] = {}

    def chain(self, inst: Inst) -> list[str]:
        """Locations from the innermost frame outwards; the first one is where the instruction was written."""
        frames = self._frames(inst.dbg) or [f"{self.module.source_name}:{inst.line}"]
        for call in inst.inlined_from:
            frames = frames + (self._frames(call.dbg) or [f"{self.module.source_name}:{call.line}"])
        return frames

    def where(self, inst: Inst) -> str:
        """The location as one line: ``file:line (inlined at file:line ...)``."""
        first, *rest = self.chain(inst)
        return first + "".join(f", inlined at {frame}" for frame in rest)

    def _frames(self, node: str | None) -> list[str]:
        if node is None:
            return []
        if node not in self.cache:
            self.cache[node] = self._walk(node)
        return self.cache[node]

    def _walk(self, node: str | None) -> list[str]:
        frames: list[str] = []
        for _ in range(100):  # metadata may be cyclic when broken
            text = self.module.metadata.get(node or "", "")
            if "DILocation(" not in text:
                break
            fields = _fields(text)
            frames.append(f"{self._file(fields.get('scope'))}:{fields.get('line', '0')}")
            node = fields.get("inlinedAt")
            if node is None:
                break
        return frames

    def _file(self, scope: str | None) -> str:
        for _ in range(100):
            text = self.module.metadata.get(scope or "", "")
            fields = _fields(text)
            if "DIFile(" in text:
                return fields.get("filename", "?")
            scope = fields.get("file") or fields.get("scope")
            if scope is None:
                break
        return self.module.source_name
