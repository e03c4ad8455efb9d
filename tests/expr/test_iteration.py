"""Going through memory element by element in Python has no end, and is an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.errors import TraceError


@pytest.mark.parametrize(
    "read",
    [
        lambda x: [v for v in x],  # noqa: C416
        lambda x: 3 in x,
        lambda x: sum(x.iter),
        lambda x: list(fx.make_identity_tensor((4, 4))),
        lambda x: list(fx.SharedAllocator().allocate(fx.Array[fx.Float32, 4])),
        lambda x: tuple(fx.make_rmem_tensor(4, fx.Float32)),
    ],
)
def test_memory_is_not_gone_through_in_python(read: Callable[[Any], Any]) -> None:
    @flyc.kernel
    def k(x: fx.Tensor):
        read(x)

    with pytest.raises(
        TraceError, match=r"(?s)test_iteration\.py:.*go through the vector that load\(\) returns"
    ) as caught:
        flyc.compile(k, "f32[4]", arch="gfx942", stop_after="fly")
    assert "gone through by a Python loop" in str(caught.value)
