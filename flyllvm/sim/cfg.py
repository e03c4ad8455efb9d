"""Control flow of one kernel: inlining of calls, splitting at barriers, and the order in which masks run.

Lanes that diverge wait as *pending masks* of blocks; the machine always runs the pending block that comes first in
an order where every loop is contiguous and a block comes before what follows it.  Arms of a branch therefore meet
again at its immediate post-dominator, and lanes that left a loop wait until the last one leaves.

Source: F. Bourdoncle, "Efficient chaotic iteration strategies with widenings" (weak topological orders).
"""

from __future__ import annotations

from ..errors import SimError
from . import cluster_barrier
from .ir import Block, Const, Function, Inst, Module, Operand, Param, Reg
from .types import I1, I32, VOID, Type, alloc_size

WHOLE_BARRIER = "llvm.amdgcn.s.barrier"
BARRIERS = frozenset((WHOLE_BARRIER, "llvm.amdgcn.s.barrier.wait", cluster_barrier.BARRIER))
_MAX_INSTRUCTIONS = 2_000_000


def inline_calls(module: Module, function: Function) -> list[Block]:
    """The blocks of ``function`` with every call to a defined function replaced by its body.

    Raises:
        SimError: Recursion, which AMDGPU kernels cannot have without a stack of unknown size.
    """
    return _Inliner(module).expand(function, "", {}, (), (function.name,))


class _Inliner:
    def __init__(self, module: Module) -> None:
        self.module, self.count, self.size = module, 0, 0

    def expand(
        self,
        function: Function,
        prefix: str,
        arguments: dict[str, Operand],
        chain: tuple[Inst, ...],
        stack: tuple[str, ...],
    ) -> list[Block]:
        blocks: list[Block] = []
        tail_of: dict[str, str] = {}
        for block in function.blocks:
            new = Block(prefix + block.name, block.line)
            blocks.append(new)
            for inst in block.insts:
                self.size += 1
                if self.size > _MAX_INSTRUCTIONS:
                    raise SimError(f"@{stack[0]} has more than {_MAX_INSTRUCTIONS} instructions after inlining")
                copy = inst.copy()
                copy.inlined_from = chain
                if copy.name is not None:
                    copy.name = prefix + copy.name
                copy.operands = [_rename(o, prefix, arguments) for o in copy.operands]
                copy.labels = [prefix + label for label in copy.labels]
                callee = self.module.functions.get(copy.callee) if copy.op == "call" and copy.callee else None
                if callee is not None and callee.blocks:
                    new = self._call(copy, callee, new, blocks, chain, stack)
                else:
                    new.insts.append(copy)
            tail_of[prefix + block.name] = new.name
        for block in blocks:
            for inst in block.insts:
                if inst.op == "phi" and inst.inlined_from == chain:
                    inst.labels = [tail_of.get(label, label) for label in inst.labels]
        return blocks

    def _call(
        self,
        call: Inst,
        callee: Function,
        block: Block,
        blocks: list[Block],
        chain: tuple[Inst, ...],
        stack: tuple[str, ...],
    ) -> Block:
        if callee.name in stack:
            raise SimError(f"@{callee.name} calls itself ({' -> '.join((*stack, callee.name))})", fix="use a loop")
        if len(call.operands) != len(callee.params):
            raise SimError(f"call of @{callee.name} with {len(call.operands)} arguments, it has {len(callee.params)}")
        self.count += 1
        prefix = f"{callee.name}.{self.count}."
        arguments = {p.name: o for p, o in zip(callee.params, call.operands, strict=True)}
        for param in callee.params:
            if isinstance(param.attrs.get("byval"), Type):
                arguments[param.name] = _copied(call, param, arguments[param.name], prefix, block)
        body = self.expand(callee, prefix, arguments, (call, *chain), (*stack, callee.name))
        after = Block(f"{prefix}return", call.line)
        block.insts.append(_jump(call, body[0].name))
        result = Inst("phi", call.name, call.type, [], call.line)
        result.inlined_from, result.dbg = chain, call.dbg
        for part in body:
            last = part.insts[-1]
            if last.op == "ret":
                if last.operands:
                    result.operands.append(last.operands[0])
                    result.labels.append(part.name)
                part.insts[-1] = _jump(last, after.name)
        if call.type is not VOID:
            if not result.operands:
                result.op, result.operands = "freeze", [Const(call.type, "poison")]
            after.insts.append(result)
        blocks.extend(body)
        blocks.append(after)
        return after


def _copied(call: Inst, param: Param, argument: Operand, prefix: str, block: Block) -> Operand:
    """The caller's copy of what a ``byval`` argument points to: the callee may write into it."""
    t = param.attrs["byval"]
    place = Inst("alloca", f"{prefix}{param.name}.byval", param.type, [], call.line)
    place.extra = {"base_type": t, "align": int(param.attrs.get("align", 0))}
    target = Reg(param.type, str(place.name))
    copy = Inst(
        "call", None, VOID, [target, argument, Const(I32, "int", alloc_size(t)), Const(I1, "int", 0)], call.line
    )
    space = getattr(param.type, "space", 0)
    copy.callee = f"llvm.memcpy.p{space}.p{space}.i32"
    for inst in (place, copy):
        inst.dbg, inst.inlined_from = call.dbg, call.inlined_from
        block.insts.append(inst)
    return target


def _rename(operand: Operand, prefix: str, arguments: dict[str, Operand]) -> Operand:
    if isinstance(operand, Reg):
        return arguments.get(operand.name) or Reg(operand.type, prefix + operand.name)
    if isinstance(operand, Const) and operand.kind == "agg":
        return Const(operand.type, "agg", tuple(_rename(o, prefix, arguments) for o in operand.value))
    return operand


def _jump(at: Inst, target: str) -> Inst:
    jump = Inst("br", None, VOID, [], at.line)
    jump.labels, jump.dbg, jump.inlined_from = [target], at.dbg, at.inlined_from
    return jump


class Node:
    """A block or the part of one between barriers.

    Attributes:
        index: Position in the running order.
        insts: Instructions without phis and terminator.
        phis: Phis at the start.
        end: The terminator: br, switch, ret, unreachable, or the barrier call after which ``successors[0]`` runs.
        successors: Nodes in the order of the terminator's labels.
        header_of: Nodes of the loop that this one heads, itself included; empty for others.
        reaches: Indices of the nodes that can run after this one.
        trivial_return: Nothing happens here or later except returning.
    """

    __slots__ = (
        "block_name",
        "end",
        "header_of",
        "index",
        "insts",
        "phis",
        "reaches",
        "successors",
        "trivial_return",
    )

    def __init__(self, block_name: str) -> None:
        self.block_name = block_name
        self.index = -1
        self.insts: list[Inst] = []
        self.phis: list[Inst] = []
        self.end: Inst
        self.successors: list[Node] = []
        self.header_of: frozenset[int] = frozenset()
        self.reaches: frozenset[int] = frozenset()
        self.trivial_return = False


def is_barrier(inst: Inst) -> bool:
    """Whether the instruction makes waves of a workgroup wait for each other."""
    return inst.op == "call" and inst.callee in BARRIERS


def build_graph(blocks: list[Block]) -> list[Node]:
    """The nodes that can be reached, in running order; the first is the entry."""
    first: dict[str, Node] = {}
    ends: list[Node] = []
    for block in blocks:
        node = first[block.name] = Node(block.name)
        for inst in block.insts[:-1]:
            if inst.op == "phi":
                node.phis.append(inst)
            elif inst.op == "call" and inst.callee == cluster_barrier.BARRIER:
                whole, signal, wait = cluster_barrier.expanded(inst, WHOLE_BARRIER)
                node = _cut(node, whole)
                node.insts.append(signal)
                node = _cut(node, wait)
            elif is_barrier(inst):
                node = _cut(node, inst)
            else:
                node.insts.append(inst)
        node.end = block.insts[-1]
        ends.append(node)
    for node in ends:
        node.successors = [first[label] for label in node.end.labels]
    order = _order(first[blocks[0].name])
    for index, node in enumerate(order):
        node.index = index
    _reachability(order)
    return order


def _cut(node: Node, barrier: Inst) -> Node:
    """Ends a node at a barrier; the node for what comes after it."""
    following = Node(node.block_name)
    node.end, node.successors = barrier, [following]
    return following


def _order(entry: Node) -> list[Node]:
    """A weak topological order: loops contiguous, headers first."""
    nodes, stack = {id(entry): entry}, [entry]
    while stack:
        for successor in stack.pop().successors:
            if id(successor) not in nodes:
                nodes[id(successor)] = successor
                stack.append(successor)
    loops: list[tuple[Node, list[Node]]] = []
    order = _arrange(list(nodes.values()), entry, set(), loops)
    for index, node in enumerate(order):
        node.index = index
    for header, members in loops:
        header.header_of = frozenset(m.index for m in members)
    return order


def _arrange(
    nodes: list[Node], entry: Node, cut: set[tuple[int, int]], loops: list[tuple[Node, list[Node]]]
) -> list[Node]:
    result: list[Node] = []
    for component in _components(nodes, entry, cut):
        if len(component) == 1:
            node = component[0]
            if any(s is node for s in node.successors) and (id(node), id(node)) not in cut:
                loops.append((node, component))
            result.append(node)
            continue
        inside = {id(n) for n in component}
        entered = {id(s) for p in nodes if id(p) not in inside for s in p.successors} | {id(entry)}
        header = next((n for n in component if id(n) in entered), component[0])
        loops.append((header, component))
        inner_cut = cut | {(id(n), id(header)) for n in component}
        result.extend(_arrange(component, header, inner_cut, loops))
    return result


def _components(nodes: list[Node], entry: Node, cut: set[tuple[int, int]]) -> list[list[Node]]:
    """Strongly connected components in topological order (Tarjan, without recursion)."""
    allowed = {id(n) for n in nodes}
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    on_stack: set[int] = set()
    stack: list[Node] = []
    components: list[list[Node]] = []

    def next_nodes(node: Node) -> list[Node]:
        # Reversed, so that the first successor of a branch comes first in the final (reversed) order.
        return [s for s in reversed(node.successors) if id(s) in allowed and (id(node), id(s)) not in cut]

    work: list[tuple[Node, list[Node]]] = []

    def visit(node: Node) -> None:
        number[id(node)] = low[id(node)] = len(number)
        stack.append(node)
        on_stack.add(id(node))
        work.append((node, next_nodes(node)))

    for root in (entry, *nodes):
        if id(root) in number:
            continue
        visit(root)
        while work:
            node, todo = work[-1]
            if todo:
                successor = todo.pop(0)
                if id(successor) not in number:
                    visit(successor)
                elif id(successor) in on_stack:
                    low[id(node)] = min(low[id(node)], number[id(successor)])
                continue
            work.pop()
            if work:
                low[id(work[-1][0])] = min(low[id(work[-1][0])], low[id(node)])
            if low[id(node)] == number[id(node)]:
                at = next(i for i, n in enumerate(stack) if n is node)
                component = stack[at:]
                del stack[at:]
                on_stack.difference_update(map(id, component))
                components.append(component)
    components.reverse()
    return components


def _reachability(order: list[Node]) -> None:
    reach = {n.index: {s.index for s in n.successors} for n in order}
    changed = True
    while changed:
        changed = False
        for node in reversed(order):
            old = len(reach[node.index])
            for successor in node.successors:
                reach[node.index] |= reach[successor.index]
            changed = changed or len(reach[node.index]) != old
    for node in reversed(order):
        node.reaches = frozenset(reach[node.index])
        if not node.insts:
            node.trivial_return = node.end.op == "ret" or (
                node.end.op == "br"
                and not node.end.operands
                and node.successors[0].trivial_return
                and node.successors[0].index > node.index
            )
