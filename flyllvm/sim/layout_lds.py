"""Where variables live: LDS, stack slots, and constant data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import LaunchError, SimError
from ..target import Target
from . import convert, types as ty
from .cfg import Node
from .dma import is_buffer_access, is_dma
from .ir import Const, Function, Global, Inst, Module, Operand
from .memory import HEAP_BASE, Region, unit_of
from .values import Array, constant

if TYPE_CHECKING:
    from .compile import Compiler

# Between LDS variables and between stack slots; the hardware packs them, so their real sum is checked apart.
_GAP_BYTES = 256
# Constant data of the module starts the heap; the buffers of the caller follow.
_FIRST_BYTES = 4096


def _up(value: int, align: int) -> int:
    return -(-value // align) * align


class LdsLayout:
    """Addresses of the LDS variables of a module.

    Raises:
        LaunchError: They need more LDS than the target has.
    """

    def __init__(self, module: Module, kernel: Function, target: Target) -> None:
        self.target, self.kernel = target, kernel
        self.addresses: dict[str, int] = {}
        self.fixed: list[Region] = []
        self.dynamic: list[Global] = []
        self.static_bytes = end = 0
        for variable in module.globals.values():
            if variable.space != 3:
                continue
            size = ty.alloc_size(variable.type)
            align = max(variable.align, ty.abi_align(variable.type))
            if variable.external or size == 0:
                self.dynamic.append(variable)
                continue
            self.static_bytes = _up(self.static_bytes, align) + size
            start = _up(end, max(align, 128))
            self.addresses[variable.name] = start
            self.fixed.append(Region(variable.name, start, size))
            end = start + size + _GAP_BYTES
        dynamic_align = max((max(v.align, ty.abi_align(v.type)) for v in self.dynamic), default=1)
        # What is given at launch starts behind the rest at its own alignment; the backend counts the padding as static.
        self.static_bytes = _up(self.static_bytes, dynamic_align)
        self.dynamic_start = _up(end, max(dynamic_align, 128))
        for variable in self.dynamic:
            self.addresses[variable.name] = self.dynamic_start

    def regions(self, dynamic_bytes: int) -> tuple[list[Region], int]:
        """The regions with that much dynamic LDS, and the bytes of one copy (a multiple of 16)."""
        regions = list(self.fixed)
        end = self.dynamic_start
        if dynamic_bytes:
            name = self.dynamic[0].name if self.dynamic else "dynamic LDS"
            regions.append(Region(name, self.dynamic_start, dynamic_bytes))
            end += dynamic_bytes
        total = self.static_bytes + dynamic_bytes
        if total > self.target.lds_bytes:
            raise LaunchError(
                f"@{self.kernel.name} needs {total} bytes of LDS, {self.target.processor} has {self.target.lds_bytes}",
                fix="use smaller tiles or fewer stages",
            )
        return regions, _up(end, 16) if regions else 0


class ConstantData:
    """The global variables outside LDS: their bytes go into the heap of a launch."""

    def __init__(self, module: Module) -> None:
        self.addresses: dict[str, int] = {}
        self.items: list[tuple[Region, Global]] = []
        address = HEAP_BASE + _FIRST_BYTES
        for variable in module.globals.values():
            if variable.space == 3 or variable.external:
                continue
            address = _up(address, max(variable.align, ty.abi_align(variable.type), 16))
            size = ty.alloc_size(variable.type)
            self.addresses[variable.name] = address
            self.items.append((Region("@" + variable.name, address, size, variable.constant), variable))
            address += size + _GAP_BYTES
        self.end = _up(address, 256)

    def image(self, variable: Global, addresses: dict[str, int]) -> Array:
        """The initial bytes of a variable."""
        out = np.zeros(ty.alloc_size(variable.type), np.uint8)
        if variable.init is not None:
            _write(out, 0, variable.type, variable.init, addresses)
        return out


def _write(out: Array, at: int, t: ty.Type, init: Operand, addresses: dict[str, int]) -> None:
    if isinstance(init, Const) and init.kind in ("zero", "undef", "poison"):
        return
    if isinstance(init, Const) and init.kind == "bytes":
        out[at : at + len(init.value)] = np.frombuffer(init.value, np.uint8)
        return
    if isinstance(t, (ty.StructType, ty.ArrayType)) and isinstance(init, Const):
        offsets = (
            ty.struct_offsets(t) if isinstance(t, ty.StructType) else
            [i * ty.alloc_size(t.elem) for i in range(t.count)]
        )  # fmt: skip
        for offset, elem in zip(offsets, init.value, strict=False):
            _write(out, at + offset, elem.type, elem, addresses)
        return
    raw = convert.to_bytes(t, constant(init, addresses)).ravel()
    out[at : at + raw.size] = raw


def lay_out_frame(compiler: Compiler, graph: list[Node]) -> None:
    """Gives every ``alloca`` a fixed place in the lane's private memory.

    Raises:
        SimError: An ``alloca`` of a run-time size, or one in a loop whose address outlives a turn of it.
    """
    program, end = compiler.program, 0
    restored = any(inst.callee and "stackrestore" in inst.callee for node in graph for inst in node.insts)
    for node in graph:
        for inst in node.insts:
            if inst.op != "alloca":
                continue
            base = inst.extra["base_type"]
            count = compiler.literal(inst.operands[0]) if inst.operands else 1
            if count is None:
                raise SimError(
                    f"'{program.text_of(inst)}' has a run-time size", program.where(inst), "give it a constant size"
                )
            if not restored and _is_repeated(graph, node, inst) and _escapes(compiler, inst):
                raise SimError(
                    f"'{program.text_of(inst)}' is in a loop and its address outlives a turn: every turn has a place "
                    "of its own, the simulator has one", program.where(inst), "move it to the function's first block",
                )  # fmt: skip
            align = max(inst.extra.get("align", 0), ty.abi_align(base))
            start = _up(end, max(align, 16))
            inst.extra["address"] = start
            program.frame_regions.append(Region(f"%{inst.name}", start, count * ty.alloc_size(base)))
            end = start + count * ty.alloc_size(base) + 64
    program.frame_bytes = _up(end, 16)


def _is_repeated(graph: list[Node], node: Node, alloca: Inst) -> bool:
    """Whether an ``alloca`` is in a loop of the function that it belongs to, or of what that calls."""
    frame = alloca.inlined_from
    for header in graph:
        chain = header.end.inlined_from
        inside = not frame or (len(chain) >= len(frame) and all(a is b for a, b in zip(chain[-len(frame) :], frame)))
        if node.index in header.header_of and inside:
            return True
    return False


_ADDRESSES = frozenset(("getelementptr", "addrspacecast", "bitcast", "select", "freeze"))


def _escapes(compiler: Compiler, alloca: Inst) -> bool:
    """Whether an address is stored, carried round a loop or made a number."""
    work, seen = [str(alloca.name)], set()
    while work:
        name = work.pop()
        for user in compiler.uses.get(name, ()):
            if user.op in _ADDRESSES and user.name not in seen:
                seen.add(user.name)
                work.append(str(user.name))
            elif user.op in ("load", "atomicrmw", "cmpxchg") or user.op in _ADDRESSES:
                continue
            elif user.op == "store" and getattr(user.operands[0], "name", None) != name:
                continue
            elif user.op != "call" or not (user.callee or "").startswith(("llvm.mem", "llvm.lifetime")):
                return True
    return False


def granule(graph: list[Node], spaces: tuple[int, ...]) -> int:
    """Bytes that divide the size and alignment of every access that may touch one of these address spaces."""
    smallest = 16
    for node in graph:
        for inst in node.insts:
            smallest = min(smallest, _access_unit(inst, spaces))
    return smallest


def _access_unit(inst: Inst, spaces: tuple[int, ...]) -> int:
    if inst.op in ("load", "store", "atomicrmw", "cmpxchg"):
        pointer = inst.operands[1] if inst.op == "store" else inst.operands[0]
        value = inst.operands[0].type if inst.op == "store" else inst.type
        if inst.op == "cmpxchg":
            value = inst.operands[1].type
        space = getattr(pointer.type, "space", 0)
        if space not in spaces and not (space == 7 and 1 in spaces):
            return 16
        if isinstance(value, (ty.StructType, ty.ArrayType)):
            return 1
        return unit_of(ty.store_size(value), inst.extra.get("align") or ty.abi_align(value))
    if inst.op == "call" and inst.callee and inst.callee.startswith("llvm."):
        if is_dma(inst):
            return 1
        if is_buffer_access(inst) and 1 in spaces:
            data = inst.operands[0].type if inst.type is ty.VOID else inst.type
            return min(4, max(1, ty.bit_size(ty.scalar_of(data)) // 8))
        touches = any(getattr(o.type, "space", -1) in spaces for o in inst.operands)
        if touches and inst.callee.startswith(("llvm.mem", "llvm.amdgcn.ds.", "llvm.amdgcn.global.load")):
            return 1
    return 16
