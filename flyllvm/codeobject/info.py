"""The result of `inspect`: what a file holds, as data, JSON and a table."""

from __future__ import annotations

from .elf import ET_REL, SHF_ALLOC, SHT_NULL, ElfFile
from .kernel import KernelInfo
from .target_id import TargetId

# Column title -> attribute of KernelInfo.
_COLUMNS = {
    "kernel": "name", "wave": "wave_size", "VGPR": "vgpr_count", "AGPR": "agpr_count", "SGPR": "sgpr_count",
    "VGPR spill": "vgpr_spill_count", "SGPR spill": "sgpr_spill_count", "LDS B": "lds_bytes",
    "scratch B": "scratch_bytes", "kernarg B": "kernarg_bytes", "max workgroup": "max_workgroup_size",
    "code B": "code_bytes",
}  # fmt: skip


class CodeObjectInfo:
    """What an object file or code object says about itself.

    Attributes:
        linked: True for a code object, false for an object file that is still to be linked.
        target: Processor and features.
        code_object_version: 4, 5 or 6.
        kernels: Name → kernel.
        metadata: The metadata note as plain data.
        exported: Names that a loader can look up, sorted.
        undefined: Names that are not defined in the file, sorted.
        sections: ``(name, size in bytes)`` of sections that are loaded.
        size_bytes: Size of the file in bytes.
    """

    __slots__ = (
        "code_object_version", "exported", "kernels", "linked", "metadata", "sections", "size_bytes", "target",
        "undefined",
    )  # fmt: skip

    def __init__(
        self,
        elf: ElfFile,
        target: TargetId,
        kernels: dict[str, KernelInfo],
        metadata: dict[str, object],
        *,
        exported: list[str],
        undefined: list[str],
    ) -> None:
        self.linked = elf.type != ET_REL
        self.target = target
        self.code_object_version = elf.code_object_version
        self.kernels = kernels
        self.metadata = metadata
        self.exported = exported
        self.undefined = undefined
        self.sections = [(s.name, s.size) for s in elf.sections if s.type != SHT_NULL and s.flags & SHF_ALLOC]
        self.size_bytes = len(elf.data)

    def to_dict(self) -> dict[str, object]:
        """All of it as plain data."""
        return {
            "file": "code object" if self.linked else "object file",
            "target": str(self.target),
            "code_object_version": self.code_object_version,
            "size_bytes": self.size_bytes,
            "kernels": [k.to_dict() for k in self.kernels.values()],
            "sections": [{"name": name, "size_bytes": size} for name, size in self.sections],
            "exported": self.exported,
            "undefined": self.undefined,
            "metadata": self.metadata,
        }

    def to_json(self) -> str:
        """All of it as JSON text."""
        from json import dumps

        # Metadata may hold bytes, which JSON has not.
        return dumps(self.to_dict(), indent=2, default=lambda value: value.hex())

    def render(self) -> str:
        """A table for people."""
        kind = "code object" if self.linked else "object file (not linked yet)"
        lines = [f"{kind} for {self.target}, code object version {self.code_object_version}, {self.size_bytes} bytes"]
        if self.kernels:
            cells = [
                list(_COLUMNS),
                *([_cell(getattr(k, a)) for a in _COLUMNS.values()] for k in self.kernels.values()),
            ]
            lines += ["", *_table(cells)]
        else:
            lines.append("no kernels")
        for kernel in self.kernels.values():
            lines += ["", *_signature(kernel)]
        if self.undefined:
            lines += ["", f"undefined: {', '.join(self.undefined)}"]
        return "\n".join(lines)


def _cell(value: object) -> str:
    return "-" if value is None else str(value)


def _table(rows: list[list[str]], numbers_from: int = 1) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            c.rjust(w) if i >= numbers_from else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def _signature(kernel: KernelInfo) -> list[str]:
    if not kernel.args:
        return [f"{kernel.name}: no arguments"]
    rows = [["offset", "size", "argument", "kind", "space", "access"]]
    for a in kernel.args:
        rows.append([str(a.offset), str(a.size), a.name, a.kind, a.address_space, a.access])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [f"{kernel.name}: arguments (offset and size in bytes)"]
    for row in rows:
        cells = [c.rjust(w) if i < 2 else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
        lines.append(("  " + "  ".join(cells)).rstrip())
    if kernel.hidden_args:
        lines.append(f"  and {len(kernel.hidden_args)} hidden arguments, filled by the runtime")
    if kernel.reqd_workgroup_size:
        lines.append(f"  the workgroup must be {kernel.reqd_workgroup_size}")
    return lines
