"""Line tables: a disassembly shows the author's Python lines, helpers included (``inlinedAt``)."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..ir.core import Kernel
    from ..ir.location import Frame, Location
    from .module import ModuleBuilder


def short_path(path: str, prefix: str | None) -> str:
    """A source path that is the same on every machine: without the prefix, or the file name alone."""
    if prefix is not None:
        head = prefix if prefix.endswith(os.sep) else prefix + os.sep
        if path.startswith(head):
            return path[len(head) :]
    return os.path.basename(path)


class DebugInfo:
    """Debug metadata of one module.

    Only line tables are emitted: they cost LLVM a few milliseconds, variables would cost more and name values that
    optimisation has moved.
    """

    __slots__ = ("files", "locations", "module", "prefix", "subprograms", "type", "unit")

    def __init__(self, module: ModuleBuilder, first_file: str, prefix: str | None) -> None:
        self.module = module
        self.prefix = prefix
        self.files: dict[str, int] = {}
        self.unit = module.node(
            f"distinct !DICompileUnit(language: DW_LANG_Python, file: !{self._file(first_file)}, "
            'producer: "flyllvm", isOptimized: true, runtimeVersion: 0, emissionKind: LineTablesOnly)'
        )
        self.type = module.node("!DISubroutineType(types: !{})")
        self.subprograms: dict[tuple[str, str, int, int], int] = {}
        self.locations: dict[object, int] = {}

    def _file(self, path: str) -> int:
        found = self.files.get(path)
        if found is None:
            name = escape(short_path(path, self.prefix))
            found = self.files[path] = self.module.node(f'!DIFile(filename: "{name}", directory: "")')
        return found

    def _subprogram(self, frame: Frame, kernel: int) -> int:
        """The subprogram of a helper; ``kernel`` keeps the helpers of two kernels apart."""
        key = (frame.file, frame.func, frame.func_line, kernel)
        found = self.subprograms.get(key)
        if found is None:
            found = self.subprograms[key] = self._new_subprogram(frame.func, frame.file, frame.func_line or frame.line)
        return found

    def _new_subprogram(self, name: str, path: str, line: int) -> int:
        file = self._file(path)
        return self.module.node(
            f'distinct !DISubprogram(name: "{escape(name)}", scope: !{file}, file: !{file}, line: {line}, '
            f"type: !{self.type}, scopeLine: {line}, spFlags: DISPFlagDefinition | DISPFlagOptimized, "
            f"unit: !{self.unit})"
        )

    def kernel(self, kernel: Kernel) -> int:
        """The subprogram of a kernel."""
        frames = kernel.loc.frames
        path, line = (frames[0].file, frames[0].line) if frames else (kernel.name, 1)
        return self._new_subprogram(kernel.name, path, line)

    def location(self, loc: Location, subprogram: int) -> str:
        """What ends an instruction at a location, in a kernel's subprogram."""
        frames = loc.frames
        if not frames:
            return ""
        key = (loc, subprogram)
        found = self.locations.get(key)
        if found is None:
            found = self.locations[key] = self._chain(frames, subprogram)
        return f", !dbg !{found}"

    def _chain(self, frames: tuple[Frame, ...], subprogram: int) -> int:
        """The location of the innermost frame; the outermost one belongs to the kernel itself."""
        outer = frames[-1]
        file = self._file(outer.file)
        scope = self.module.node(f"!DILexicalBlockFile(scope: !{subprogram}, file: !{file}, discriminator: 0)")
        made = self.module.node(f"!DILocation(line: {outer.line}, column: {outer.col}, scope: !{scope})")
        for frame in reversed(frames[:-1]):
            inner = self._subprogram(frame, subprogram)
            made = self.module.node(
                f"!DILocation(line: {frame.line}, column: {frame.col}, scope: !{inner}, inlinedAt: !{made})"
            )
        return made


def escape(text: str) -> str:
    """Text inside quotes in LLVM IR."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return text
    return "".join(
        c if 32 <= ord(c) < 127 and c not in '"\\' else "".join(f"\\{b:02X}" for b in c.encode()) for c in text
    )
