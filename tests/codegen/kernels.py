"""Small kernels built by hand, and FileCheck over text."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options as CheckOptions
from filecheck.parser import Parser, pattern_for_opts

from flyllvm.codegen import Options, emit_module
from flyllvm.ir import ops_atoms as ops_atoms, ops_fly as ops_fly, types as t
from flyllvm.ir.builder import Builder
from flyllvm.ir.core import Kernel, Module, Value
from flyllvm.ir.location import Frame, Location
from flyllvm.target import Target

GFX942 = Target.parse("gfx942")
HERE = Location((Frame("/somewhere/author.py", 7, "kernel", 5),))


def filecheck(text: str, checks: str) -> None:
    """Fails with FileCheck's own message unless the ``CHECK`` lines match the text in order."""
    options = CheckOptions(match_filename="checks")
    said = io.StringIO()
    lines = "\n".join(line.strip() for line in checks.strip().splitlines())
    parser = Parser(options, io.StringIO(lines), *pattern_for_opts(options))
    matcher = Matcher(options, FInput("text", text), parser)
    matcher.stderr = said
    assert matcher.run() == 0, f"{said.getvalue()}\n--- text ---\n{text}"


class Making:
    """A kernel under construction: ``b`` builds, ``arg`` adds arguments."""

    def __init__(self, name: str, target: Target, attrs: dict[str, Any]) -> None:
        self.kernel = Kernel(name, HERE)
        self.kernel.attrs.update(attrs)
        self.target = target
        self.b = Builder(self.kernel, target)
        self.b.loc = HERE

    def arg(self, type_: t.Type, name: str, **attrs: Any) -> Value:
        return self.kernel.add_arg(type_, name, **attrs)

    def ptr(self, name: str, elem: t.ScalarType = t.F32, align: int | None = None, **attrs: Any) -> Value:
        return self.arg(t.PtrType(elem, "global", align), name, **attrs)

    def op(self, name: str, operands: list[Value], results: list[t.Type], **attrs: Any) -> Value:
        return self.b.emit(name, operands, results, attrs).results[0]

    def text(self, **options: Any) -> str:
        options.setdefault("debug", False)
        return emit_module(Module([self.kernel]), self.target, Options(**options))


@contextmanager
def kernel(name: str = "k", target: Target | str = GFX942, **attrs: Any) -> Iterator[Making]:
    """Builds a kernel inside ``with``."""
    making = Making(name, Target.parse(target), attrs)
    with making.b:
        yield making


def body_of(text: str) -> str:
    """The lines between the braces of the only function."""
    return text.partition("{\nentry:\n")[2].partition("\n}")[0]


def build(fn: Callable[[Making], object], target: Target | str = GFX942, **attrs: Any) -> Making:
    with kernel("k", target, **attrs) as k:
        fn(k)
    return k


def long_module(n: int) -> str:
    """A module of ``n`` dependent multiplications, to keep LLVM busy."""
    lines = ["%v0 = mul i32 %n, %n", "%v1 = mul i32 %v0, %n"]
    lines += [f"%v{i} = mul i32 %v{i - 1}, %v{i // 2}" for i in range(2, n)]
    body = "\n  ".join([*lines, f"store i32 %v{n - 1}, ptr addrspace(1) %p"])
    return f"define amdgpu_kernel void @k(i32 %n, ptr addrspace(1) %p) {{\n  {body}\n  ret void\n}}\n"
