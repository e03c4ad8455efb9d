"""The AMD processors flyllvm knows: the one place that holds facts about chips.

A target is written as in AMD's tools: ``gfx942``, ``gfx942:sramecc+:xnack-``.  A feature that is not
written is *any*: the code object runs in either mode.
"""

from __future__ import annotations

from .errors import TargetError


class Chip:
    """Facts about one processor.

    Attributes:
        name: Processor name as LLVM and HIP spell it.
        family: ISA family used to pick instruction tables (``cdna2``, ``cdna3``, ...).
        elf_mach: The ``EF_AMDGPU_MACH`` number in the low byte of ``e_flags``.
        waves: Wave sizes in lanes, the default first.
        lds_bytes: LDS a workgroup may use, in bytes.
        lds_banks: Number of LDS banks, four bytes wide each.
        features: Target-id features the chip can switch.
        fp8: Flavour of the matrix unit's 8-bit floats: ``"fnuz"``, ``"ocp"`` or ``None``.
        max_workgroup_size: Work items in a workgroup.
        vgpr_total: Vector registers per lane and SIMD (architectural and accumulation together).
        vgpr_granule: Allocation granule of vector registers, in registers.
        max_waves_per_simd: Waves a SIMD can hold.
        lds_granule: Allocation granule of LDS, in bytes.
        lds_unit_bytes: LDS that four SIMDs share (a compute unit of CDNA, two of them on RDNA), in bytes.
        max_barriers: Workgroups of several waves that four SIMDs can hold.
        buffer_flags: Flags of a raw buffer descriptor with the byte range check on: word 3, or on gfx1250 four bits.
        global_immediate: Immediate offsets of a global access, in bytes: from minus this to below it.
        xnack_fixed: Value of xnack that cannot be switched, or ``None``.

    Source: LLVM AMDGPUUsage (processors, target ids, ELF header), AMD CDNA2/3, RDNA3/4 ISA manuals.
    """

    __slots__ = (
        "buffer_flags",
        "elf_mach",
        "family",
        "features",
        "fp8",
        "global_immediate",
        "lds_banks",
        "lds_bytes",
        "lds_granule",
        "lds_unit_bytes",
        "max_barriers",
        "max_waves_per_simd",
        "max_workgroup_size",
        "name",
        "vgpr_granule",
        "vgpr_total",
        "waves",
    )

    def __init__(
        self,
        name: str,
        family: str,
        elf_mach: int,
        waves: tuple[int, ...],
        lds_bytes: int,
        *,
        features: tuple[str, ...] = (),
        fp8: str | None = None,
        lds_banks: int = 32,
        vgpr_total: int = 512,
        vgpr_granule: int = 8,
        max_waves_per_simd: int = 8,
        lds_granule: int = 512,
        buffer_flags: int = 0x27000,
        global_immediate: int = 4096,
    ) -> None:
        self.name = name
        self.family = family
        self.elf_mach = elf_mach
        self.waves = waves
        self.lds_bytes = lds_bytes
        self.features = features
        self.fp8 = fp8
        self.lds_banks = lds_banks
        self.max_workgroup_size = 1024
        self.vgpr_total = vgpr_total
        self.vgpr_granule = vgpr_granule
        self.max_waves_per_simd = max_waves_per_simd
        self.lds_granule = lds_granule
        pairs = family.startswith("rdna")
        self.lds_unit_bytes = 2 * lds_bytes if pairs else lds_bytes
        self.max_barriers = 32 if pairs else 16
        self.buffer_flags = buffer_flags
        self.global_immediate = global_immediate


_KIB = 1024
_CDNA = ("sramecc", "xnack")
# Raw buffers on RDNA: bit 24 must be one, and OOB_SELECT 3 is the byte range check (2 turns it off).
_RDNA_FLAGS = 0x27000 | (1 << 24) | (3 << 28)

CHIPS: dict[str, Chip] = {
    chip.name: chip
    for chip in (
        Chip("gfx90a", "cdna2", 0x3F, (64,), 64 * _KIB, features=_CDNA),
        Chip("gfx942", "cdna3", 0x4C, (64,), 64 * _KIB, features=_CDNA, fp8="fnuz"),
        Chip("gfx950", "cdna4", 0x4F, (64,), 160 * _KIB, features=_CDNA, fp8="ocp", lds_banks=64, lds_granule=1280),
        Chip(
            "gfx1100", "rdna3", 0x41, (32, 64), 64 * _KIB,
            vgpr_total=1536, vgpr_granule=24, max_waves_per_simd=16, buffer_flags=_RDNA_FLAGS,
        ),
        Chip(
            "gfx1200", "rdna4", 0x48, (32, 64), 64 * _KIB, fp8="ocp",
            vgpr_total=1536, vgpr_granule=24, max_waves_per_simd=16, buffer_flags=_RDNA_FLAGS,
            global_immediate=1 << 23,
        ),
        Chip(
            "gfx1201", "rdna4", 0x4E, (32, 64), 64 * _KIB, fp8="ocp",
            vgpr_total=1536, vgpr_granule=24, max_waves_per_simd=16, buffer_flags=_RDNA_FLAGS,
            global_immediate=1 << 23,
        ),
        # The descriptor of gfx1250 has four bits of flags, which LLVM takes from the low end: swizzle, a check against
        # the stride, type.  All zero is a raw buffer whose bytes are checked.  Source: MLIR's AMDGPU dialect, and the
        # descriptor that LLVM 22.1 builds (base in bits 0-56, records in 57-101).  Not run on hardware.
        Chip(
            "gfx1250", "gfx1250", 0x49, (32,), 320 * _KIB, features=("xnack",), fp8="ocp",
            vgpr_total=1024, vgpr_granule=16, max_waves_per_simd=16, lds_banks=64, lds_granule=2048,
            buffer_flags=0, global_immediate=1 << 23,
        ),
    )
}  # fmt: skip

_SIGNS = {"+": True, "-": False}
_SIMDS = 4


class Occupancy:
    """How many waves of a kernel a SIMD can hold at once (the fullest of four), and what sets the limit.

    Attributes:
        waves_per_simd: The result.
        limits: Waves per SIMD that each resource alone would allow: ``waves`` (slots), ``vgprs``, ``sgprs``, and where
            the workgroup's size is known ``lds`` and ``workgroups`` (barriers).
        limited_by: The resource with the lowest limit.
        workgroups: Workgroups that four SIMDs hold, where the size is known, else 0.

    Source: LLVM AMDGPUBaseInfo (granules, totals, waves for a number of registers, barriers).
    """

    __slots__ = ("limited_by", "limits", "waves_per_simd", "workgroups")

    def __init__(self, limits: dict[str, int], workgroups: int) -> None:
        self.limits, self.workgroups = limits, workgroups
        self.limited_by = min(limits, key=lambda name: limits[name])
        self.waves_per_simd = limits[self.limited_by]

    def to_dict(self) -> dict[str, object]:
        """All attributes as JSON-ready values."""
        return {
            "waves_per_simd": self.waves_per_simd, "limited_by": self.limited_by, "limits": self.limits,
            "workgroups": self.workgroups,
        }  # fmt: skip


class Target:
    """One processor with the modes that change the code generated for it.

    Attributes:
        chip: Facts about the processor.
        features: The features that were written, name to on or off; absent ones are *any*.
        wave_size: Lanes in a wave.
    """

    __slots__ = ("chip", "features", "wave_size")

    def __init__(self, chip: Chip, features: dict[str, bool], wave_size: int) -> None:
        self.chip = chip
        self.features = features
        self.wave_size = wave_size

    @staticmethod
    def parse(text: str | Target, wave_size: int | None = None) -> Target:
        """Reads a target id such as ``gfx942:sramecc+:xnack-``.

        Args:
            text: The target id, or a ``Target`` that is returned as it is.
            wave_size: Lanes in a wave where the chip has both modes; its default otherwise.

        Raises:
            TargetError: Unknown processor or feature, or a wave size the chip lacks.
        """
        if isinstance(text, Target):
            return text if wave_size is None else Target.parse(str(text), wave_size)
        if not isinstance(text, str):
            raise TargetError(f"a target is text such as 'gfx942', got {text!r}")
        name, *parts = text.split(":")
        chip = CHIPS.get(name)
        if chip is None:
            raise TargetError(f"unknown target {text!r}", fix=f"use one of: {', '.join(CHIPS)}")
        features: dict[str, bool] = {}
        for part in parts:
            key, sign = part[:-1], part[-1:]
            if key not in chip.features or sign not in _SIGNS:
                legal = ", ".join(f"{f}+ / {f}-" for f in chip.features) or "none"
                raise TargetError(f"target {text!r}: {name} has no feature {part!r}", fix=f"legal features: {legal}")
            if key in features:
                raise TargetError(f"target {text!r} names {key} twice", fix="write each feature once")
            features[key] = _SIGNS[sign]
        if wave_size is None:
            wave_size = chip.waves[0]
        elif wave_size not in chip.waves:
            legal = " or ".join(map(str, chip.waves))
            raise TargetError(f"{name} has no wave size {wave_size}", fix=f"wave size on {name}: {legal}")
        return Target(chip, dict(sorted(features.items())), wave_size)

    @property
    def processor(self) -> str:
        """Processor name, without features."""
        return self.chip.name

    @property
    def lds_bytes(self) -> int:
        """LDS a workgroup may use, in bytes."""
        return self.chip.lds_bytes

    @property
    def llvm_features(self) -> str:
        """The feature string LLVM takes, e.g. ``+sramecc,-xnack``."""
        parts = [("+" if on else "-") + name for name, on in self.features.items()]
        if len(self.chip.waves) > 1:
            parts.append(f"+wavefrontsize{self.wave_size}")
        return ",".join(parts)

    def occupancy(self, vgprs: int, sgprs: int = 0, lds_bytes: int = 0, workgroup_size: int | None = None) -> Occupancy:
        """The waves of a kernel that a SIMD can hold.

        Args:
            vgprs: Vector registers of a lane, accumulation registers among them where the chip has one file.
            sgprs: Scalar registers of a wave.
            lds_bytes: LDS of a workgroup, in bytes.
            workgroup_size: Work items in a workgroup; without it LDS sets no limit.
        """
        chip = self.chip
        # In wave64 mode a register of an RDNA chip is two of wave32's.
        share = 2 if self.wave_size == 64 and len(chip.waves) > 1 else 1
        granule = chip.vgpr_granule // share
        used = -(-max(vgprs, 1) // granule) * granule
        limits = {"waves": chip.max_waves_per_simd, "vgprs": min(chip.vgpr_total // share // used, 64) or 1}
        if chip.family.startswith("cdna"):
            limits["sgprs"] = 10 if sgprs <= 80 else 9 if sgprs <= 88 else 8 if sgprs <= 100 else 7
        workgroups = 0
        if workgroup_size is not None:
            waves = -(-workgroup_size // self.wave_size)
            workgroups = max(min(limits.values()) * _SIMDS // waves, 1)
            groups = {"workgroups": chip.max_barriers if waves > 1 else workgroups}
            if lds_bytes:
                groups["lds"] = chip.lds_unit_bytes // (-(-lds_bytes // chip.lds_granule) * chip.lds_granule)
            for name, count in groups.items():
                if count < workgroups:
                    limits[name] = max(-(-count * waves // _SIMDS), 1)
            workgroups = max(min(workgroups, *groups.values()), 1)
        return Occupancy(limits, workgroups)

    def __str__(self) -> str:
        return ":".join([self.chip.name, *(f + ("+" if on else "-") for f, on in self.features.items())])

    def __repr__(self) -> str:
        return f"Target({str(self)!r}, wave_size={self.wave_size})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and (str(self), self.wave_size) == (str(other), other.wave_size)

    def __hash__(self) -> int:
        return hash((str(self), self.wave_size))
