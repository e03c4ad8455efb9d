"""Loads, stores, stack slots and fences."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SimError
from . import convert, ordering, poison, transfer, types as ty
from .ir import Inst
from .race_fault import ATOMIC
from .sync import synchronises_waves
from .values import LDS_APERTURE, PRIVATE_APERTURE, Array, scalar

if TYPE_CHECKING:
    from .compile import Compiler, Op
    from .machine import Machine

_SPACES = {1: "global", 4: "global", 0: "flat", 3: "LDS", 5: "private"}


Loader = Callable[["Machine", Array], Any]


def parts_of(t: ty.Type) -> list[tuple[int, ty.Type]] | None:
    """Offset and type of the members of an aggregate."""
    if isinstance(t, ty.StructType):
        return list(zip(ty.struct_offsets(t), t.elems or (), strict=False))
    if isinstance(t, ty.ArrayType):
        return [(i * ty.alloc_size(t.elem), t.elem) for i in range(t.count)]
    return None


def loader(inst: Inst, t: ty.Type, space_name: str, align: int) -> Loader:
    """A function that loads a value of type ``t`` from addresses."""
    parts = parts_of(t)
    if parts is not None:
        loaders = [(o, loader(inst, e, space_name, min(align, o & -o) if o else align)) for o, e in parts]

        def load_parts(m: Machine, address: Array) -> Any:
            return tuple(fn(m, address + address.dtype.type(o)) for o, fn in loaders)

        return load_parts
    if space_name == "flat":
        return _flat_loader(inst, t, align)
    if isinstance(t, ty.PtrType) and t.space in (7, 8):
        return _descriptor_loader(inst, t, space_name, align)
    byte_count = ty.store_size(t)
    plain = ty.bit_size(ty.scalar_of(t)) in (8, 16, 32, 64)
    dtype, vector, atomic = ty.dtype_of(t), isinstance(t, ty.VecType), "atomic" in inst.flags

    def load(m: Machine, address: Array) -> Any:
        where = transfer.locate(m, inst, space_name, address, byte_count, align, False)
        raw = transfer.read(m, inst, where, byte_count, atomic)
        if plain:
            value = raw.view(dtype)
            value = value if vector else value[..., 0]
        else:
            value = convert.from_bytes(t, raw.view(np.uint8))
        return transfer.expanded(m, value) if where.packed else value

    return load


def _descriptor_loader(inst: Inst, t: ty.PtrType, space_name: str, align: int) -> Loader:
    if t.space == 7:
        raise SimError("loads of fat buffer pointers are not known", fix="load the parts")
    words = loader(inst, ty.vec_type(4, ty.I32), space_name, align)

    def load(m: Machine, address: Array) -> Any:
        return rsrc_from_words(words(m, address))

    return load


def rsrc_from_words(words: Array) -> tuple[Array, Array, Array, Array]:
    """A buffer descriptor from its four 32-bit words.

    Source: CDNA3 ISA manual, buffer resource descriptor (V#).
    """
    low, high = words[..., 0].astype(np.uint64), words[..., 1].astype(np.uint64)
    base = low | (high & np.uint64(0xFFFF)) << np.uint64(32)
    stride = (words[..., 1] >> np.uint32(16) & np.uint32(0x3FFF)).astype(np.uint16)
    return base, stride, words[..., 2].astype(np.uint64), words[..., 3]


def words_from_rsrc(rsrc: tuple[Array, ...]) -> Array:
    """The four 32-bit words of a buffer descriptor."""
    base, stride, records, flags = rsrc[:4]
    low = (base & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    high = (base >> np.uint64(32) & np.uint64(0xFFFF)).astype(np.uint32) | stride.astype(np.uint32) << np.uint32(16)
    parts = np.broadcast_arrays(low, high, records.astype(np.uint32), flags)
    return np.stack(parts, axis=-1)


def each_flat(m: Machine, address: Array, action: Callable[[str, Array], Any]) -> list[tuple[Array, Any]]:
    """Runs an access once per memory that flat addresses point to, with the lanes of that memory."""
    wide = np.broadcast_to(address, m.shape)
    high = wide >> np.uint64(32)
    masks = {"LDS": high == LDS_APERTURE, "private": high == PRIVATE_APERTURE}
    masks["global"] = ~(masks["LDS"] | masks["private"])
    saved, results = m.mask, []
    for name, mask in masks.items():
        lanes = mask & saved
        if lanes.any():
            m.enter(lanes)
            target = wide if name == "global" else wide.astype(np.uint32)
            results.append((lanes, action(name, target)))
    m.enter(saved)
    return results


def _flat_loader(inst: Inst, t: ty.Type, align: int) -> Loader:
    loaders = {name: loader(inst, t, name, align) for name in ("global", "LDS", "private")}

    def load(m: Machine, address: Array) -> Any:
        value: Any = None
        for lanes, part in each_flat(m, address, lambda name, a: loaders[name](m, a)):
            full = np.broadcast_to(part, m.shape + part.shape[3:])
            value = full if value is None else np.where(lanes[..., None] if full.ndim == 4 else lanes, full, value)
        return value

    return load


Storer = Callable[["Machine", Array, Any], None]


def storer(inst: Inst, t: ty.Type, space_name: str, align: int, flags: int = 0) -> Storer:
    """A function that stores a value of type ``t`` to addresses."""
    parts = parts_of(t)
    if parts is not None:
        storers = [(o, storer(inst, e, space_name, min(align, o & -o) if o else align, flags)) for o, e in parts]

        def store_parts(m: Machine, address: Array, value: Any) -> None:
            for (o, fn), part in zip(storers, value, strict=True):
                fn(m, address + address.dtype.type(o), part)

        return store_parts
    if space_name == "flat":
        each = {name: storer(inst, t, name, align, flags) for name in ("global", "LDS", "private")}

        def store_flat(m: Machine, address: Array, value: Any) -> None:
            each_flat(m, address, lambda name, a: each[name](m, a, value))

        return store_flat
    if isinstance(t, ty.PtrType) and t.space in (7, 8):
        words = storer(inst, ty.vec_type(4, ty.I32), space_name, align, flags)
        return lambda m, address, value: words(m, address, words_from_rsrc(value))
    byte_count = ty.store_size(t)

    def store(m: Machine, address: Array, value: Any) -> None:
        where = transfer.locate(m, inst, space_name, address, byte_count, align, True)
        if where.packed:
            value = transfer.running(m, value)
            raw = convert.to_bytes(t, value)
        else:
            raw = convert.to_bytes(t, value)
        transfer.write(m, inst, where, raw, flags)

    return store


def space_of(c: Compiler, inst: Inst, position: int) -> str:
    """Name of the memory that a pointer operand points to."""
    space = getattr(inst.operands[position].type, "space", 0)
    name = _SPACES.get(space)
    if name is None:
        raise SimError(
            f"'{c.program.text_of(inst)}': no access to address space {space}", c.program.where(inst),
            "address spaces that can be accessed: 0 (flat), 1, 4 (global), 3 (LDS), 5 (private), 7 (buffer)",
        )  # fmt: skip
    return name


def build_load(c: Compiler, inst: Inst) -> list[Op]:
    """``load``."""
    if getattr(inst.operands[0].type, "space", 0) == 7:
        from . import fat

        return fat.build_load(c, inst)
    align = inst.extra.get("align") or ty.abi_align(inst.type)
    space_name = space_of(c, inst, 0)
    fn = loader(inst, inst.type, space_name, align)
    d, p = c.dest(inst), c.slot(inst.operands[0])
    guard = poison.guard(c, inst, [0], "the address")

    def run(r: list[Any], m: Machine) -> None:
        r[d] = fn(m, r[p])

    return [*([guard] if guard else []), run, *ordering.around(c, inst, 0, space_name)[1]]


def build_store(c: Compiler, inst: Inst) -> list[Op]:
    """``store``."""
    if getattr(inst.operands[1].type, "space", 0) == 7:
        from . import fat

        return fat.build_store(c, inst)
    t = inst.operands[0].type
    align = inst.extra.get("align") or ty.abi_align(t)
    flags = ATOMIC if "atomic" in inst.flags else 0
    space_name = space_of(c, inst, 1)
    fn = storer(inst, t, space_name, align, flags)
    before, after = ordering.around(c, inst, 1, space_name)
    v, p = c.slot(inst.operands[0]), c.slot(inst.operands[1])
    checks = [poison.guard(c, inst, [1], "the address"), poison.guard(c, inst, [0], "the stored value")]

    def run(r: list[Any], m: Machine) -> None:
        fn(m, r[p], r[v])

    return [*(k for k in checks if k), *before, transfer.somewhere(c, space_name, p, run), *after]


def build_alloca(c: Compiler, inst: Inst) -> list[Op]:
    """``alloca``: a fixed place in each lane's private memory, without content."""
    d, start = c.dest(inst), inst.extra["address"]
    flat = getattr(inst.type, "space", 5) == 0
    address = scalar(ty.I64, start | PRIVATE_APERTURE << 32) if flat else scalar(ty.I32, start)
    count = c.literal(inst.operands[0]) if inst.operands else 1
    size = (count or 1) * ty.alloc_size(inst.extra["base_type"])

    def run(r: list[Any], m: Machine) -> None:
        r[d] = address
        rows = m.private_written.reshape((*m.shape, -1))
        rows[m.mask, start : start + size] = False

    return [run]


def _orders_lds(c: Compiler, inst: Inst) -> bool:
    """Whether a fence with a memory-model annotation (``!mmra``) counts for LDS, too.

    Source: LLVM AMDGPUUsage, memory model relaxation annotations (``amdgpu-synchronize-as``).
    """
    node = inst.extra.get("metadata", {}).get("!mmra")
    text = c.module.metadata.get(node, node) if isinstance(node, str) else ""
    for _ in range(8):  # a list of annotations refers to its members
        inner = [c.module.metadata.get(word.strip("{}, "), "") for word in text.split() if word.startswith(("!", "{!"))]
        if "amdgpu-synchronize-as" in text or not any(inner):
            break
        text = " ".join(inner)
    return "amdgpu-synchronize-as" not in text or '"local"' in text


def build_fence(c: Compiler, inst: Inst) -> list[Op]:
    """``fence``: releases and acquires what barriers will order."""
    if not c.program.orders or not synchronises_waves(inst.extra.get("scope", "")) or not _orders_lds(c, inst):
        return []
    order = inst.extra.get("order", "")
    releases = order in ("release", "acq_rel", "seq_cst")
    acquires = order in ("acquire", "acq_rel", "seq_cst")

    def run(r: list[Any], m: Machine) -> None:
        if releases:
            m.sync.fence_release(m)
        if acquires:
            m.sync.acquire(m)

    return [run]
