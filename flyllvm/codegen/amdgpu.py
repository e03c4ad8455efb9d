"""AMD GPUs through LLVM's AMDGPU backend."""

from __future__ import annotations

from ..errors import CodegenError, TargetError
from ..ir import lltype as ll
from ..ir.protocols import LLValue
from ..ir.types import SPACES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..target import Target
    from .backend import KernelFacts
    from .function import FunctionBuilder
    from .options import Options

# Attribute `amdgpu-no-NAME` -> intrinsics whose use forbids it.  Without the attribute LLVM keeps a register or hidden
# kernel arguments (256 bytes) for it.  Source: LLVM AMDGPUUsage, function attributes.
_NO = {
    "completion-action": (),
    "default-queue": (),
    "dispatch-id": ("llvm.amdgcn.dispatch.id",),
    "dispatch-ptr": ("llvm.amdgcn.dispatch.ptr",),
    "flat-scratch-init": (),
    "heap-ptr": (),
    "hostcall-ptr": (),
    "implicitarg-ptr": ("llvm.amdgcn.implicitarg.ptr",),
    "lds-kernel-id": ("llvm.amdgcn.lds.kernel.id",),
    "multigrid-sync-arg": (),
    "queue-ptr": ("llvm.amdgcn.queue.ptr",),
    "workgroup-id-x": ("llvm.amdgcn.workgroup.id.x",),
    "workgroup-id-y": ("llvm.amdgcn.workgroup.id.y",),
    "workgroup-id-z": ("llvm.amdgcn.workgroup.id.z",),
    "workitem-id-y": ("llvm.amdgcn.workitem.id.y",),
    "workitem-id-z": ("llvm.amdgcn.workitem.id.z",),
    "cluster-id-x": ("llvm.amdgcn.cluster.id.x", "llvm.amdgcn.cluster.workgroup"),
    "cluster-id-y": ("llvm.amdgcn.cluster.id.y", "llvm.amdgcn.cluster.workgroup"),
    "cluster-id-z": ("llvm.amdgcn.cluster.id.z", "llvm.amdgcn.cluster.workgroup"),
}
_DIMS = "xyz"


class Amdgpu:
    """``Backend`` of AMD GPUs."""

    __slots__ = ()

    name = "amdgpu"
    triple = "amdgcn-amd-amdhsa"
    # Source: LLVM 22.1; the test suite compares it with the target machine's.
    data_layout = (
        "e-m:e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32-p8:128:128:128:48"
        "-p9:192:256:256:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024"
        "-v2048:2048-n32:64-S32-A5-G1-ni:7:8:9"
    )

    def space(self, name: str) -> int:
        """LLVM's number of a fly address space."""
        return SPACES[name]

    def kernel_linkage(self) -> str:
        """Protected: the loader resolves the symbol, nothing may replace it."""
        return "protected amdgpu_kernel"

    def module_flags(self, options: Options) -> list[str]:
        """The code object version."""
        return [f'i32 1, !"amdhsa_code_object_version", i32 {options.cov}']

    def attributes(self, facts: KernelFacts, target: Target, options: Options) -> list[str]:
        """What LLVM's IR passes would infer: it is known here, and the passes need not run."""
        threads = facts.threads
        if threads is None:
            sizes = f"1,{target.chip.max_workgroup_size}"
        else:
            if threads > target.chip.max_workgroup_size:
                raise TargetError(
                    f"kernel {facts.name} asks for {threads} work items in a workgroup of {target.processor}",
                    fix=f"at most {target.chip.max_workgroup_size}",
                )
            sizes = f"{threads},{threads}"
        out = ["nounwind", f'"amdgpu-flat-work-group-size"="{sizes}"', '"uniform-work-group-size"="true"']
        waves = facts.waves_per_eu
        if waves is not None:
            out.append(f'"amdgpu-waves-per-eu"="{waves if isinstance(waves, int) else ",".join(map(str, waves))}"')
        if facts.max_registers is not None:
            if target.chip.family == "gfx1250":
                raise TargetError(
                    f"kernel {facts.name} asks for at most {facts.max_registers} registers",
                    fix="LLVM knows no such limit on gfx1250: use waves_per_eu",
                )
            # Where one file holds VGPRs and AGPRs, LLVM takes the number for each half of it.
            halves = 2 if target.chip.family.startswith("cdna") else 1
            out.append(f'"amdgpu-num-vgpr"="{max(1, facts.max_registers // halves)}"')
        if facts.cluster != (1, 1, 1):
            if target.chip.family != "gfx1250":
                raise TargetError(
                    f"kernel {facts.name} asks for clusters of {facts.cluster} workgroups",
                    fix=f"{target.processor} has no clusters of workgroups: leave cluster= out; they exist on gfx1250",
                )
            if options.cov < 600:
                raise CodegenError(
                    f"kernel {facts.name} asks for clusters in a code object of version {options.cov // 100}",
                    fix="pass cov=600: older versions do not say what clusters a kernel is made for",
                )
            out.append(f'"amdgpu-cluster-dims"="{",".join(map(str, facts.cluster))}"')
        if target.chip.family.startswith("cdna") and options.agpr != "allow":
            # No inline assembly names accumulation registers.  LLVM then keeps MFMA results where arithmetic finds
            # them, and still uses accumulation registers where the others run out; without it, a 128 x 128 tile has
            # 64 moves in its loop and a 256 x 256 tile spills.
            out.append('"amdgpu-agpr-alloc"="0"')
        if options.denormals == "flush_f32":
            out.append('"denormal-fp-math-f32"="preserve-sign,preserve-sign"')
        for name, users in _NO.items():
            if not any(i.startswith(users) for i in facts.intrinsics):
                out.append(f'"amdgpu-no-{name}"')
        return out

    # --- ids --------------------------------------------------------------------------------------

    def thread_id(self, em: FunctionBuilder, facts: KernelFacts, dim: int) -> LLValue:
        """The work item id with its range, so that LLVM knows the high bits are zero."""
        most = 1024 if facts.block_size is None else facts.block_size[dim]
        if most == 1:
            return em.const(ll.I32, 0)
        return _id(em, f"amdgcn.workitem.id.{_DIMS[dim]}", f"range(i32 0, {most}) ", False)

    def block_id(self, em: FunctionBuilder, facts: KernelFacts, dim: int) -> LLValue:
        """The workgroup id: a scalar."""
        return _id(em, f"amdgcn.workgroup.id.{_DIMS[dim]}", "", True)

    def block_dim(self, em: FunctionBuilder, facts: KernelFacts, dim: int) -> LLValue:
        """A constant where the block size is known; else from the hidden arguments or the dispatch packet."""
        if facts.block_size is not None:
            return em.const(ll.I32, facts.block_size[dim])
        if em.module.options.cov >= 500:
            return _hidden(em, "amdgcn.implicitarg.ptr", 12 + 2 * dim, ll.I16)
        return _hidden(em, "amdgcn.dispatch.ptr", 4 + 2 * dim, ll.I16)

    def grid_dim(self, em: FunctionBuilder, facts: KernelFacts, dim: int) -> LLValue:
        """The hidden block count; before version 5 the dispatch packet's grid size over the block size."""
        if em.module.options.cov >= 500:
            return _hidden(em, "amdgcn.implicitarg.ptr", 4 * dim, ll.I32)
        size = _hidden(em, "amdgcn.dispatch.ptr", 12 + 4 * dim, ll.I32)
        return em.binary("udiv", size, self.block_dim(em, facts, dim))

    def lane_id(self, em: FunctionBuilder, facts: KernelFacts) -> LLValue:
        """The low bits of the work item id in a one-dimensional workgroup, else a count of the lanes below."""
        wave = em.target.wave_size
        if facts.block_size is not None and facts.block_size[1:] == (1, 1):
            return em.binary("and", self.thread_id(em, facts, 0), em.const(ll.I32, wave - 1))
        all_lanes, zero = em.const(ll.I32, -1), em.const(ll.I32, 0)
        low = em.intrinsic("amdgcn.mbcnt.lo", ll.I32, [all_lanes, zero])
        return low if wave == 32 else em.intrinsic("amdgcn.mbcnt.hi", ll.I32, [all_lanes, low])

    def barrier(self, em: FunctionBuilder, fences: bool) -> None:
        """With fences: a bare ``s.barrier`` orders execution, not memory, and LLVM puts no LDS wait before it."""
        if fences:
            em.fence("release", "workgroup")
        em.intrinsic("amdgcn.s.barrier", ll.VOID, [])
        if fences:
            em.fence("acquire", "workgroup")

    def finish(self, object_bytes: bytes) -> bytes:
        """Links the relocatable object into a code object."""
        from ..codeobject import link

        return link(object_bytes)


def _id(em: FunctionBuilder, name: str, before: str, uniform: bool) -> LLValue:
    em.module.intrinsic_call(name, ll.I32, [], em.loc)
    return em.pure(ll.I32, f"call {before}i32 @llvm.{name}()", 0, uniform)


def _hidden(em: FunctionBuilder, name: str, offset: int, type: ll.LLType) -> LLValue:
    """An integer behind one of the kernel's hidden pointers; they never change while it runs."""
    pointer = ll.ptr(4)
    em.module.intrinsic_call(name, pointer, [], em.loc)
    base = em.pure(pointer, f"call align 4 dereferenceable(64) {pointer.text} @llvm.{name}()", 0, True)
    if offset:
        base = em.pure(pointer, f"getelementptr inbounds i8, {pointer.text} {base.text}, i64 {offset}", 0, True)
    node = em.module.node("")
    align = type.bits // 8
    rhs = f"load {type.text}, {pointer.text} {base.text}, align {align}, !invariant.load !{node}"
    return em.cast("zext", em.pure(type, rhs, 0, True), ll.I32)
