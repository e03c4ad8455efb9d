"""As much of torch as flyllvm looks at, for machines without it; checked against torch where that is installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import ml_dtypes
import numpy as np

HAS_TORCH = find_spec("torch") is not None
_NAMES = {
    "bfloat16": ml_dtypes.bfloat16, "float8_e4m3fn": ml_dtypes.float8_e4m3fn, "float8_e5m2": ml_dtypes.float8_e5m2,
    "float8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "float8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
}  # fmt: skip
_NO_STORAGE = "Cannot access data pointer of Tensor that doesn't have storage"


class Dtype:
    """A ``torch.dtype``: printed with its module, equal to itself only."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"


class Device:
    """A ``torch.device``."""

    def __init__(self, kind: str) -> None:
        self.type, self.index = kind, None

    def __repr__(self) -> str:
        return self.type


_DEVICES = {kind: Device(kind) for kind in ("cpu", "meta")}
_DTYPES: dict[str, Dtype] = {}


class Tensor:
    """A dense tensor over a NumPy array, and the odd ones by what they refuse."""

    is_cuda = False

    def __init__(self, data: Any, dtype: str, **odd: Any) -> None:
        self.held, self.odd = data, odd
        self.dtype = _DTYPES.setdefault(dtype, Dtype(dtype))
        self.device = _DEVICES[odd.get("device", "cpu")]
        self.layout = f"torch.{odd.get('layout', 'strided')}"
        self.is_nested = odd.get("is_nested", False)
        self.requires_grad = odd.get("requires_grad", False)

    @property
    def shape(self) -> tuple[int, ...]:
        if self.is_nested:
            raise RuntimeError("Internal error: NestedTensorImpl doesn't support sizes.")
        return tuple(self.held.shape)

    def stride(self) -> tuple[int, ...]:
        if self.layout == "torch.sparse_csr":
            raise RuntimeError("Sparse CSR tensors do not have strides")
        return tuple(s // self.held.itemsize for s in self.held.strides)

    def data_ptr(self) -> int:
        if self.layout != "torch.strided" or "wrapped" in self.odd:
            raise RuntimeError(_NO_STORAGE)
        empty = not self.held.size or "fake" in self.odd or self.device.type == "meta"
        return 0 if empty else int(self.held.ctypes.data)

    def is_conj(self) -> bool:
        return bool(self.odd.get("conj"))

    def is_neg(self) -> bool:
        return False

    def item(self) -> Any:
        return self.held.item()

    def bytes(self) -> bytes:
        """The elements in order."""
        return np.ascontiguousarray(self.held).tobytes()


class StandIn:
    """Makes tensors by their kind."""

    def array(self, data: Any, dtype: str) -> Any:
        kind = np.dtype(_NAMES.get(dtype, dtype))
        return Tensor(np.asarray(data).astype(kind), dtype)

    def view(self, tensor: Any, *index: Any) -> Any:
        return Tensor(tensor.held[index], tensor.dtype.name)

    def turned(self, tensor: Any) -> Any:
        return Tensor(tensor.held.T, tensor.dtype.name)

    def bytes(self, tensor: Any) -> bytes:
        return tensor.bytes()  # type: ignore[no-any-return]

    def odd(self, kind: str) -> Any:
        data = np.zeros((4, 4), np.float32)
        return {
            "requires_grad": lambda: Tensor(data, "float32", requires_grad=True),
            "zero-size": lambda: Tensor(np.zeros(0, np.float32), "float32"),
            "0-dim": lambda: Tensor(np.full((), 3.0, np.float32), "float32"),
            "meta": lambda: Tensor(data, "float32", device="meta"),
            "sparse": lambda: Tensor(data, "float32", layout="sparse_coo"),
            "csr": lambda: Tensor(data, "float32", layout="sparse_csr"),
            "nested": lambda: Tensor(data, "float32", is_nested=True),
            "fake": lambda: Tensor(data, "float32", fake=True),
            "vmap": lambda: Tensor(data, "float32", wrapped=True),
            "conj": lambda: Tensor(data.astype(np.complex64), "complex64", conj=True),
            "bool": lambda: Tensor(data.astype(bool), "bool"),
        }[kind]()


class Real:
    """The same with torch itself."""

    def __init__(self) -> None:
        import torch

        self.torch = torch

    def array(self, data: Any, dtype: str) -> Any:
        return self.torch.tensor(np.asarray(data).tolist(), dtype=self.torch.float64).to(getattr(self.torch, dtype))

    def view(self, tensor: Any, *index: Any) -> Any:
        return tensor[index]

    def turned(self, tensor: Any) -> Any:
        return tensor.t()

    def bytes(self, tensor: Any) -> bytes:
        plain = tensor.detach().contiguous().view(-1).view(self.torch.uint8)
        return bytes(plain.tolist())

    def odd(self, kind: str) -> Any:
        torch, data = self.torch, self.torch.zeros(4, 4)

        def fake() -> Any:
            from torch._subclasses.fake_tensor import FakeTensorMode

            with FakeTensorMode():
                return torch.zeros(4, 4)

        def vmap() -> Any:
            held: list[Any] = []
            torch.func.vmap(lambda x: held.append(x) or x)(torch.zeros(2, 4, 4))
            return held[0]

        return {
            "requires_grad": lambda: data.requires_grad_(),
            "zero-size": lambda: torch.zeros(0),
            "0-dim": lambda: torch.tensor(3.0),
            "meta": lambda: torch.zeros(4, 4, device="meta"),
            "sparse": data.to_sparse,
            "csr": data.to_sparse_csr,
            "nested": lambda: torch.nested.nested_tensor([data, data]),
            "fake": fake,
            "vmap": vmap,
            "conj": lambda: data.to(torch.complex64).conj(),
            "bool": data.bool,
        }[kind]()


#: What tests run with: the stand-in always, torch where it is.
LIBRARIES = [StandIn, Real] if HAS_TORCH else [StandIn]
