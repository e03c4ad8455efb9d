"""What is known about one kernel of a code object: registers, memory, arguments, the descriptor.

Source: LLVM AMDGPUUsage, "Code Object V5 Metadata" and "Kernel Descriptor".
"""

from __future__ import annotations

import struct

from ..errors import LinkError

DESCRIPTOR_BYTES = 64
_DESCRIPTOR = struct.Struct("<IIIIq20xIIIHHI")
_POINTERS = frozenset({"global_buffer", "dynamic_shared_pointer"})


class KernelArg:
    """One argument of a kernel.

    Attributes:
        name: Name in the source, or ``arg0``, ``arg1``, ... where the object does not say.
        offset: Offset in the kernarg segment, in bytes.
        size: Size in bytes.
        kind: ``by_value``, ``global_buffer``, ``dynamic_shared_pointer``, ``hidden_block_count_x``, ...
        address_space: ``global``, ``constant``, ``local``, ``generic``; empty for values.
        access: ``read_only``, ``write_only``, ``read_write`` as LLVM found it; empty where unknown.
    """

    __slots__ = ("access", "address_space", "kind", "name", "offset", "size")

    def __init__(self, name: str, offset: int, size: int, kind: str, address_space: str = "", access: str = "") -> None:
        self.name = name
        self.offset = offset
        self.size = size
        self.kind = kind
        self.address_space = address_space
        self.access = access

    @property
    def hidden(self) -> bool:
        """Whether the runtime fills it, not the caller."""
        return self.kind.startswith("hidden_")

    @property
    def is_pointer(self) -> bool:
        """Whether it takes an address in device memory, or in LDS."""
        return self.kind in _POINTERS

    def to_dict(self) -> dict[str, object]:
        """The fields as plain data."""
        return {name: getattr(self, name) for name in ("name", "offset", "size", "kind", "address_space", "access")}

    def __repr__(self) -> str:
        return f"KernelArg({self.name!r}, offset={self.offset}, size={self.size}, kind={self.kind!r})"


class KernelDescriptor:
    """The 64 bytes that the hardware's command processor reads to start a kernel.

    Attributes:
        lds_bytes: LDS that the kernel always uses, in bytes.
        scratch_bytes: Private memory of a lane, in bytes.
        kernarg_bytes: Size of the kernarg segment, in bytes.
        entry_offset: First instruction, relative to the descriptor, in bytes.
        rsrc1, rsrc2, rsrc3: ``COMPUTE_PGM_RSRC1`` to ``3``.
        properties: Which registers are set up at the start.
        kernarg_preload_dwords: Kernel arguments preloaded into SGPRs, in dwords.
    """

    __slots__ = (
        "entry_offset", "kernarg_bytes", "kernarg_preload_dwords", "lds_bytes", "properties", "rsrc1", "rsrc2", "rsrc3",
        "scratch_bytes",
    )  # fmt: skip

    def __init__(self, data: bytes) -> None:
        (
            self.lds_bytes, self.scratch_bytes, self.kernarg_bytes, _, self.entry_offset,
            self.rsrc3, self.rsrc1, self.rsrc2, self.properties, preload, _,
        ) = _DESCRIPTOR.unpack(data)  # fmt: skip
        self.kernarg_preload_dwords = preload & 0x7F

    @property
    def wave_size(self) -> int:
        """Lanes in a wave."""
        return 32 if self.properties & 1 << 10 else 64

    @property
    def uses_dynamic_stack(self) -> bool:
        """Whether the scratch size is a lower bound only (recursion, indirect calls)."""
        return bool(self.properties & 1 << 11)

    def to_dict(self) -> dict[str, object]:
        """The fields as plain data."""
        return {name: getattr(self, name) for name in self.__slots__}


class KernelInfo:
    """One kernel of a code object or object file.

    Attributes:
        name: Name to launch it by.
        vgpr_count: Vector registers per lane; on chips with a unified file, accumulation registers included.
        agpr_count: Accumulation registers per lane.
        sgpr_count: Scalar registers per wave.
        vgpr_spill_count: Vector registers spilled to scratch.
        sgpr_spill_count: Scalar registers spilled.
        lds_bytes: LDS that is known at compile time, in bytes.
        scratch_bytes: Private memory of a lane, in bytes.
        kernarg_bytes: Size of the kernarg segment, hidden arguments included, in bytes.
        kernarg_align: Alignment of the kernarg segment in bytes.
        explicit_kernarg_bytes: Bytes that the caller fills: the end of the last explicit argument.
        args: Explicit arguments in order.
        hidden_args: Arguments that the runtime fills.
        wave_size: Lanes in a wave.
        max_workgroup_size: Most work items that a workgroup may have.
        reqd_workgroup_size: The only legal workgroup shape, or ``None``.
        cluster_dims: Workgroups of a cluster in x, y, z, or ``None`` where each is on its own.
        uniform_work_group_size: Whether the grid must be a whole number of workgroups.
        uses_dynamic_stack: Whether ``scratch_bytes`` is a lower bound only.
        symbol: Symbol of the kernel descriptor.
        code_bytes: Size of the machine code in bytes, or ``None`` where the symbol table is missing.
        descriptor: The kernel descriptor, or ``None`` where the symbol table is missing.
    """

    __slots__ = (
        "agpr_count", "args", "cluster_dims", "code_bytes", "descriptor", "explicit_kernarg_bytes", "hidden_args",
        "kernarg_align", "kernarg_bytes", "lds_bytes", "max_workgroup_size", "name", "reqd_workgroup_size",
        "scratch_bytes", "sgpr_count", "sgpr_spill_count", "symbol", "uniform_work_group_size",
        "uses_dynamic_stack", "vgpr_count", "vgpr_spill_count", "wave_size",
    )  # fmt: skip

    def __init__(self, data: dict[str, object], where: str = "metadata") -> None:
        """Reads one entry of ``amdhsa.kernels``.

        Raises:
            LinkError: A field is missing, of the wrong type or out of range.
        """
        read = Fields(data, where)
        self.name = read.text(".name")
        read.where = f"metadata of kernel {self.name}"
        self.symbol = read.text(".symbol")
        self.vgpr_count = read.count(".vgpr_count")
        self.agpr_count = read.count(".agpr_count", 0)
        self.sgpr_count = read.count(".sgpr_count")
        self.vgpr_spill_count = read.count(".vgpr_spill_count", 0)
        self.sgpr_spill_count = read.count(".sgpr_spill_count", 0)
        self.lds_bytes = read.count(".group_segment_fixed_size")
        self.scratch_bytes = read.count(".private_segment_fixed_size")
        self.kernarg_bytes = read.count(".kernarg_segment_size")
        self.kernarg_align = read.count(".kernarg_segment_align")
        self.wave_size = read.count(".wavefront_size")
        self.max_workgroup_size = read.count(".max_flat_workgroup_size")
        self.uniform_work_group_size = read.flag(".uniform_work_group_size")
        self.uses_dynamic_stack = read.flag(".uses_dynamic_stack")
        shape = read.counts(".reqd_workgroup_size")
        cluster = read.counts(".cluster_dims")
        if self.wave_size not in (32, 64) or len(shape) not in (0, 3) or len(cluster) not in (0, 3):
            raise read.error(f"wave size {self.wave_size}, required workgroup {shape}, cluster {cluster}")
        self.cluster_dims = (cluster[0], cluster[1], cluster[2]) if cluster else None
        self.reqd_workgroup_size = (shape[0], shape[1], shape[2]) if shape else None
        every = [self._arg(entry, i, read) for i, entry in enumerate(read.entries(".args"))]
        self.args = [a for a in every if not a.hidden]
        self.hidden_args = [a for a in every if a.hidden]
        self.explicit_kernarg_bytes = self._check_args(every, read)
        self.descriptor: KernelDescriptor | None = None
        self.code_bytes: int | None = None

    @staticmethod
    def _arg(entry: dict[str, object], number: int, kernel: Fields) -> KernelArg:
        read = Fields(entry, f"{kernel.where}, argument {number}")
        return KernelArg(
            read.text(".name", f"arg{number}"),
            read.count(".offset"),
            read.count(".size"),
            read.text(".value_kind"),
            read.text(".address_space", ""),
            read.text(".actual_access", read.text(".access", "")),
        )

    def _check_args(self, args: list[KernelArg], read: Fields) -> int:
        """Checks that arguments lie in the segment, one after another; returns where the explicit ones end."""
        end = explicit = 0
        for arg in args:
            if arg.offset < end or arg.offset + arg.size > self.kernarg_bytes:
                raise read.error(
                    f"argument {arg.name}: {arg.size} bytes at {arg.offset} overlap or end past the segment of "
                    f"{self.kernarg_bytes}"
                )
            end = arg.offset + arg.size
            if not arg.hidden:
                explicit = end
        return explicit

    def to_dict(self) -> dict[str, object]:
        """The fields as plain data."""
        out: dict[str, object] = {"name": self.name}
        nested = ("name", "args", "hidden_args", "descriptor")
        out.update({name: getattr(self, name) for name in self.__slots__ if name not in nested})
        out["args"] = [a.to_dict() for a in self.args]
        out["hidden_args"] = [a.to_dict() for a in self.hidden_args]
        out["descriptor"] = None if self.descriptor is None else self.descriptor.to_dict()
        return out

    def __repr__(self) -> str:
        return f"KernelInfo({self.name!r}, vgpr={self.vgpr_count}, agpr={self.agpr_count}, sgpr={self.sgpr_count})"


class Fields:
    """Typed access to a dictionary out of the metadata."""

    __slots__ = ("data", "where")

    def __init__(self, data: dict[str, object], where: str) -> None:
        self.data = data
        self.where = where

    def error(self, what: str) -> LinkError:
        """An error that names the place."""
        return LinkError(f"damaged metadata: {what}", self.where, "emit the object again")

    def text(self, key: str, default: str | None = None) -> str:
        """A text, or the default where the key is missing."""
        value = self.data.get(key, default)
        if not isinstance(value, str):
            raise self.error(f"{key} is {value!r}, expected text")
        return value

    def count(self, key: str, default: int | None = None) -> int:
        """A number of 32 bits that is not negative, or the default where the key is missing."""
        value = self.data.get(key, default)
        if type(value) is not int or not 0 <= value < 1 << 32:
            raise self.error(f"{key} is {value!r}, expected a number from 0 to 2**32 - 1")
        return value

    def flag(self, key: str) -> bool:
        """A truth value, also written as 0 or 1; false where the key is missing."""
        value = self.data.get(key, False)
        if value not in (False, True):
            raise self.error(f"{key} is {value!r}, expected true or false")
        return bool(value)

    def counts(self, key: str) -> list[int]:
        """A list of counts; empty where the key is missing."""
        value = self.data.get(key, [])
        if not isinstance(value, list):
            raise self.error(f"{key} is {value!r}, expected a list of numbers")
        return [Fields({key: v}, self.where).count(key) for v in value]

    def entries(self, key: str) -> list[dict[str, object]]:
        """A list of dictionaries; empty where the key is missing."""
        value = self.data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(v, dict) for v in value):
            raise self.error(f"{key} is no list of maps")
        return value
