"""Signatures of the AMDGPU intrinsics, checked before LLVM sees a call.

An unknown ``llvm.amdgcn.*`` name is silently an external function for LLVM, and one that the target lacks ends the
process in instruction selection.  The table holds one line per overload (``scripts/make_intrinsic_table.py``); a
look-up finds its line in the text, nothing is parsed in advance.
"""

from __future__ import annotations

from ..errors import CodegenError, FlyError, TargetError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..target import Target

_PREFIX = "llvm.amdgcn."
#: LLVM's own intrinsics that lower on AMDGPU without a library, without ``llvm.``; a suffix names the type.
GENERIC = frozenset(
    "abs assume bitreverse bswap canonicalize ceil copysign cos ctlz ctpop cttz exp exp2 "
    "fabs floor fma fmuladd fptosi.sat fptoui.sat frexp fshl fshr ldexp lifetime.end lifetime.start log log10 log2 "
    "maximum maximumnum maxnum memcpy memmove memset minimum minimumnum minnum nearbyint pow powi rint round roundeven "
    "sadd.sat sadd.with.overflow scmp sin smax smin smul.with.overflow sqrt ssub.sat ssub.with.overflow trap trunc "
    "uadd.sat uadd.with.overflow ucmp umax umin umul.with.overflow usub.sat usub.with.overflow".split()
    + [
        f"vector.reduce.{k}"
        for k in "add and fadd fmax fmaximum fmin fminimum fmul mul or smax smin umax umin xor".split()
    ]
)
_UNIFORM = ("readfirstlane", "readlane", "ballot", "workgroup.id", "s.", "kernarg.segment.ptr", "implicitarg.ptr")

# Without operands that differ, lanes still get results of their own.
_PER_LANE = ("mbcnt", "workitem.id", "interp.", "lds.", "live.mask", "ps.live", "cvt.scale.")

# Calls that were checked, by name, signature and target; as many as there are overloads, at most.
_CALLS: dict[tuple[str, ...], IntrinsicCall] = {}
_TABLE: list[str] = []
_ARCHS: dict[str, int] = {}


def _table() -> str:
    if not _TABLE:
        import os

        path = os.path.join(os.path.dirname(__file__), "intrinsics.txt")
        try:
            with open(path, "rb") as f:
                text = f.read().decode("ascii")
        except (OSError, UnicodeDecodeError) as e:
            raise CodegenError(f"the intrinsic table {path} cannot be read: {e}", fix="reinstall flyllvm") from None
        _ARCHS.update({arch: 1 << i for i, arch in enumerate(text[: text.index("\n")].split("\t"))})
        _TABLE.append(text)
    return _TABLE[0]


class Intrinsic:
    """One overload.

    Attributes:
        name: Full mangled name.
        signature: ``result (args)`` in LLVM's spelling.
        imms: Positions of operands that must be constants.
        archs: Processors that have it; ``gfx1100:w64`` in waves of 64 lanes only.
        pure: Touches no memory, and lanes with equal operands get equal results.
        uniform: Gives all lanes of a wave the same result.
    """

    __slots__ = ("archs", "imms", "name", "pure", "signature", "uniform")

    def __init__(self, line: str) -> None:
        self.name, self.signature, imms, mask, flags = line.split("\t")
        self.imms = tuple([int(i) for i in imms.split(",")]) if imms else ()
        bits = int(mask, 16)
        self.archs = [a for a, bit in _ARCHS.items() if bits & bit]
        self.pure = "p" in flags and not self.name.startswith(tuple([_PREFIX + p for p in _PER_LANE]))
        self.uniform = self.name.startswith(tuple([_PREFIX + u for u in _UNIFORM]))

    def on(self, target: Target) -> bool:
        """Whether a target has it."""
        wide = f"{target.processor}:w64"
        if len(target.chip.waves) > 1 and target.wave_size == 64:
            # Entries that depend on the wave size carry the mark; the others run in both modes.
            return wide in self.archs or (target.processor in self.archs and "wmma" not in self.name)
        return target.processor in self.archs


def lookup(name: str) -> Intrinsic | None:
    """The overload of exactly this full name."""
    text = _table()
    at = text.find(f"\n{name}\t")
    return None if at < 0 else Intrinsic(text[at + 1 : text.index("\n", at + 1)])


def overloads(base: str) -> list[Intrinsic]:
    """Every overload whose name is ``base`` or starts with ``base.``."""
    text = _table()
    found, at = [], text.find(f"\n{base}")
    while at >= 0:
        end = text.index("\n", at + 1)
        if text[at + 1 + len(base)] in ".\t":
            found.append(Intrinsic(text[at + 1 : end]))
        at = text.find(f"\n{base}", end)
    return found


def base_of(name: str) -> str | None:
    """The longest dotted prefix of ``name`` that the table knows overloads of; ``None`` for an unknown intrinsic."""
    text = _table()
    parts = name.split(".")
    for n in range(len(parts), 2, -1):
        base = ".".join(parts[:n])
        if f"\n{base}." in text or f"\n{base}\t" in text:
            return base
    return None


def _similar(name: str) -> str:
    base = base_of(name)
    if base is None:
        return "see LLVM's AMDGPU usage guide for the names"
    names = [i.name for i in overloads(base)]
    shown = ", ".join(names[:8])
    return f"known names: {shown}" + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def find(name: str, target: Target) -> Intrinsic | None:
    """The overload of a name, checked against the target.

    Returns:
        ``None`` for an overload that the table does not list, of an intrinsic that it knows on this target: then
        LLVM's own verifier has the word.

    Raises:
        CodegenError: No such intrinsic.
        TargetError: The target lacks it.
    """
    found = lookup(name)
    if found is None:
        base = base_of(name)
        known = [] if base is None else overloads(base)
        # Overloads differ in their type suffix only; a longer known name is another intrinsic.
        if not known or not _is_suffix(name[len(base or "") :]):
            raise CodegenError(f"LLVM has no intrinsic {name}", fix=_similar(name))
        if not any(i.on(target) for i in known):
            raise _missing(name, known[0], target)
        return None
    if not found.on(target):
        raise _missing(name, found, target)
    return found


def _is_suffix(text: str) -> bool:
    parts = text.split(".")[1:]
    return bool(parts) and all(p.lstrip("v0123456789").rstrip("0123456789") in ("i", "f", "bf", "p") for p in parts)


def _missing(name: str, found: Intrinsic, target: Target) -> FlyError:
    wave = f" in waves of {target.wave_size}" if len(target.chip.waves) > 1 else ""
    return TargetError(
        f"{target.processor}{wave} has no intrinsic {name}", fix=f"targets with it: {', '.join(found.archs)}"
    )


class IntrinsicCall:
    """What is known of calls of one overload with one signature.

    Attributes:
        name: Full name.
        head: ``call RESULT @NAME``.
        imms: Positions of operands that must be constants.
        pure, uniform: As in ``Intrinsic``.
        declaration: The ``declare`` line.
    """

    __slots__ = ("declaration", "head", "imms", "name", "pure", "uniform")

    def __init__(self, name: str, result: str, args: Sequence[str], known: Intrinsic | None) -> None:
        self.name = name
        self.head = f"call {result} @{name}"
        self.declaration = f"declare {result} @{name}({', '.join(args)})"
        self.imms = known.imms if known is not None else ()
        self.pure = known.pure if known is not None else not name.startswith(_PREFIX)
        self.uniform = known.uniform if known is not None else False


def check_call(name: str, result: str, args: Sequence[str], target: Target) -> IntrinsicCall:
    """Checks an intrinsic by its full name, result type and operand types.

    Raises:
        CodegenError: Unknown name, or another signature.
        TargetError: The target lacks it.
    """
    key = (name, result, target.processor, str(target.wave_size), *args)
    call = _CALLS.get(key)
    if call is None:
        call = _CALLS[key] = _checked(name, result, args, target)
    return call


def _checked(name: str, result: str, args: Sequence[str], target: Target) -> IntrinsicCall:
    if not name.startswith(_PREFIX):
        short = name.removeprefix("llvm.")
        while short and short not in GENERIC:
            short = short.rpartition(".")[0]
        if not short:
            raise CodegenError(
                f"intrinsic {name} does not lower on AMDGPU without a library",
                fix=f"use an llvm.amdgcn intrinsic, or one of: {', '.join(sorted(GENERIC))}",
            )
        return IntrinsicCall(name, result, args, None)
    known = find(name, target)
    signature = f"{result} ({', '.join(args)})"
    if known is not None and known.signature != signature:
        raise CodegenError(f"{name} is called as {signature}", fix=f"its signature is {known.signature}")
    return IntrinsicCall(name, result, args, known)
