"""One LLVM module as text: declarations, LDS, attributes, metadata."""

from __future__ import annotations

from ..errors import CodegenError, FlyError, TargetError
from ..ir import lltype as ll
from ..ir.ops_fly import DYNAMIC_LDS_ALIGN
from .debug_info import escape
from .intrinsics import IntrinsicCall, check_call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..ir.location import Location
    from ..ir.protocols import LLValue
    from ..target import Target
    from .backend import Backend, KernelFacts
    from .debug_info import DebugInfo
    from .options import Options

#: Name of the LDS that is given at launch.
DYNAMIC_LDS = "@flyllvm.dynamic_lds"
# An LDS allocation is aligned up to this many bytes to make swizzles cheap; beyond it, padding would cost more.
_MAX_RAISED_ALIGN = 8192
WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._$-")


class LdsGlobal:
    """A static LDS allocation.

    Attributes:
        bytes: Size.
        align: Alignment in bytes.
        kernel: Kernel it belongs to.
        loc: Where the author asked for it.
    """

    __slots__ = ("align", "bytes", "kernel", "loc")

    def __init__(self, bytes: int, align: int, kernel: str, loc: Location) -> None:
        self.bytes = bytes
        self.align = align
        self.kernel = kernel
        self.loc = loc


def check_name(name: str, where: object) -> None:
    """Refuses the name of a kernel or an LDS allocation that LLVM keeps for itself.

    Raises:
        CodegenError: It does.
    """
    if name.startswith("llvm."):
        raise CodegenError(f"the name {name}: LLVM keeps names that begin with llvm. for itself", where, "rename it")


class ModuleBuilder:
    """What the kernels of a module share.

    Attributes:
        facts: Facts about the kernel being emitted.
        folded: Accesses in loops whose address the instruction itself adds up from parts, see `levers`.
        formats: What the kernels print, each once.
        taken: Operand texts of globals that are no LDS allocations.
        known_align: Alignment in bytes of base pointers, by operand text.
        whole: Accesses in loops whose address is computed for each lane.
    """

    __slots__ = (
        "_nodes", "backend", "calls", "debug", "dynamic", "facts", "folded", "formats", "functions", "groups",
        "known_align", "lds", "named", "nodes", "options", "taken", "target",
        "whole",
    )  # fmt: skip

    def __init__(self, backend: Backend, target: Target, options: Options) -> None:
        self.backend = backend
        self.target = target
        self.options = options
        self.facts: KernelFacts | None = None
        self.debug: DebugInfo | None = None
        self.formats: dict[str, int] = {}
        self.functions: list[str] = []
        self.calls: dict[tuple[str, LLTypes], IntrinsicCall] = {}
        self.lds: dict[str, LdsGlobal] = {}
        self.taken = {DYNAMIC_LDS}
        self.dynamic = 0
        self.known_align: dict[str, int] = {}
        self.groups: dict[str, int] = {}
        self.nodes: list[str] = []
        self._nodes: dict[str, int] = {}
        self.named: dict[str, list[int]] = {}
        self.folded = 0
        self.whole = 0

    # --- intrinsics -------------------------------------------------------------------------------

    def intrinsic_call(self, name: str, result: ll.LLType, args: Sequence[LLValue], loc: Location) -> IntrinsicCall:
        """The checked call of an intrinsic, named without ``llvm.``.

        Raises:
            CodegenError: Unknown name, other signature, or an operand that must be a constant and is not.
            TargetError: The target lacks it.
        """
        key = (name, (result, *[a.type for a in args]))
        call = self.calls.get(key)
        if call is None:
            try:
                call = check_call(f"llvm.{name}", result.text, [a.type.text for a in args], self.target)
            except FlyError as e:
                raise (e.at(loc) if loc.frames else e) from None
            self.calls[key] = call
        if self.facts is not None:
            self.facts.intrinsics.add(call.name)
        for i in call.imms:
            if args[i].const is None:
                raise _not_constant(name, i, loc)
        return call

    # --- LDS --------------------------------------------------------------------------------------

    def add_lds(self, symbol: str, size: int, align: int, loc: Location) -> str:
        """A static LDS allocation; returns its operand text."""
        kernel = self.facts.name if self.facts is not None else ""
        name = symbol or f"{kernel}.lds"
        check_name(name, loc)
        text, n = f"@{quoted(name)}", 0
        while text in self.lds or text in self.taken:
            n += 1
            text = f"@{quoted(f'{name}.{n}')}"
        self.lds[text] = LdsGlobal(size, align, kernel, loc)
        self.known_align[text] = align
        return text

    def use_dynamic_lds(self) -> str:
        """The LDS that is given at launch; returns its operand text."""
        self.dynamic = max(self.dynamic, DYNAMIC_LDS_ALIGN)
        self.known_align[DYNAMIC_LDS] = self.dynamic
        return DYNAMIC_LDS

    def align_base(self, base: LLValue, align: int) -> bool:
        """Whether a base pointer is aligned to that many bytes; an LDS allocation is made so."""
        known = self.known_align.get(base.text, 1)
        if known >= align:
            return True
        if align > _MAX_RAISED_ALIGN:
            return False
        if base.text in self.lds:
            self.lds[base.text].align = align
        elif base.text == DYNAMIC_LDS:
            self.dynamic = align
        else:
            return False
        self.known_align[base.text] = align
        return True

    def drop_unused_lds(self, body: str) -> None:
        """Removes the allocations of the kernel just emitted that its text does not mention."""
        for text, lds in list(self.lds.items()):
            if self.facts is not None and lds.kernel == self.facts.name and not mentions(body, text):
                del self.lds[text]

    def check_lds(self) -> None:
        """Compares the static LDS of each kernel with what the target has.

        Raises:
            TargetError: A kernel needs more.
        """
        for kernel in {lds.kernel: None for lds in self.lds.values()}:
            own = [(text, lds) for text, lds in self.lds.items() if lds.kernel == kernel]
            total = 0
            for _, lds in sorted(own, key=lambda item: -item[1].align):
                total = -(-total // lds.align) * lds.align + lds.bytes
            if total > self.target.lds_bytes:
                parts = ", ".join(f"{text} {lds.bytes}" for text, lds in own)
                raise TargetError(
                    f"kernel {kernel} allocates {total} bytes of LDS ({parts}); "
                    f"{self.target.processor} has {self.target.lds_bytes} bytes for a workgroup",
                    own[-1][1].loc if own[-1][1].loc.frames else None,
                    "use smaller tiles or fewer stages, or a target with more LDS",
                )

    # --- text -------------------------------------------------------------------------------------

    def node(self, content: str) -> int:
        """The number of a metadata node; equal nodes share one.

        Args:
            content: A debug node (``!DI...``, ``distinct ...``), or the members of a tuple.
        """
        found = self._nodes.get(content)
        if found is None:
            found = len(self.nodes)
            self.nodes.append(content if content.startswith(("!DI", "distinct ")) else f"!{{{content}}}")
            self._nodes[content] = found
        return found

    def new_node(self, content: str) -> int:
        """A distinct node; ``{self}`` in it stands for its own number."""
        number = len(self.nodes)
        self.nodes.append(content.replace("{self}", str(number)))
        return number

    def format_number(self, text: str) -> int:
        """The number of a format of ``flyllvm.printf``."""
        return self.formats.setdefault(text, len(self.formats))

    def group(self, attributes: str) -> int:
        """The number of an attribute group."""
        return self.groups.setdefault(attributes, len(self.groups))

    def text(self, name: str) -> str:
        """The module."""
        space = self.backend.space("shared")
        tail = f"addrspace({space}) " if space else ""
        out = [
            f'source_filename = "{escape(name)}"',
            f'target datalayout = "{self.backend.data_layout}"',
            f'target triple = "{self.backend.triple}"',
            "",
        ]
        for text, lds in self.lds.items():
            out.append(f"{text} = internal {tail}global [{lds.bytes} x i8] poison, align {lds.align}")
        if self.dynamic:
            out.append(f"{DYNAMIC_LDS} = external {tail}global [0 x i8], align {self.dynamic}")
        out.append("")
        out.extend(self.functions)
        out.extend(sorted({call.declaration for call in self.calls.values()}))
        out.append("")
        out.extend([f"attributes #{number} = {{ {text} }}" for text, number in self.groups.items()])
        for key, numbers in self.named.items():
            out.append(f"!{key} = !{{{', '.join(f'!{n}' for n in numbers)}}}")
        out.extend([f"!{i} = {text}" for i, text in enumerate(self.nodes)])
        if self.formats:
            from ..printf import comments

            out.extend(comments(list(self.formats)))
        return "\n".join(out) + "\n"


def _not_constant(name: str, index: int, loc: Location) -> FlyError:
    return CodegenError(
        f"operand {index} of llvm.{name} is a run-time value, but the instruction holds it as an immediate",
        loc if loc.frames else None,
        "pass a compile-time constant",
    )


def quoted(name: str) -> str:
    """A symbol or value name as LLVM spells it."""
    if name and not name[0].isdigit() and all(c in WORD for c in name):
        return name
    return f'"{escape(name)}"'


def mentions(body: str, name: str) -> bool:
    """Whether a name occurs in the text as a whole word."""
    at = body.find(name)
    while at >= 0:
        end = at + len(name)
        if end >= len(body) or body[end] not in WORD:
            return True
        at = body.find(name, end)
    return False


LLTypes = tuple[ll.LLType, ...]
