"""Branches, loops and fusion groups as jumps."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from weft.jit.codegen.program import Code
from weft.jit.codegen.registers import is_scalar_register
from weft.jit.codegen.scalars import is_scalar_type, literal, scalar_instruction
from weft.jit.ir import Block, Node, Value
from weft.jit.ir import types as ty
from weft.jit.schemas import tags_of

if TYPE_CHECKING:
    from weft.jit.codegen.lower import Lowering

_FOREVER = (1 << 63) - 1


def lower(low: Lowering, node: Node) -> bool:
    """Adds the code of a node with blocks; False if it has none."""
    if node.kind == "prim::If":
        _if(low, node)
    elif node.kind == "prim::Loop":
        _loop(low, node)
    elif node.kind == "weft::Fused":
        _fused(low, node)
    else:
        return False
    return True


# ---- conditions ----


def defer(low: Lowering, node: Node) -> bool:
    """Whether a comparison is done by the jump that follows it, and so is no code of its own."""
    if not _may_be_fusible(node.kind) or len(node.outputs) != 1:
        return False
    if not _is_fusible(low, node) or len(node.output.uses) != 1:
        return False
    ((user, index),) = node.output.uses
    behind = node.next
    while behind is not None and behind.kind == "prim::Constant":
        behind = behind.next
    if isinstance(user, Node):
        fits = user is behind and user.kind == "prim::If"
    else:
        # The condition of a loop, last thing in its body.
        parent = user.parent_node
        fits = behind is None and index == 0 and user is node.owner
        fits = fits and parent is not None and parent.kind == "prim::Loop"
        fits = fits and scalar_instruction(node.kind) is not None
        # Registers of the loop change before it jumps: they must not be compared afterwards.
        moved = set(user.params) if fits else set()
        fits = fits and not any(value in moved for value in node.inputs)
    if fits:
        low.deferred[node.output] = node
    return fits


@functools.cache
def _may_be_fusible(kind: str) -> bool:
    if tags_of(kind) & {"negation", "compares_identity"}:
        return True
    scalar = scalar_instruction(kind)
    return scalar is not None and scalar.gives_bool


def _is_fusible(low: Lowering, node: Node) -> bool:
    tags = tags_of(node.kind)
    if "compares_identity" in tags:
        left, right = node.inputs
        if left.type == ty.NONE:
            left, right = right, left
        stays = left not in low.live.last_uses[node] and not left.is_constant
        return (
            right.type == ty.NONE and right.is_constant and stays and not is_scalar_type(left.type)
        )
    if "negation" in tags:
        return node.inputs[0].type == ty.BOOL and not node.inputs[0].is_constant
    scalar = scalar_instruction(node.kind)
    if scalar is None or not scalar.gives_bool:
        return False
    return scalar.takes([value.type for value in node.inputs])


def jump_on(low: Lowering, condition: Value, when: bool) -> Code:
    """A jump taken if the condition is `when`; its target is set later."""
    word = "if" if when else "unless"
    node = low.deferred.get(condition)
    if node is None:
        return low.emit(f"jump_{word}", b=low.scalar_source(condition))
    tags = tags_of(node.kind)
    if "compares_identity" in tags:
        left = node.inputs[1] if node.inputs[0].type == ty.NONE else node.inputs[0]
        is_none = when != ("negation" in tags)
        return low.emit(f"jump_{'if' if is_none else 'unless'}_none", b=low.registers.of[left])
    if "negation" in tags:
        return low.emit(f"jump_{'unless' if when else 'if'}", b=low.scalar_source(node.inputs[0]))
    scalar = scalar_instruction(node.kind)
    assert scalar is not None
    left, right = node.inputs
    first = low.scalar_source(left)
    wide = literal(scalar.operands[1], right.constant) if right.is_constant else None
    low.range = node.range or low.range
    if wide is not None:
        return low.emit(f"jump_{word}_{scalar.name}_imm", b=first, x=wide)
    return low.emit(f"jump_{word}_{scalar.name}", b=first, c=low.scalar_source(right))


def _condition_done(low: Lowering, condition: Value, last_used: list[Value]) -> None:
    """The registers of a condition, or of what it compares, are free if nobody needs them."""
    node = low.deferred.pop(condition, None)
    low.forget(last_used if node is None else low.live.last_uses[node])


# ---- branches ----


def _if(low: Lowering, node: Node) -> None:
    registers, (condition,) = low.registers, node.inputs
    skip = jump_on(low, condition, False)
    _condition_done(low, condition, low.live.last_uses[node])
    targets = [_target(low, node, i) for i in range(len(node.outputs))]
    start = registers.snapshot()
    _branch(low, node.blocks[0], targets)
    finish = low.emit("jump")
    skip.target = low.here()
    registers.restore(start)
    _branch(low, node.blocks[1], targets)
    if low.here() == skip.target:  # nothing to skip
        low.code.pop()
        skip.target -= 1
    finish.target = low.here()
    registers.restore(start)
    for value in low.live.after[node]:
        registers.free(registers.of[value])
    for value, target in zip(node.outputs, targets):
        registers.unreserve(target)
        registers.put(value, target)


def _target(low: Lowering, node: Node, index: int) -> int:
    """The register of one output: that of an outer value which dies here and is handed on by a
    branch, or the one where the output is wanted, or a new one. Reserved until the branches end."""
    registers, output = low.registers, node.outputs[index]
    scalar = is_scalar_type(output.type)
    hint = registers.hints.get(output)
    if hint is not None and registers.owners.get(hint) in low.live.after[node]:
        return registers.reserve(hint)  # free by the time it is filled, or soon after
    if hint is None or hint in registers.owners:
        for block in node.blocks:
            value = block.returns[index]
            if value in low.live.after[node] and value not in _others(node, index):
                register = registers.of[value]
                if is_scalar_register(register) == scalar and not registers.is_reserved(register):
                    return registers.reserve(register)
    register = registers.take(scalar, output, hint)
    registers.owners.pop(register)  # nobody's, until a branch fills it
    return registers.reserve(register)


def _others(node: Node, index: int) -> set[Value]:
    return {value for block in node.blocks for i, value in enumerate(block.returns) if i != index}


def _branch(low: Lowering, block: Block, targets: list[int]) -> None:
    low.release(low.live.dead_at[block])
    _hint(low, block, block.returns, targets)
    low.block(block)
    low.move_all(block.returns, targets, low.live.ends[block])


def _hint(low: Lowering, block: Block, values: tuple[Value, ...], targets: list[int]) -> None:
    """Values made in a block go where they are wanted."""
    for value, target in zip(values, targets):
        if value.node is not None and value.node.owner is block:
            low.registers.hints.setdefault(value, target)


# ---- loops ----


def _loop(low: Lowering, node: Node) -> None:
    registers, body = low.registers, node.blocks[0]
    max_trip, condition, *initial = node.inputs
    endless = max_trip.is_constant and max_trip.constant == _FOREVER
    counter_used = body.params[0].has_uses
    counted = counter_used or not endless
    exits: list[Code] = []
    last_used = low.live.last_uses[node]
    homes = [_home(low, node, i, initial, last_used) for i in range(len(initial))]
    if not (condition.is_constant and condition.constant is True):
        exits.append(jump_on(low, condition, False))
    # What loops read but do not carry stays where it is until they end.
    kept = [value for value in last_used if value is max_trip]
    low.forget(
        [v for v in last_used if v is not max_trip and registers.owners.get(registers.of[v]) is v]
    )
    counter = limit = 0
    if counted:
        limit = low.scalar_source(max_trip)
        counter = registers.reserve(registers.take(True, body.params[0]))  # to the end of the loop
        registers.of[body.params[0]] = counter
        exits.append(low.emit("loop_start", counter, limit))
    start = registers.snapshot()
    top = low.here()
    for value in low.live.idle[body]:
        if value is not body.params[0]:
            registers.owners.pop(registers.of[value])  # what it held is overwritten
    _hint(low, body, body.returns[1:], homes)
    low.block(body)
    _repeat(low, body, homes, counted, counter, limit, top, exits)
    for code in exits:
        code.target = low.here()
    registers.restore(start)
    if counted:
        registers.unreserve(counter)
        registers.free(counter)
    low.forget(kept)
    for home, value in zip(homes, node.outputs):
        registers.unreserve(home)
        registers.put(value, home)
    low.release(low.live.after[node])


def _home(
    low: Lowering, node: Node, index: int, initial: list[Value], last_used: list[Value]
) -> int:
    """The register of a carried value: that of its initial value if nobody else needs it."""
    registers, value = low.registers, initial[index]
    param = node.blocks[0].params[index + 1]
    scalar = is_scalar_type(param.type)
    register = registers.of.get(value)
    if (
        value in last_used
        and register is not None
        and initial.count(value) == 1
        and value is not node.inputs[0]
        and is_scalar_register(register) == scalar
        and not registers.is_reserved(register)
    ):
        registers.put(param, register)
    else:
        hint = registers.hints.get(node.outputs[index])
        register = registers.take(scalar, param, hint)
        registers.of[param] = register
        if value.is_constant:
            low.load(register, value)
        elif value.node is None or value.node.kind != "prim::Uninitialized":
            again = value in initial[index + 1 :] or value is node.inputs[0]
            low.move(register, registers.of[value], value in last_used and not again)
    return registers.reserve(register)


def _repeat(
    low: Lowering, body: Block, homes: list[int], counted: bool, counter: int, limit: int, top: int,
    exits: list[Code],
) -> None:  # fmt: skip
    """The end of a loop's body: carried values go home, and it starts again or not."""
    condition = body.returns[0]
    always = condition.is_constant and condition.constant is True
    if not always and condition not in low.deferred and not condition.is_constant:
        register = low.registers.of[condition]
        if register in homes:
            # Its register changes before it is read.
            spare = low.registers.take(True, None)
            low.emit("move_scalar", spare, register)
            low.registers.of[condition] = spare
    values, ends = body.returns[1:], low.live.ends[body]
    low.move_all(values, homes, ends)
    if always:
        if counted:
            low.emit("loop_next", counter, limit, target=top)
        else:
            low.emit("jump", target=top)
        return
    if counted:
        exits.append(jump_on(low, condition, False))
        low.emit("loop_next", counter, limit, target=top)
    else:
        jump_on(low, condition, True).target = top
    low.deferred.pop(condition, None)


# ---- fusion groups ----


def _fused(low: Lowering, node: Node) -> None:
    """The group runs as one, or else the operators of its block one by one."""
    registers, block = low.registers, node.blocks[0]
    last_used = low.live.last_uses[node]
    if not node.outputs:  # nobody wants anything of it but its errors
        fused_body(low, node, block, [], last_used)
        return
    index = low.compiler.group(node)
    results = [registers.take(False, value) for value in node.outputs]
    # What the group reads last it frees, and may write its results to; if it does not run, the
    # operators do that.
    words = low.words(node.inputs, last_used)
    low.site_words("run_group", words, results, index)
    fallback = low.emit("jump")
    start = registers.snapshot()
    low.forget([value for value in last_used if value in node.inputs])
    low.release([value for value in last_used if value not in node.inputs])
    finish = low.emit("jump")
    fallback.target = low.here()
    registers.restore(start)
    for register in results:
        registers.owners.pop(register)
        registers.reserve(register)
    fused_body(low, node, block, results, last_used)
    finish.target = low.here()
    registers.restore(start)
    for value in last_used:
        registers.free(registers.of[value])
    for value, register in zip(node.outputs, results):
        registers.unreserve(register)
        registers.put(value, register)


def fused_body(
    low: Lowering, node: Node, block: Block, results: list[int], last_used: list[Value]
) -> None:
    """The operators of a group: its parameters are the inputs under other names."""
    registers = low.registers
    copies: list[Value] = []
    for param, value in zip(block.params, node.inputs):
        register = registers.take(is_scalar_type(param.type), param)
        registers.of[param] = register
        copies.append(param)
        if value.is_constant:
            low.load(register, value)
        else:
            low.move(register, registers.of[value], False)
    low.release(last_used)
    low.release(low.live.idle[block])
    _hint(low, block, block.returns, results)
    low.block(block)
    low.move_all(block.returns, results, low.live.ends[block])
