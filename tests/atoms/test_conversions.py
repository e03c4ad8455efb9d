"""Conversions: the table against LLVM's signatures and the simulator, flavours, and kernels."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flyllvm
import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.atoms.rocdl.conversions import ROWS, Conversion, find
from flyllvm.codegen import intrinsics
from flyllvm.errors import AtomError, FlyError, TargetError
from flyllvm.expr.rocdl.cvt import convert
from flyllvm.sim import matrix_convert, matrix_convert_1250
from flyllvm.target import CHIPS, Target
from tests.atoms.test_selection import CHILD

# Of LLVM but not here: no small format is part of them.
LEFT_OUT = ("cvt.off", "cvt.pk.i16", "cvt.pk.u", "cvt.pknorm", "cvt.pkrtz")


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.python_name)
def test_rows_have_llvms_signature_and_the_chips_of_the_manual(row: Conversion) -> None:
    known = intrinsics.lookup(f"llvm.amdgcn.{row.name}")
    assert known is not None
    assert known.signature == f"{row.result} ({', '.join(row.args)})" and set(known.imms) == set(row.imms)
    assert set(row.chips) <= set(known.archs)
    extra = set(known.archs) - set(row.chips)
    assert not extra or (extra == {"gfx90a", "gfx942"} and row.name.startswith("cvt.scalef32."))
    simulated = {**matrix_convert.INTRINSICS, **matrix_convert_1250.INTRINSICS}[row.name]
    assert set(simulated.targets) == set(row.chips) and set(simulated.immediates) == set(row.imms)


def test_every_conversion_of_llvm_is_a_row_or_left_out_on_purpose() -> None:
    names = [line.split("\t")[0].removeprefix("llvm.amdgcn.") for line in intrinsics._table().splitlines()[1:]]
    found = {n for n in names if n.startswith("cvt.") and not any(word in n for word in LEFT_OUT)}
    assert found == {row.name for row in ROWS.values()}


@cache
def assembly(chip: str) -> dict[str, str]:
    """Assembly of one function for each conversion of a chip."""
    declarations, functions = [], []
    for i, row in enumerate(row for row in ROWS.values() if chip in row.chips):
        held = [f"{type_} %a{n}" for n, type_ in enumerate(row.args) if n not in row.imms]
        call = [
            f"{type_} {'false' if type_ == 'i1' else 0}" if n in row.imms else f"{type_} %a{n}"
            for n, type_ in enumerate(row.args)
        ]
        declarations.append(f"declare {row.result} @llvm.amdgcn.{row.name}({', '.join(row.args)})")
        functions.append(
            f"define amdgpu_kernel void @k{i}(ptr addrspace(1) %p, {', '.join(held)}) {{\n"
            f"  %r = call {row.result} @llvm.amdgcn.{row.name}({', '.join(call)})\n"
            f"  store {row.result} %r, ptr addrspace(1) %p\n  ret void\n}}"
        )
    modules = {chip: (chip, "", "\n".join([*declarations, *functions]))}
    done = subprocess.run([sys.executable, "-c", CHILD], input=json.dumps(modules), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(re.findall(r"^(k\d+):\n(.*?)^\t\.section", json.loads(done.stdout)[chip], re.DOTALL | re.MULTILINE))


@pytest.mark.llvm
@pytest.mark.parametrize("chip", [chip for chip in CHIPS if any(chip in row.chips for row in ROWS.values())])
def test_llvm_selects_the_instruction_of_each_conversion(chip: str) -> None:
    functions = assembly(chip)
    for i, row in enumerate(row for row in ROWS.values() if chip in row.chips):
        code = [line.split()[0] for line in functions[f"k{i}"].splitlines() if line.startswith("\tv_cvt")]
        wanted = "v_" + row.python_name.removesuffix("_e5m3")
        assert [re.sub("_(e32|e64|sdwa)$", "", name) for name in code] == [wanted], row.name


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.python_name)
def test_a_conversion_is_refused_where_the_manual_lacks_it(row: Conversion) -> None:
    for name in CHIPS:
        if name in row.chips:
            row.check_target(Target.parse(name))
            continue
        with pytest.raises(TargetError, match=f"{name} has no {row.python_name}(?s:.*)it exists on gfx"):
            row.check_target(Target.parse(name))


@pytest.mark.parametrize(
    ("element", "chip", "good"),
    [
        ("f8E4M3FNUZ", "gfx942", True), ("f8E4M3FN", "gfx942", False), ("f8E4M3FN", "gfx950", True),
        ("f8E4M3FNUZ", "gfx950", False), ("f8E4M3FNUZ", "gfx1201", False), ("f8E5M2", "gfx950", False),
    ],
)  # fmt: skip
def test_data_of_the_other_flavour_is_refused_by_name(element: str, chip: str, good: bool) -> None:
    row = find("cvt_pk_f32_fp8")
    if good:
        row.check_element(element, Target.parse(chip))
        return
    held = "f8E4M3FNUZ" if chip == "gfx942" else "f8E4M3FN"
    with pytest.raises(AtomError, match=f"on {chip} works on {held}, not on {element}"):
        row.check_element(element, Target.parse(chip))


def test_e5m3_has_no_element_type() -> None:
    with pytest.raises(AtomError, match=r"works on unsigned e5m3, not on f8E5M2(?s:.*)leave out the element"):
        find("cvt_f32_fp8_e5m3").check_element("f8E5M2", Target.parse("gfx1250"))


def test_an_unknown_conversion_names_relatives() -> None:
    with pytest.raises(AtomError, match=r"for instance: .*cvt_scalef32_pk32_f32_fp6"):
        find("cvt_pk32_fp6")


def run(kernel: Any, arch: str, *args: np.ndarray) -> str:
    art = flyc.compile(kernel, *args, arch=arch)
    flyllvm.simulate(art, kernel=next(iter(art.code_object.kernels)), grid=(1,), block=(64,), args=list(args))
    return str(art.assembly)


@pytest.mark.llvm
@pytest.mark.sim
@pytest.mark.parametrize(
    ("arch", "dtype"), [("gfx942", ml_dtypes.float8_e4m3fnuz), ("gfx950", ml_dtypes.float8_e4m3fn)]
)
def test_fp8_packs_and_unpacks_in_the_flavour_of_the_chip(arch: str, dtype: Any) -> None:
    @flyc.kernel(known_block_size=(64, 1, 1))
    def pack(src: fx.Tensor, packed: fx.Tensor, back: fx.Tensor):
        lane = fx.thread_idx.x
        word = convert("cvt_pk_fp8_f32", src[lane * 2], src[lane * 2 + 1], 0, 0)
        packed[lane] = word
        wide = convert("cvt_pk_f32_fp8", word, 0)
        back[lane * 2], back[lane * 2 + 1] = wide[0], wide[1]

    src = np.random.default_rng(0).uniform(-200, 200, 128).astype(np.float32)
    packed, back = np.zeros(64, np.int32), np.zeros(128, np.float32)
    assert "v_cvt_pk_fp8_f32" in run(pack, arch, src, packed, back)
    want = src.astype(dtype)
    np.testing.assert_array_equal(packed.view(np.uint8).reshape(64, 4)[:, :2].reshape(-1), want.view(np.uint8))
    np.testing.assert_array_equal(back, want.astype(np.float32))


@pytest.mark.llvm
@pytest.mark.sim
def test_scaled_fp6_unpacks_32_values_at_once() -> None:
    @flyc.kernel(known_block_size=(64, 1, 1))
    def unpack(src: fx.Tensor, scale: fx.Tensor, dst: fx.Tensor):
        lane = fx.thread_idx.x
        held = fx.make_rmem_tensor(6, fx.Int32)
        six = fx.make_layout(6, 1)
        fx.copy(fx.make_copy_atom(fx.UniversalCopy(64), fx.Int32), src.at(lane * 6, six), held)
        wide = convert("cvt_scalef32_pk32_f32_fp6", held.load(), scale[lane], element=fx.Float6E2M3FN)
        out = fx.make_rmem_tensor(32, fx.Float32)
        out.store(wide)
        fx.copy(fx.make_copy_atom(fx.UniversalCopy(128), fx.Float32), out, dst.at(lane * 32, fx.make_layout(32, 1)))

    rng = np.random.default_rng(0)
    codes = rng.integers(0, 64, (64, 32)).astype(np.uint8)
    bits = (codes[..., None] >> np.arange(6)) & 1
    src = np.packbits(bits.reshape(64, -1), axis=1, bitorder="little").view(np.int32).reshape(-1)
    scale = (2.0 ** rng.integers(-3, 4, 64)).astype(np.float32)
    dst = np.zeros(64 * 32, np.float32)
    assert "v_cvt_scalef32_pk32_f32_fp6" in run(unpack, "gfx950", src, scale, dst)
    values = codes.view(ml_dtypes.float6_e2m3fn).astype(np.float32)
    np.testing.assert_array_equal(dst.reshape(64, 32), values * scale[:, None])


@pytest.mark.llvm
@pytest.mark.sim
def test_fp4_unpacks_with_the_scales_of_a_wmma() -> None:
    @flyc.kernel(known_block_size=(64, 1, 1))
    def unpack(src: fx.Tensor, scale: fx.Tensor, dst: fx.Tensor):
        lane = fx.thread_idx.x
        wide = convert("cvt_scale_pk8_f32_fp4", src[lane], scale[lane], 6, element=fx.Float4E2M1FN)
        for i in fx.range_constexpr(8):
            dst[lane * 8 + i] = wide[i]

    rng = np.random.default_rng(2)
    codes = rng.integers(0, 16, (64, 8)).astype(np.uint8)
    src = (codes.astype(np.uint32) << np.arange(0, 32, 4, dtype=np.uint32)).sum(axis=1, dtype=np.uint32).view(np.int32)
    scale = rng.integers(120, 134, (64, 4)).astype(np.uint8)
    dst = np.zeros(64 * 8, np.float32)
    assert "v_cvt_scale_pk8_f32_fp4" in run(unpack, "gfx1250", src, scale.view(np.int32).reshape(-1).copy(), dst)
    lane = np.arange(64)
    taken = scale[lane // 32 * 32 + 16 + lane % 16, 2 + lane % 32 // 16].astype(int)
    values = codes.view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    np.testing.assert_array_equal(dst.reshape(64, 8), values * np.ldexp(1.0, taken - 127)[:, None].astype(np.float32))


@pytest.mark.llvm
@pytest.mark.sim
def test_scales_of_lanes_that_do_not_run_are_a_fault() -> None:
    @flyc.kernel(known_block_size=(32, 1, 1))
    def unpack(scale: fx.Tensor, dst: fx.Tensor):
        lane = fx.thread_idx.x
        if lane < 20:
            dst[lane] = convert("cvt_scale_pk8_f32_fp4", 7, scale[lane], 0)[0]

    scale, dst = np.full(32, 0x7F7F7F7F, np.int32), np.zeros(32, np.float32)
    art = flyc.compile(unpack, scale, dst, arch="gfx1250")
    with pytest.raises(FlyError, match="takes scales from other lanes with inactive lanes"):
        art.simulate(scale, dst, grid=(1,), block=(32,))


@pytest.mark.llvm
@pytest.mark.sim
def test_stochastic_packs_and_e5m3_of_gfx1250_run() -> None:
    @flyc.kernel(known_block_size=(64, 1, 1))
    def pack(src: fx.Tensor, seed: fx.Tensor, halves: fx.Tensor, back: fx.Tensor):
        lane = fx.thread_idx.x
        pair = convert("cvt_sr_pk_bf16_f32", src[lane], src[lane], seed[lane])
        halves[lane * 2], halves[lane * 2 + 1] = pair[0], pair[1]
        word = convert("cvt_pk_fp8_f32_e5m3", src[lane], src[lane], 0, 1)
        back[lane] = convert("cvt_f32_fp8_e5m3", word, 2)

    rng = np.random.default_rng(4)
    src = rng.uniform(1, 2, 64).astype(np.float32)
    seed = rng.integers(0, 2**31, 64).astype(np.int32)
    halves, back = np.zeros(128, ml_dtypes.bfloat16), np.zeros(64, np.float32)
    text = run(pack, "gfx1250", src, seed, halves, back)
    assert "v_cvt_sr_pk_bf16_f32" in text and "v_cvt_pk_fp8_f32" in text
    below = np.floor(src * 128) / 128
    got = halves.astype(np.float32).reshape(64, 2)
    assert ((got == below[:, None]) | (got == below[:, None] + 2.0**-7)).all() and (got[:, 0] != got[:, 1]).any()
    np.testing.assert_array_equal(back, np.rint(src * 8) / 8)


def test_wrong_operands_are_refused_at_the_authors_line() -> None:
    def using(make: Any) -> Any:
        @flyc.kernel(known_block_size=(64, 1, 1))
        def kernel(x: fx.Tensor):
            make(x)

        return kernel

    one = np.zeros(4, np.float32)
    for make, fix in (
        (lambda x: convert("cvt_pk_fp8_f32", x[0]), "pass float, float, i32, i1"),
        (lambda x: convert("cvt_f32_fp8", 7, 4), "a constant, 0 to 3"),
        (lambda x: convert("cvt_scale_pk8_f32_fp4", 7, 7, 3), "it exists on gfx1250"),
        (lambda x: convert("cvt_scalef32_pk32_f32_fp6", x[0], 1.0), "pass a vector of <6 x i32>"),
        (lambda x: convert("cvt_scalef32_pk8_fp8_f32", x[0], 1.0), "it exists on gfx1250"),
        (lambda x: convert("cvt_pk_f32_fp8", 7, 0, element=fx.Float8E4M3FNUZ), "pass f8E4M3FN data"),
    ):
        with pytest.raises(FlyError, match=fix) as caught:
            flyc.compile(using(make), one, arch="gfx950")
        assert "test_conversions.py" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "selector", "fix"),
    [("fp4", 3, "one of 0, 1, 2, 4, 5, 6"), ("fp8", 1, "one of 0, 2, 4, 6, 10, 12, 14")],
)
def test_a_scale_selector_in_doubt_is_refused(name: str, selector: int, fix: str) -> None:
    @flyc.kernel(known_block_size=(32, 1, 1))
    def kernel(x: fx.Tensor):
        word = fx.Vector.filled(2, 0, fx.Int32) if name == "fp8" else 0
        convert(f"cvt_scale_pk8_f32_{name}", word, 0, selector)

    with pytest.raises(FlyError, match=f"a constant, {fix}"):
        flyc.compile(kernel, np.zeros(4, np.float32), arch="gfx1250")
