"""Reading assembly: the instructions of a loop that compute the same in every iteration."""

from __future__ import annotations

import re

#: Instructions that read the register they write: all or a part of it stays, or is added to.
_KEEPS_OLD = re.compile(r"v_(pk_)?(fmac|fmaak|mac|dot\w*c_)|v_\w+_dpp|v_\w+_sdwa|v_writelane|v_cvt_sr|s_cmov|s_bitset")
_WRITES_NOTHING = re.compile(
    r"(global|buffer|flat|scratch)_store|ds_(write|store)|s_(cmp|bitcmp|c?branch|wait|nop|barrier|setprio|sleep|end)"
)
#: Instructions with a second result behind the first: a carry, or whether a division was scaled.
_TWO_RESULTS = re.compile(
    r"v_(add|addc|sub|subb|subrev|subbrev)_co_|v_(add|sub|subrev)_co_ci_|v_mad_[ui]64_|v_div_scale"
)
#: Instructions whose result depends on their operands alone.
_ARITHMETIC = re.compile(r"v_|s_(?!load|buffer|waitcnt|wait|nop|barrier|c?branch|sched|setprio|sleep|sendmsg|getreg)")
_SETS_SCC = re.compile(r"s_(cmp|bitcmp|add|sub|and|or|xor|not|lsh|ash|min|max|abs|bfe|addc|subb|mulk?_hi|bcnt)")
_READS_SCC = re.compile(r"s_(addc|subb|cselect|cmov|cbranch_scc)")


def registers(operand: str) -> set[str]:
    """The registers of an operand: ``v[4:5]`` is v4 and v5."""
    found: set[str] = set()
    for kind, first, last, single in re.findall(r"\b([vsa])(?:\[(\d+):(\d+)\]|(\d+)\b)", operand):
        numbers = range(int(first), int(last) + 1) if first else (int(single),)
        found |= {f"{kind}{n}" for n in numbers}
    return found | set(re.findall(r"\b(?:vcc|exec|m0)\b", operand))


def written_and_read(instruction: str) -> tuple[set[str], set[str]]:
    """The registers that an instruction writes, and those that it reads."""
    name, _, rest = instruction.partition(" ")
    operands = [x.strip() for x in re.split(r",(?![^\[]*\])", rest)] if rest else []
    count = 0 if _WRITES_NOTHING.match(name) else 2 if _TWO_RESULTS.match(name) else 1
    written: set[str] = set().union(*map(registers, operands[:count]))
    read: set[str] = set().union(*map(registers, operands[count:]))
    if _KEEPS_OLD.match(name):
        read |= written
    if "saveexec" in name:
        written, read = written | {"exec"}, read | {"exec"}
    written |= {"scc"} if _SETS_SCC.match(name) else set()
    read |= {"scc"} if _READS_SCC.match(name) else set()
    return written, read


def invariant(body: list[str], kind: str = "v_") -> list[str]:
    """Instructions of a loop whose inputs all come from outside it, directly or through others of that kind.

    They could stand in front of the loop.  What is loaded in the loop, and what an earlier iteration left, is new.

    Args:
        body: The loop, without labels, taken as one run.
        kind: Start of the names that are looked at.
    """
    parts = [(line, *written_and_read(line)) for line in body]
    moving: set[str] = set().union(*[written for _, written, _ in parts])
    known: dict[str, bool] = {}
    found = []
    for line, written, read in parts:
        fixed = bool(_ARITHMETIC.match(line)) and all(known.get(r, r not in moving) for r in read)
        known |= dict.fromkeys(written, fixed)
        if fixed and written and line.startswith(kind):
            found.append(line)
    return found
