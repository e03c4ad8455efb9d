"""Conversions: the table against LLVM's signatures and the simulator, flavours, and kernels."""

from __future__ import annotations

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
from flyllvm.sim import matrix_convert
from flyllvm.target import CHIPS, Target

# Of LLVM but not here: no public text gives their meaning, or no small format is part of them.
LEFT_OUT = ("cvt.scale.", "e5m3", "cvt.sr.pk", "cvt.off", "cvt.pk.i16", "cvt.pk.u", "cvt.pknorm", "cvt.pkrtz")


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.python_name)
def test_rows_have_llvms_signature_and_the_chips_of_the_manual(row: Conversion) -> None:
    known = intrinsics.lookup(f"llvm.amdgcn.{row.name}")
    assert known is not None
    assert known.signature == f"{row.result} ({', '.join(row.args)})" and set(known.imms) == set(row.imms)
    assert set(row.chips) <= set(known.archs)
    extra = set(known.archs) - set(row.chips)
    assert not extra or (extra == {"gfx90a", "gfx942"} and row.name.startswith("cvt.scalef32."))
    simulated = matrix_convert.INTRINSICS[row.name]
    assert set(simulated.targets) == set(row.chips) and set(simulated.immediates) == set(row.imms)


def test_every_conversion_of_llvm_is_a_row_or_left_out_on_purpose() -> None:
    names = [line.split("\t")[0].removeprefix("llvm.amdgcn.") for line in intrinsics._table().splitlines()[1:]]
    found = {n for n in names if n.startswith("cvt.") and not any(word in n for word in LEFT_OUT)}
    assert found == {row.name for row in ROWS.values()}


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
        (lambda x: convert("cvt_scalef32_pk32_f32_fp6", x[0], 1.0), "pass a vector of <6 x i32>"),
        (lambda x: convert("cvt_scalef32_pk8_fp8_f32", x[0], 1.0), "it exists on gfx1250"),
        (lambda x: convert("cvt_pk_f32_fp8", 7, 0, element=fx.Float8E4M3FNUZ), "pass f8E4M3FN data"),
    ):
        with pytest.raises(FlyError, match=fix) as caught:
            flyc.compile(using(make), one, arch="gfx950")
        assert "test_conversions.py" in str(caught.value)
