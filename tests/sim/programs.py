"""Random LLVM IR functions without undefined behaviour, for comparison of two machines."""

from __future__ import annotations

import random

_INTS = ("i8", "i16", "i32", "i64", "i13", "i1")
_FLOATS = ("float", "double")
_BINARY = "add sub mul and or xor shl lshr ashr udiv urem sdiv srem".split()
_FBINARY = "fadd fsub fmul fdiv".split()
_PREDS = "eq ne ugt uge ult ule sgt sge slt sle".split()
_FPREDS = "oeq ogt oge olt ole one ord uno ueq ugt uge ult ule une".split()


class Program:
    """Writes one function ``i64 (i64, i64, float)``; values in scope are kept by type."""

    def __init__(self, seed: int, blocks: int = 4, length: int = 6) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.count = 0
        self.block = "0"
        self.scope: dict[str, list[str]] = {"i64": ["%a0", "%a1"], "float": ["%a2"]}
        for t in ("i32", "i16", "i13", "i8"):
            self._emit(t, f"trunc i64 {self.random.choice(['%a0', '%a1'])} to {t}")
        self._emit("i1", "icmp slt i64 %a0, %a1")
        self._emit("i1", "fcmp olt float %a2, 1.0")
        self._emit("double", "fpext float %a2 to double")
        self._body(blocks, length, depth=0)
        result = self._as_i64()
        for t in list(self.scope):
            value = self._to_i64(t, self.random.choice(self.scope[t]))
            result = self._emit("i64", f"xor i64 {result}, {value}")
        self.lines.append(f"  ret i64 {result}")

    def text(self) -> str:
        """The body of the function."""
        return "\n".join(self.lines)

    # ---- pieces

    def _name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def _emit(self, t: str, text: str) -> str:
        name = self._name()
        self.lines.append(f"  {name} = {text}")
        self.scope.setdefault(t, []).append(name)
        return name

    def _pick(self, t: str) -> str:
        if self.scope.get(t) and self.random.random() < 0.85:
            return self.random.choice(self.scope[t][-8:])
        if t in _FLOATS:
            return self.random.choice(["1.0", "-2.5", "0.0", "0x7FF0000000000000"])
        bits = int(t[1:])
        if bits == 1:
            return self.random.choice(["true", "false"])
        return str(self.random.choice([0, 1, -1, self.random.randrange(1 << (bits - 1)), (1 << (bits - 1)) - 1]))

    def _int(self) -> str:
        return self.random.choice(_INTS)

    def _statement(self) -> None:
        self.random.choice(
            [self._binary, self._binary, self._fbinary, self._compare, self._select, self._resize, self._to_float,
             self._vector, self._intrinsic]
        )()  # fmt: skip

    def _binary(self) -> None:
        t, op = self._int(), self.random.choice(_BINARY)
        a, b = self._pick(t), self._pick(t)
        bits = int(t[1:])
        if op in ("shl", "lshr", "ashr"):
            b = str(self.random.randrange(bits)) if bits > 1 else "false"
            if bits > 1 and self.random.random() < 0.5:
                b = self._emit(t, f"urem {t} {self._pick(t)}, {bits}")
        elif op in ("udiv", "urem", "sdiv", "srem"):
            if bits == 1:
                return
            b = self._emit(t, f"lshr {t} {b}, 1")  # positive, so that minimum / -1 cannot happen
            b = self._emit(t, f"or {t} {b}, 1")
        self._emit(t, f"{op} {t} {a}, {b}")

    def _fbinary(self) -> None:
        t = self.random.choice(_FLOATS)
        self._emit(t, f"{self.random.choice(_FBINARY)} {t} {self._pick(t)}, {self._pick(t)}")

    def _compare(self) -> None:
        if self.random.random() < 0.5:
            t = self._int()
            self._emit("i1", f"icmp {self.random.choice(_PREDS)} {t} {self._pick(t)}, {self._pick(t)}")
        else:
            t = self.random.choice(_FLOATS)
            self._emit("i1", f"fcmp {self.random.choice(_FPREDS)} {t} {self._pick(t)}, {self._pick(t)}")

    def _select(self) -> None:
        t = self.random.choice(_INTS + _FLOATS)
        self._emit(t, f"select i1 {self._pick('i1')}, {t} {self._pick(t)}, {t} {self._pick(t)}")

    def _resize(self) -> None:
        source, target = self._int(), self._int()
        a, b = int(source[1:]), int(target[1:])
        if a < b:
            self._emit(target, f"{self.random.choice(['zext', 'sext'])} {source} {self._pick(source)} to {target}")
        elif a > b:
            self._emit(target, f"trunc {source} {self._pick(source)} to {target}")

    def _to_float(self) -> None:
        if self.random.random() < 0.5:
            s, t = self._int(), self.random.choice(_FLOATS)
            self._emit(t, f"{self.random.choice(['sitofp', 'uitofp'])} {s} {self._pick(s)} to {t}")
        elif self.random.random() < 0.5:
            self._emit("double", f"fpext float {self._pick('float')} to double")
        else:
            self._emit("float", f"fptrunc double {self._pick('double')} to float")

    def _vector(self) -> None:
        v = "<4 x i32>"
        first = self._name()
        self.lines.append(f"  {first} = insertelement {v} poison, i32 {self._pick('i32')}, i32 0")
        for i in range(1, 4):
            following = self._name()
            self.lines.append(f"  {following} = insertelement {v} {first}, i32 {self._pick('i32')}, i32 {i}")
            first = following
        mask = ", ".join(f"i32 {self.random.randrange(8)}" for _ in range(4))
        mixed, halves = self._name(), self._name()
        self.lines.append(
            f"  {mixed} = shufflevector {v} {first}, {v} <i32 1, i32 2, i32 3, i32 4>, <4 x i32> <{mask}>"
        )
        self.lines.append(f"  {halves} = bitcast {v} {mixed} to <8 x i16>")
        self._emit("i16", f"extractelement <8 x i16> {halves}, i32 {self.random.randrange(8)}")
        index = self._emit("i32", f"and i32 {self._pick('i32')}, 3")
        self._emit("i32", f"extractelement {v} {mixed}, i32 {index}")

    def _intrinsic(self) -> None:
        t = self.random.choice(("i8", "i16", "i32", "i64"))
        name = self.random.choice(["ctpop", "umin", "smax", "uadd.sat", "ssub.sat", "bitreverse", "fshl"])
        count = {"ctpop": 1, "bitreverse": 1, "fshl": 3}.get(name, 2)
        args = ", ".join(f"{t} {self._pick(t)}" for _ in range(count))
        self._emit(t, f"call {t} @llvm.{name}.{t}({args})")

    # ---- control flow

    def _label(self, name: str) -> None:
        self.lines.append(f"{name}:")
        self.block = name

    def _body(self, blocks: int, length: int, depth: int) -> None:
        for _ in range(blocks):
            for _ in range(self.random.randrange(1, length)):
                self._statement()
            choice = self.random.random()
            if depth < 3 and choice < 0.4:
                self._if(length, depth)
            elif depth < 2 and choice < 0.7:
                self._loop(length, depth)

    def _if(self, length: int, depth: int) -> None:
        number = self.count
        self.count += 1
        condition = self._pick("i1")
        self.lines.append(f"  br i1 {condition}, label %then{number}, label %else{number}")
        before = {t: list(v) for t, v in self.scope.items()}
        t = self.random.choice(_INTS + _FLOATS)
        ends = []
        for arm in ("then", "else"):
            self._label(f"{arm}{number}")
            if arm == "then" or self.random.random() < 0.6:
                self._body(1, length, depth + 1)
            ends.append((self._pick(t), self.block))
            self.lines.append(f"  br label %join{number}")
            self.scope = {k: list(v) for k, v in before.items()}
        self._label(f"join{number}")
        pairs = ", ".join(f"[ {value}, %{block} ]" for value, block in ends)
        self._emit(t, f"phi {t} {pairs}")

    def _loop(self, length: int, depth: int) -> None:
        number = self.count
        self.count += 1
        trip = self._emit("i64", f"and i64 {self._pick('i64')}, {self.random.choice([1, 3, 7])}")
        t = self.random.choice(_INTS + _FLOATS)
        start, entry = self._pick(t), self.block
        self.lines.append(f"  br label %loop{number}")
        before = {k: list(v) for k, v in self.scope.items()}
        self._label(f"loop{number}")
        at = len(self.lines)
        self.lines += ["", ""]
        self.scope.setdefault(t, []).append(f"%x{number}")
        self._body(1, length, depth + 1)
        value = self._pick(t)
        if self.random.random() < 0.4:
            self.lines.append(f"  br i1 {self._pick('i1')}, label %out{number}, label %next{number}")
            left = f", [ {value}, %{self.block} ]"
            self._label(f"next{number}")
        else:
            left = ""
        self.lines.append(f"  %i{number}n = add i64 %i{number}, 1")
        self.lines.append(f"  %c{number} = icmp ult i64 %i{number}n, {trip}")
        self.lines.append(f"  br i1 %c{number}, label %loop{number}, label %out{number}")
        self.lines[at] = f"  %i{number} = phi i64 [ 0, %{entry} ], [ %i{number}n, %{self.block} ]"
        self.lines[at + 1] = f"  %x{number} = phi {t} [ {start}, %{entry} ], [ {value}, %{self.block} ]"
        latch = self.block
        self.scope = before
        self._label(f"out{number}")
        self._emit(t, f"phi {t} [ {value}, %{latch} ]{left}")

    # ---- the result

    def _as_i64(self) -> str:
        return self._pick("i64") if self.scope.get("i64") else "0"

    def _to_i64(self, t: str, value: str) -> str:
        if t in _FLOATS:
            # The payload and sign of a NaN are not defined.
            ordered = self._emit("i1", f"fcmp ord {t} {value}, {value}")
            clean = self._emit(t, f"select i1 {ordered}, {t} {value}, {t} 1.0")
            bits = "i32" if t == "float" else "i64"
            value, t = self._emit(bits, f"bitcast {t} {clean} to {bits}"), bits
        if t == "i64":
            return value
        return self._emit("i64", f"sext {t} {value} to i64")


DECLARATIONS = "".join(
    f"declare {t} @llvm.{name}.{t}({', '.join([t] * count)})\n"
    for t in ("i8", "i16", "i32", "i64")
    for name, count in (
        ("ctpop", 1), ("umin", 2), ("smax", 2), ("uadd.sat", 2), ("ssub.sat", 2), ("bitreverse", 1), ("fshl", 3),
    )
)  # fmt: skip
