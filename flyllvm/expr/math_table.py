"""How every mathematical function is computed, by function and type."""

from __future__ import annotations


class Rule:
    """One entry.

    Attributes:
        how: ``llvm``: an operation LLVM has code for; ``own``: an expansion of ours; ``f32``: through f32, which
            rounds the f32 result once more.
        op: The IR operation, or the function of ``math_expand``.
        ulp: Bound of the error in units of the last place of the type, tested against a wider precision in the
            simulator.  Instructions of the hardware that approximate count as exact there; on hardware each may be
            off by 1 ulp more.
    """

    __slots__ = ("how", "op", "ulp")

    def __init__(self, how: str, op: str = "", ulp: float = 0.5) -> None:
        self.how, self.op, self.ulp = how, op, ulp


def _llvm(op: str, kinds: str = "f16 f32 f64 bf16", ulp: float = 0.5) -> dict[str, Rule]:
    return {kind: Rule("llvm", op, ulp) for kind in kinds.split()}


def _own(name: str, ulp: float) -> dict[str, Rule]:
    return {"f32": Rule("own", name, ulp), "f16": Rule("f32", ulp=0.6), "bf16": Rule("f32", ulp=0.6)}


#: LLVM has f32 and f16 code for these, but ends the process over f64, and rounds bf16 badly.
def _approximate(op: str, ulp: float = 1.0) -> dict[str, Rule]:
    return {"f32": Rule("llvm", op, ulp), "f16": Rule("f32", ulp=0.6), "bf16": Rule("f32", ulp=0.6)}


TABLE: dict[str, dict[str, Rule]] = {
    "absf": _llvm("math.absf", ulp=0),
    "ceil": _llvm("math.ceil", ulp=0),
    "floor": _llvm("math.floor", ulp=0),
    "trunc": _llvm("math.trunc", ulp=0),
    "round": _llvm("math.round", ulp=0),
    "roundeven": _llvm("math.roundeven", ulp=0),
    "copysign": _llvm("math.copysign", ulp=0),
    "maxnumf": _llvm("arith.maxnumf", ulp=0),
    "minnumf": _llvm("arith.minnumf", ulp=0),
    "maximumf": _llvm("arith.maximumf", ulp=0),
    "minimumf": _llvm("arith.minimumf", ulp=0),
    "sqrt": {**_llvm("math.sqrt", "f16 f32 f64"), "bf16": Rule("f32", ulp=0.51)},
    "exp": _approximate("math.exp"),
    "exp2": _approximate("math.exp2"),
    "log": _approximate("math.log"),
    "log2": _approximate("math.log2"),
    "log10": _approximate("math.log10"),
    "rsqrt": {**_own("rsqrt", 1.0), "f64": Rule("own", "rsqrt_f64", 1.5)},
    "expm1": _own("expm1", 3.0),
    "log1p": _own("log1p", 3.0),
    "cbrt": _own("cbrt", 2.0),
    "sin": _own("sin", 2.5),
    "cos": _own("cos", 2.5),
    "tan": _own("tan", 4.5),
    "asin": _own("asin", 3.0),
    "acos": _own("acos", 3.0),
    "atan": _own("atan", 3.0),
    "atan2": _own("atan2", 3.0),
    "sinh": _own("sinh", 4.0),
    "cosh": _own("cosh", 3.0),
    "tanh": _own("tanh", 3.0),
    "erf": _own("erf", 3.0),
    "powf": _own("powf", 2.0),
}
