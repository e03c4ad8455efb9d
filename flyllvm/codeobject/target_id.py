"""Which processor a code object is for, and whether a device can run it.

A target id names a processor and, where the processor can switch them, the features ``sramecc`` and ``xnack``.  A code
object says *on*, *off* or *any* for each; a device has each either on or off.  A generic target
(``gfx9-4-generic``) covers a family of processors.

Source: LLVM AMDGPUUsage, "Target ID", "Generic Processor Versioning", "ELF Header"; machine numbers read from objects
that LLVM 22.1 emitted for every processor it knows.
"""

from __future__ import annotations

from ..errors import LinkError, TargetError
from ..target import CHIPS, Target

# Processors that flyllvm does not compile for, so that their code objects can be named.
_OTHER_MACHINES = {
    0x20: "gfx600", 0x21: "gfx601", 0x3A: "gfx602", 0x22: "gfx700", 0x23: "gfx701", 0x24: "gfx702", 0x25: "gfx703",
    0x26: "gfx704", 0x3B: "gfx705", 0x28: "gfx801", 0x29: "gfx802", 0x2A: "gfx803", 0x3C: "gfx805", 0x2B: "gfx810",
    0x2C: "gfx900", 0x2D: "gfx902", 0x2E: "gfx904", 0x2F: "gfx906", 0x30: "gfx908", 0x31: "gfx909", 0x32: "gfx90c",
    0x33: "gfx1010", 0x34: "gfx1011", 0x35: "gfx1012", 0x42: "gfx1013", 0x36: "gfx1030", 0x37: "gfx1031",
    0x38: "gfx1032", 0x39: "gfx1033", 0x3E: "gfx1034", 0x3D: "gfx1035", 0x45: "gfx1036", 0x46: "gfx1101",
    0x47: "gfx1102", 0x44: "gfx1103", 0x43: "gfx1150", 0x4A: "gfx1151", 0x55: "gfx1152", 0x58: "gfx1153",
    0x5A: "gfx1251", 0x51: "gfx9-generic", 0x5F: "gfx9-4-generic", 0x52: "gfx10-1-generic", 0x53: "gfx10-3-generic",
    0x54: "gfx11-generic", 0x59: "gfx12-generic",
}  # fmt: skip
MACHINES = _OTHER_MACHINES | {chip.elf_mach: chip.name for chip in CHIPS.values()}

# Generic target -> the processors that run its code.
GENERIC = {
    "gfx9-generic": ("gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"),
    "gfx9-4-generic": ("gfx942", "gfx950"),
    "gfx10-1-generic": ("gfx1010", "gfx1011", "gfx1012", "gfx1013"),
    "gfx10-3-generic": ("gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"),
    "gfx11-generic": ("gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153"),
    "gfx12-generic": ("gfx1200", "gfx1201"),
}

UNSUPPORTED, ANY, OFF, ON = 0, 1, 2, 3
FEATURES = ("sramecc", "xnack")
_SHIFTS = {"xnack": 8, "sramecc": 10}
_SIGNS = {"+": ON, "-": OFF}
_PREFIX = "amdgcn-amd-amdhsa-"


class TargetId:
    """A processor and the setting of its features.

    Attributes:
        processor: Name as LLVM spells it, generic targets included.
        features: ``sramecc`` and ``xnack`` → ``ON`` or ``OFF``; one that is absent is *any*.
        generic_version: Version of a generic target, or 0.
    """

    __slots__ = ("features", "generic_version", "processor")

    def __init__(self, processor: str, features: dict[str, int], generic_version: int = 0) -> None:
        self.processor = processor
        self.features = features
        self.generic_version = generic_version

    @staticmethod
    def parse(text: str) -> TargetId:
        """Reads ``gfx942:sramecc+:xnack-``, with or without the triple in front.

        Raises:
            TargetError: Unknown feature, a feature twice, or no sign.
        """
        name, *parts = text.removeprefix(_PREFIX).lstrip("-").split(":")
        features: dict[str, int] = {}
        for part in parts:
            key, sign = part[:-1], part[-1:]
            if key not in FEATURES or sign not in _SIGNS or key in features:
                raise TargetError(
                    f"target {text!r}: bad feature {part!r}",
                    fix="features are sramecc+, sramecc-, xnack+, xnack-, each once",
                )
            features[key] = _SIGNS[sign]
        if not name.startswith("gfx"):
            raise TargetError(f"target {text!r} names no processor", fix="write it as in gfx942:sramecc+:xnack-")
        return TargetId(name, dict(sorted(features.items())))

    def __str__(self) -> str:
        return ":".join([self.processor, *(f + ("+" if v == ON else "-") for f, v in self.features.items())])

    def __repr__(self) -> str:
        return f"TargetId({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TargetId) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


def target_of(flags: int, note: str | None) -> TargetId:
    """The target of an ELF file.

    Args:
        flags: ``e_flags``.
        note: The text under ``amdhsa.target`` of the metadata, or ``None``.

    Raises:
        LinkError: The two disagree, or the processor is unknown and there is no note.
    """
    name = MACHINES.get(flags & 0xFF)
    features = {}
    for feature in FEATURES:
        setting = flags >> _SHIFTS[feature] & 3
        if setting in (OFF, ON):
            features[feature] = setting
    if note is None:
        if name is None:
            raise LinkError(
                f"processor number {flags & 0xFF:#x} is unknown and there is no metadata that names it",
                "byte 0x30",
                "compile for one of the processors that flyllvm knows",
            )
        return TargetId(name, features, flags >> 24)
    try:
        told = TargetId.parse(note)
    except TargetError as error:
        raise LinkError(f"damaged metadata: {error.what}", "amdhsa.target", "emit the object again") from None
    if (name is not None and told.processor != name) or told.features != features:
        header = TargetId(name or f"processor {flags & 0xFF:#x}", features)
        raise LinkError(
            f"the ELF header says {header}, the metadata says {told}", "byte 0x30", "compile the object again"
        )
    told.generic_version = flags >> 24
    return told


def mismatch(code: TargetId | Target | str, device: TargetId | Target | str) -> str | None:
    """Why a code object cannot run on a device, in words; ``None`` where it can.

    Args:
        code: Target of the code object.
        device: What the device calls itself, e.g. ``gfx942:sramecc+:xnack-`` (``gcnArchName`` in HIP).

    Raises:
        TargetError: A text that is no target id.
    """
    c = code if isinstance(code, TargetId) else TargetId.parse(str(code))
    d = device if isinstance(device, TargetId) else TargetId.parse(str(device))
    if c.processor != d.processor:
        covered = GENERIC.get(c.processor)
        if covered is None:
            return f"the code is for {c.processor}, the device is {d.processor}"
        if d.processor not in covered:
            return f"the code is for {c.processor} ({', '.join(covered)}), the device is {d.processor}"
    for feature, want in c.features.items():
        has = d.features.get(feature)
        if has is None:
            return f"the code needs {feature} {_word(want)}, the device {d} does not say that it has {feature}"
        if has != want:
            return f"the code needs {feature} {_word(want)}, the device has it {_word(has)}"
    return None


def matches(code: TargetId | Target | str, device: TargetId | Target | str) -> bool:
    """Whether a code object can run on a device; `mismatch` says why not.

    Raises:
        TargetError: A text that is no target id.
    """
    return mismatch(code, device) is None


def _word(setting: int) -> str:
    return "on" if setting == ON else "off"
