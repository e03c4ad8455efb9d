"""Fly IR (stage ``atoms`` or ``ssa``) to LLVM IR text."""

from __future__ import annotations

from ..errors import CodegenError
from ..ir import lltype as ll, types as t
from ..ir.protocols import LLValue
from ..printf import PARAMETER
from .backend import KernelFacts, backend_for
from .debug_info import DebugInfo
from .function import RESERVED, FunctionBuilder
from .levers import mark_folded, mark_large_tile
from .lower import Lowering, Pointer
from .module import ModuleBuilder, check_name, quoted
from .options import Options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..ir.core import Kernel, Module, Value
    from ..target import Target
    from .backend import Backend

__all__ = ["emit_module"]


def emit_module(module: Module, target: Target, options: Options | None = None) -> str:
    """The LLVM IR of a module, as text; the same module gives the same text.

    Args:
        module: Kernels at stage ``atoms`` or ``ssa``.
        target: What to compile for.
        options: See ``Options``.

    Raises:
        CodegenError: The IR cannot be lowered; names the operation and the author's line.
        StateError: An atom is used with an unset state field.
        TargetError: The target lacks an intrinsic or has too little LDS.
    """
    options = options or Options()
    if not module.kernels:
        raise CodegenError("a module without kernels", fix="add at least one kernel")
    backend = backend_for(target)
    out = ModuleBuilder(backend, target, options)
    flags = backend.module_flags(options)
    if options.debug:
        frames = module.kernels[0].loc.frames
        out.debug = DebugInfo(out, frames[0].file if frames else module.kernels[0].name, options.source_prefix)
        out.named["llvm.dbg.cu"] = [out.debug.unit]
        flags = [*flags, 'i32 2, !"Debug Info Version", i32 3', 'i32 7, !"Dwarf Version", i32 5']
    if flags:
        out.named["llvm.module.flags"] = [out.node(f) for f in flags]
    carried = 0
    for kernel in module.kernels:
        text = f"@{quoted(kernel.name)}"
        if text in out.taken:
            raise CodegenError(f"two globals are called {kernel.name}", _where(kernel), "give each kernel its own name")
        check_name(kernel.name, _where(kernel))
        out.taken.add(text)
    for kernel in module.kernels:
        carried = max(carried, _emit_kernel(out, kernel, target, options))
    out.check_lds()
    text = mark_large_tile(out.text(module.kernels[0].name), carried)
    return mark_folded(text, out.folded, out.whole, carried)


def _where(kernel: Kernel) -> object | None:
    return kernel.loc if kernel.loc.frames else None


def _emit_kernel(out: ModuleBuilder, kernel: Kernel, target: Target, options: Options) -> int:
    """Emits a kernel; returns the registers of a lane that its loops carry, at most."""
    facts = KernelFacts(kernel.name, block_size(kernel), kernel.attrs.get("waves_per_eu"), kernel.attrs.get("maxnreg"))
    facts.cluster = kernel.attrs.get("cluster") or (1, 1, 1)
    out.facts = facts
    for name in [n for n in out.known_align if n.startswith("%")]:
        del out.known_align[name]
    em = FunctionBuilder(out, target)
    lw = Lowering(em, facts, options, target)
    if out.debug is not None:
        lw.subprogram = out.debug.kernel(kernel)
    params = _Parameters(lw, kernel)
    lw.block(kernel.body)
    if facts.prints:
        params.add_printf_buffer()
    em.dbg = ""
    em.line("ret void")
    body = em.text()
    out.drop_unused_lds(body)
    out.functions.append(_header(out.backend, lw, kernel, params) + "\nentry:\n" + body + "\n}\n")
    return facts.carried_registers


def block_size(kernel: Kernel) -> tuple[int, int, int] | None:
    """Work items per workgroup in x, y, z, or ``None`` where the launch decides.

    Raises:
        CodegenError: ``known_block_size`` is not one to three positive integers.
    """
    size = kernel.attrs.get("known_block_size")
    if size is None:
        return None
    sizes = (size,) if isinstance(size, int) else tuple(size)
    if not 1 <= len(sizes) <= 3 or any(not isinstance(n, int) or n < 1 for n in sizes):
        raise CodegenError(
            f"known_block_size {size!r} of kernel {kernel.name}", _where(kernel), "give one to three positive integers"
        )
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def _header(backend: Backend, lw: Lowering, kernel: Kernel, params: _Parameters) -> str:
    module = lw.em.module
    group = module.group(" ".join(backend.attributes(lw.facts, lw.target, lw.options)))
    linkage = backend.kernel_linkage()
    head = f"define {linkage} void" if linkage else "define void"
    text = f"{head} @{quoted(kernel.name)}({', '.join(params.texts)}) #{group}"
    if lw.facts.block_size is not None and backend.name == "amdgpu":
        node = module.node(", ".join(f"i32 {n}" for n in lw.facts.block_size))
        text += f" !reqd_work_group_size !{node}"
    if lw.subprogram is not None:
        text += f" !dbg !{lw.subprogram}"
    return text + " {"


class _Parameters:
    """The parameters of a kernel, and their values.

    Attributes:
        texts: Each parameter as LLVM text.
    """

    __slots__ = ("_names", "kernel", "lw", "texts")

    def __init__(self, lw: Lowering, kernel: Kernel) -> None:
        self.lw = lw
        self.kernel = kernel
        self.texts: list[str] = []
        self._names: set[str] = set()
        for arg, attrs in zip(kernel.args, kernel.arg_attrs):
            self._add(arg, attrs)

    def _add(self, arg: Value, attrs: dict[str, Any]) -> None:
        lw = self.lw
        name = self._name(str(attrs.get("name") or arg.name or "arg"))
        pointer = arg.type.ptr if isinstance(arg.type, t.MemRefType) else arg.type
        if isinstance(pointer, t.PtrType):
            self._pointer(arg, pointer, attrs, name)
            return
        if not isinstance(arg.type, (t.ScalarType, t.VectorType)):
            raise CodegenError(
                f"argument {name[1:]} of kernel {self.kernel.name} has type {arg.type}",
                _where(self.kernel),
                "pass numbers, vectors and pointers; the leaves of layouts as numbers",
            )
        type = t.storage(arg.type)
        if type.elem.bits % 8 and type is not ll.I1:
            raise CodegenError(
                f"argument {name[1:]} of kernel {self.kernel.name} has type {arg.type}, which no host value has",
                _where(self.kernel),
                "pass an i8 and truncate it",
            )
        # A host bool takes a byte of the argument block.
        held = ll.I8 if type is ll.I1 else type
        self.texts.append(f"{held.text}{self._preload()} noundef {name}")
        value = LLValue(held, name, None, True, 0)
        lw.values[arg] = lw.em.cast("trunc", value, type) if held is not type else value

    def _pointer(self, arg: Value, pointer: t.PtrType, attrs: dict[str, Any], name: str) -> None:
        lw = self.lw
        module = lw.em.module
        if pointer.space in ("register", "buffer_desc"):
            raise CodegenError(
                f"argument {name[1:]} of kernel {self.kernel.name} lives in {pointer.space} memory",
                _where(self.kernel),
                "pass a global pointer and make the descriptor in the kernel",
            )
        type = ll.ptr(module.backend.space(pointer.space))
        align = max(int(attrs.get("align") or 1), pointer.align)
        align &= -align
        module.known_align[name] = align
        words = [w for w in ("noalias", "readonly", "writeonly") if attrs.get(w)]
        if attrs.get("dereferenceable"):
            words.append(f"dereferenceable({int(attrs['dereferenceable'])})")
        text = " ".join([type.text + self._preload(), "noundef", *words, f"align {align}", name])
        self.texts.append(text)
        lw.values[arg] = Pointer(LLValue(type, name, None, True, 0))

    def add_printf_buffer(self) -> None:
        """The trailing pointer that a kernel prints through; see `flyllvm.printf`."""
        type = ll.ptr(self.lw.em.module.backend.space("global"))
        self.texts.append(f"{type.text}{self._preload()} noundef align 16 %{PARAMETER}")

    def _preload(self) -> str:
        return " inreg" if len(self.texts) < self.lw.options.preload_kernargs else ""

    def _name(self, wanted: str) -> str:
        """A name of its own that no value or block of the body has."""
        name = wanted
        stem = name.rstrip("0123456789")
        if name in ("entry", PARAMETER) or (stem != name and stem in RESERVED):
            name += "_"
        while name in self._names:
            name += "_"
        self._names.add(name)
        return "%" + quoted(name)
