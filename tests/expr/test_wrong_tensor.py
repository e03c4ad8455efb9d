"""Functions of tensors say which kind they want."""

from __future__ import annotations

import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.errors import TraceError


@pytest.mark.parametrize(
    ("use", "fix"),
    [
        (lambda x: fx.make_predicate(x, (4,)), r"make_identity_tensor\(t\.shape\)"),
        (lambda x: fx.rocdl.make_buffer_tensor(x.iter), r"use make_buffer_ptr\(pointer, bytes\)"),
    ],
)
def test_the_wrong_kind_of_tensor_is_named(use, fix: str) -> None:
    @flyc.kernel
    def k(x: fx.Tensor):
        use(x)

    with pytest.raises(TraceError, match=rf"(?s)test_wrong_tensor\.py:.*{fix}"):
        flyc.compile(k, "f32[4]", arch="gfx942", stop_after="fly")
