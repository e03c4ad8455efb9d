"""AMDGPU relocations: their numbers, and what each one writes.

In the formulas S is the symbol's address, A the addend, P the address of the place, G the address of the symbol's
slot in the global offset table.

Source: LLVM AMDGPUUsage, "Relocation Records".
"""

from __future__ import annotations

from ..errors import LinkError

NONE, ABS32_LO, ABS32_HI, ABS64, REL32, REL64, ABS32 = 0, 1, 2, 3, 4, 5, 6
GOTPCREL, GOTPCREL32_LO, GOTPCREL32_HI, REL32_LO, REL32_HI, RELATIVE64, REL16 = 7, 8, 9, 10, 11, 13, 14

NAMES = {
    NONE: "R_AMDGPU_NONE",
    ABS32_LO: "R_AMDGPU_ABS32_LO",
    ABS32_HI: "R_AMDGPU_ABS32_HI",
    ABS64: "R_AMDGPU_ABS64",
    REL32: "R_AMDGPU_REL32",
    REL64: "R_AMDGPU_REL64",
    ABS32: "R_AMDGPU_ABS32",
    GOTPCREL: "R_AMDGPU_GOTPCREL",
    GOTPCREL32_LO: "R_AMDGPU_GOTPCREL32_LO",
    GOTPCREL32_HI: "R_AMDGPU_GOTPCREL32_HI",
    REL32_LO: "R_AMDGPU_REL32_LO",
    REL32_HI: "R_AMDGPU_REL32_HI",
    RELATIVE64: "R_AMDGPU_RELATIVE64",
    REL16: "R_AMDGPU_REL16",
}

ABSOLUTE = frozenset({ABS32_LO, ABS32_HI, ABS32, ABS64})  # S + A
GOT = frozenset({GOTPCREL, GOTPCREL32_LO, GOTPCREL32_HI})  # G + A - P
PC_RELATIVE = frozenset({REL32, REL64, REL32_LO, REL32_HI, REL16})  # S + A - P

# Bytes that a relocation overwrites.
WIDTHS = dict.fromkeys(NAMES, 4) | {NONE: 0, ABS64: 8, REL64: 8, REL16: 2}

_LOW = frozenset({ABS32_LO, GOTPCREL32_LO, REL32_LO})
_HIGH = frozenset({ABS32_HI, GOTPCREL32_HI, REL32_HI})
_MASK32, _MASK64 = (1 << 32) - 1, (1 << 64) - 1


def encode(kind: int, value: int, symbol: str, where: str) -> bytes:
    """Bytes that a relocation writes.

    Args:
        kind: Relocation number.
        value: The value of the formula, of any size and sign.
        symbol: Name of the symbol, for the error message.
        where: Place in the object, for the error message.

    Raises:
        LinkError: The value does not fit the field.
    """
    if kind in _LOW:
        return (value & _MASK32).to_bytes(4, "little")
    if kind in _HIGH:
        return ((value >> 32) & _MASK32).to_bytes(4, "little")
    if kind in (ABS64, REL64):
        low = -(1 << 63)
        if not low <= value <= _MASK64:
            raise _overflow(kind, value, "64 bits", symbol, where)
        return (value & _MASK64).to_bytes(8, "little")
    if kind == REL16:
        # A branch counts in instruction words from the next instruction.
        words, rest = divmod(value - 4, 4)
        if rest or not -(1 << 15) <= words < 1 << 15:
            raise _overflow(kind, value, "a branch of 16 bits in words of 4 bytes", symbol, where)
        return (words & 0xFFFF).to_bytes(2, "little")
    high = _MASK32 if kind == ABS32 else (1 << 31) - 1
    if not -(1 << 31) <= value <= high:
        raise _overflow(kind, value, "32 bits", symbol, where)
    return (value & _MASK32).to_bytes(4, "little")


def _overflow(kind: int, value: int, room: str, symbol: str, where: str) -> LinkError:
    return LinkError(
        f"{NAMES[kind]} against {symbol or 'a section'}: {value:#x} does not fit {room}",
        where,
        "make the code or the zero-initialised data between place and symbol smaller",
    )
