"""The state of atoms: struct type, defaults, and what may be set."""

from __future__ import annotations

import pytest

from flyllvm.errors import StateError
from flyllvm.ir import lltype as ll, types as t
from flyllvm.state import AtomStateField, StateStruct

OFFSETS = StateStruct(
    "cdna3.buffer_copy_lds",
    AtomStateField("soffset", t.I32, default=0, doc="added to the address", units="elements"),
    AtomStateField(
        "imm_offset",
        t.I32,
        default=0,
        doc="added to both addresses",
        units="bytes",
        constant=True,
        minimum=0,
        maximum=4095,
    ),
)
SCALES = StateStruct(
    "cdna4.mfma_scale",
    AtomStateField("scale_a", t.I32, default=None, doc="scales of A, 0 means 2**-127", units="E8M0 bytes"),
    AtomStateField("scale_b", t.I64, default=None, doc="scales of B, 0 means 2**-127", units="E8M0 bytes"),
)


def test_fields_lower_to_a_literal_struct_in_order() -> None:
    assert OFFSETS.lltype is ll.struct((ll.I32, ll.I32))
    assert OFFSETS.lltype.text == "{ i32, i32 }"
    assert SCALES.lltype.text == "{ i32, i64 }"
    assert [f.name for f in OFFSETS] == ["soffset", "imm_offset"]
    assert (OFFSETS.index("soffset"), OFFSETS.index("imm_offset"), len(OFFSETS)) == (0, 1, 2)


def test_a_field_has_its_default_or_none() -> None:
    assert OFFSETS.defaults == (0, 0)
    assert SCALES.defaults == (None, None)


def test_an_unknown_field_is_an_error_that_lists_the_fields() -> None:
    with pytest.raises(StateError, match=r"no state field 'scale_a'") as caught:
        OFFSETS.check_value("scale_a", t.I32)
    assert "soffset: i32" in str(caught.value) and "imm_offset: i32" in str(caught.value)


@pytest.mark.parametrize("type_", [t.I64, t.F32, t.VectorType(4, t.I8)])
def test_a_value_of_another_type_is_an_error_that_names_the_type(type_: t.Type) -> None:
    with pytest.raises(StateError, match="pass an i32, in elements"):
        OFFSETS.check_value("soffset", type_)


def test_a_value_of_the_fields_type_is_accepted() -> None:
    assert OFFSETS.check_value("soffset", t.I32).units == "elements"


def test_a_run_time_value_in_a_constant_field_is_an_error() -> None:
    with pytest.raises(StateError, match="imm_offset must be a compile-time constant"):
        OFFSETS.check_constant("imm_offset", None)
    assert OFFSETS.check_constant("imm_offset", 4095) == 4095


@pytest.mark.parametrize("value", [-1, 4096])
def test_a_constant_out_of_range_is_an_error_with_the_range(value: int) -> None:
    with pytest.raises(StateError, match="a value from 0 to 4095, in bytes"):
        OFFSETS.check_constant("imm_offset", value)


def test_using_a_field_without_default_unset_is_an_error_that_says_how_to_set_it() -> None:
    with pytest.raises(StateError, match=r"state field scale_b unset") as caught:
        SCALES.check_set((127, None))
    assert "set_value('scale_b'" in str(caught.value)
    SCALES.check_set((127, 127))


def test_a_struct_refuses_double_and_missing_fields() -> None:
    one = OFFSETS.fields[0]
    with pytest.raises(StateError, match="each name once"):
        StateStruct("x", one, one)
    with pytest.raises(StateError, match="at least one field"):
        StateStruct("x")


def test_a_default_must_fit_the_type() -> None:
    with pytest.raises(StateError, match="a value from -128 to 255"):
        AtomStateField("mask", t.I8, default=256, doc="", units="mask")
