"""LLVM IR as one would write it by hand, to compare registers with."""

from __future__ import annotations

_HEAD = """target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @product(ptr addrspace(1) %A, ptr addrspace(1) %B, ptr addrspace(1) %C) #0 {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %row = and i32 %t, 15
  %group = lshr i32 %t, 4
  %rA = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) %A, i16 0, i64 8192, i32 159744)
  %rB = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) %B, i16 0, i64 2048, i32 159744)
  %line = shl i32 %row, 7
"""
_TAIL = """  ret void
}
attributes #0 = { "amdgpu-flat-work-group-size"="64,64" "amdgpu-agpr-alloc"="0" }
"""
_KINDS = {32: ("i32", "i32"), 64: ("i64", "i64"), 128: ("v4i32", "<4 x i32>")}


def fp8_product(bits: int) -> str:
    """C = A B^T of (64, 128) and (16, 128) fp8 in one wave, the operands loaded ``bits`` at a time."""
    out = [_HEAD, f"  %k = mul i32 %group, {max(bits // 8, 8)}\n  %at = or i32 %line, %k\n"]
    frag_b = _operand(out, "B", 0, bits)
    frag_a = [_operand(out, "A", tile, bits) for tile in range(4)]
    sums = ["zeroinitializer"] * 4
    for k in range(4):
        for tile in range(4):
            out.append(
                f"  %sum{tile}.{k} = call <4 x float> @llvm.amdgcn.mfma.f32.16x16x32.fp8.fp8("
                f"i64 {frag_a[tile][k]}, i64 {frag_b[k]}, <4 x float> {sums[tile]}, i32 0, i32 0, i32 0)\n"
            )
            sums[tile] = f"%sum{tile}.{k}"
    out.append("  %rows = shl i32 %group, 6\n  %place = or i32 %rows, %row\n  %wide = zext i32 %place to i64\n")
    out.append("  %p = getelementptr float, ptr addrspace(1) %C, i64 %wide\n")
    for tile in range(4):
        for e in range(4):
            out.append(
                f"  %d{tile}.{e} = extractelement <4 x float> {sums[tile]}, i32 {e}\n"
                f"  %p{tile}.{e} = getelementptr float, ptr addrspace(1) %p, i64 {tile * 256 + e * 16}\n"
                f"  store float %d{tile}.{e}, ptr addrspace(1) %p{tile}.{e}\n"
            )
    return "".join([*out, _TAIL])


def _operand(out: list[str], name: str, tile: int, bits: int) -> list[str]:
    """Loads the four steps of K of one tile; gives the names of their i64 values."""
    suffix, kind = _KINDS[bits]
    held = []
    for step in range(2 if bits == 128 else 4):
        at, loaded = tile * 2048 + step * (64 if bits == 128 else 32), []
        value = f"%{name}{tile}.{step}"
        for part in range(2 if bits == 32 else 1):
            out.append(
                f"  {value}.o{part} = add i32 %at, {at + 4 * part}\n  {value}.l{part} = call {kind} "
                f"@llvm.amdgcn.raw.ptr.buffer.load.{suffix}(ptr addrspace(8) %r{name}, i32 {value}.o{part}, "
                "i32 0, i32 0)\n"
            )
            loaded.append(f"{value}.l{part}")
        if bits == 64:
            held.append(loaded[0])
        elif bits == 32:
            out.append(
                f"  {value}.low = insertelement <2 x i32> poison, i32 {loaded[0]}, i32 0\n"
                f"  {value}.both = insertelement <2 x i32> {value}.low, i32 {loaded[1]}, i32 1\n"
                f"  {value} = bitcast <2 x i32> {value}.both to i64\n"
            )
            held.append(value)
        else:
            out.append(f"  {value}.pair = bitcast <4 x i32> {loaded[0]} to <2 x i64>\n")
            for e in range(2):
                out.append(f"  {value}.e{e} = extractelement <2 x i64> {value}.pair, i32 {e}\n")
                held.append(f"{value}.e{e}")
    return held
