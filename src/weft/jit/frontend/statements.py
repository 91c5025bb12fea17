"""Statements. Each handler gives the ways its statement can end (environment.Flow)."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from weft.jit.frontend.assignment import assign, assign_augmented, assign_declared, delete
from weft.jit.frontend.conditions import Condition, condition, refine_all
from weft.jit.frontend.control_flow import EXITS, branch, join, then
from weft.jit.frontend.conversions import coerce
from weft.jit.frontend.emitter import Emitter
from weft.jit.frontend.environment import FALLS, RAISES, RESULT, Flow, sure
from weft.jit.frontend.errors import UnknownOperator, fail
from weft.jit.frontend.expressions import argument, expr
from weft.jit.frontend.scaffold import STATEMENTS, refuse, refuse_form, statement
from weft.jit.frontend.sugared import Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Value
from weft.jit.ir.source import SourceRange


def statements(e: Emitter, nodes: Sequence[ast.stmt]) -> frozenset[str]:
    """Compiles statements; what cannot be reached is left out."""
    if not nodes:
        return FALLS
    first, rest = nodes[0], nodes[1:]
    if isinstance(first, ast.If):
        return _if(e, first, rest)
    ways = _one(e, first)
    index = 1
    while ways == FALLS and index < len(nodes):  # the common case, without recursion
        node = nodes[index]
        index += 1
        if isinstance(node, ast.If):
            return _if(e, node, nodes[index:])
        ways = _one(e, node)
    rest = nodes[index:]
    range = e.range(first)
    return then(e, ways, lambda: statements(e, rest), range) if rest else ways


def _one(e: Emitter, node: ast.stmt) -> frozenset[str]:
    handler = STATEMENTS.get(type(node))
    if handler is None:
        refuse(e.code, node)
    e.depth += 1
    try:
        if e.depth > 200:
            fail("expected less deeply nested statements", e.range(node))
        with e.graph.at_range(e.range(node)):
            return handler(e, node)
    except UnknownOperator as error:
        return _raise_unknown(e, error)
    finally:
        e.depth -= 1


def _raise_unknown(e: Emitter, error: UnknownOperator) -> frozenset[str]:
    from weft.jit.frontend.exceptions import emit_raise

    emit_raise(e, NotImplementedError, e.constant(error.message), error.range)
    return RAISES


@statement(ast.Expr)
def _expression(e: Emitter, node: ast.Expr) -> frozenset[str]:
    if isinstance(node.value, ast.Constant):  # a docstring, or ...
        return FALLS
    expr(e, node.value)
    return FALLS


@statement(ast.Pass)
def _pass(e: Emitter, node: ast.Pass) -> frozenset[str]:
    return FALLS


@statement(ast.Assign)
def _assign(e: Emitter, node: ast.Assign) -> frozenset[str]:
    hint = None
    if node.type_comment is not None:
        hint = e.annotations._of_text(node.type_comment, node.value)
    elif len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        hint = e.scope.declared_type(node.targets[0].id)
    elif len(node.targets) == 1 and isinstance(node.targets[0], ast.Attribute):
        hint = _attribute_type(e, node.targets[0])
    takes_apart = all(isinstance(target, ast.Tuple | ast.List) for target in node.targets)
    if takes_apart and isinstance(node.value, ast.GeneratorExp):
        held = argument(e, node.value)
    else:
        held = expr(e, node.value, hint if isinstance(hint, ty.Type) else None)
    if node.type_comment is not None and isinstance(hint, ty.Type):
        return assign_declared(e, node.targets[0], hint, held, e.range(node.value))
    for target in node.targets:
        assign(e, target, held, e.range(node.value))
    return FALLS


def _attribute_type(e: Emitter, target: ast.Attribute) -> ty.Type | None:
    """The declared type of self.x, so that self.x = [] becomes a list of it."""
    if not isinstance(target.value, ast.Name):
        return None
    owner = e.scope.find(target.value.id)
    type = getattr(owner, "class_type", None) or getattr(owner, "type", None)
    if isinstance(type, ty.ClassType) and target.attr in type.attributes:
        return type.attributes[target.attr].type
    return None


@statement(ast.AnnAssign)
def _declared(e: Emitter, node: ast.AnnAssign) -> frozenset[str]:
    wanted = e.annotations.read(node.annotation)
    if not isinstance(wanted, ty.Type):
        if node.value is not None:
            assign(e, node.target, expr(e, node.value), e.range(node.value))
        return FALLS
    if node.value is None:
        if isinstance(node.target, ast.Name):
            e.scope.declare(node.target.id, wanted)
        return FALLS
    held = expr(e, node.value, wanted)
    return assign_declared(e, node.target, wanted, held, e.range(node.value))


@statement(ast.AugAssign)
def _augmented(e: Emitter, node: ast.AugAssign) -> frozenset[str]:
    assign_augmented(e, node)
    return FALLS


@statement(ast.Delete)
def _delete(e: Emitter, node: ast.Delete) -> frozenset[str]:
    for target in node.targets:
        delete(e, target)
    return FALLS


# Exits ----------------------------------------------------------------------------------------


@statement(ast.Return)
def _return(e: Emitter, node: ast.Return) -> frozenset[str]:
    declared = e.returns.declared
    held: Sugared = e.none() if node.value is None else expr(e, node.value, declared)
    set_result(e, held, e.range(node))
    return frozenset((Flow.RETURN,))


def set_result(e: Emitter, held: Sugared, range: SourceRange) -> None:
    """Makes `held` the result of the function."""
    declared = e.returns.declared
    if declared is not None:
        held = Simple(coerce(e, held, declared, range, "return", strict=True))
    e.scope.set(RESULT, held)


@statement(ast.Break)
def _break(e: Emitter, node: ast.Break) -> frozenset[str]:
    if not e.loops:
        fail("break: expected it inside a loop", e.range(node))
    return frozenset((Flow.BREAK,))


@statement(ast.Continue)
def _continue(e: Emitter, node: ast.Continue) -> frozenset[str]:
    if not e.loops:
        fail("continue: expected it inside a loop", e.range(node))
    return frozenset((Flow.CONTINUE,))


@statement(ast.Raise)
def _raise(e: Emitter, node: ast.Raise) -> frozenset[str]:
    from weft.jit.frontend.exceptions import raise_statement

    if node.cause is not None and not (
        isinstance(node.cause, ast.Constant) and node.cause.value is None
    ):
        refuse_form(e.code, node, "from")
    raise_statement(e, node)
    return RAISES


@statement(ast.Assert)
def _assert(e: Emitter, node: ast.Assert) -> frozenset[str]:
    from weft.jit.frontend.exceptions import raise_assertion

    test = condition(e, node.test)
    range = e.range(node)
    if test.known is True:
        refine_all(e, test.yes)
        return FALLS
    if test.known is False:
        raise_assertion(e, node.msg, range)
        return RAISES

    def holds() -> frozenset[str]:
        refine_all(e, test.yes)
        return FALLS

    def fails() -> frozenset[str]:
        refine_all(e, test.no)
        raise_assertion(e, node.msg, range)
        return RAISES

    assert test.value is not None
    if_node, sides = branch(e, test.value, (holds, fails), range)
    join(e, if_node, sides, range)
    return FALLS


# Branches -------------------------------------------------------------------------------------


def _if(e: Emitter, node: ast.If, rest: Sequence[ast.stmt]) -> frozenset[str]:
    """An if together with what follows it in its block."""
    range = e.range(node)
    try:
        with e.graph.at_range(range):
            test = condition(e, node.test)
    except UnknownOperator as error:
        return _raise_unknown(e, error)
    if test.known is not None:
        refine_all(e, test.yes if test.known else test.no)
        ways = statements(e, node.body if test.known else node.orelse)
        return then(e, ways, lambda: statements(e, rest), range) if rest else ways
    return _dynamic_if(e, node, test, rest, range)


def _dynamic_if(
    e: Emitter, node: ast.If, test: Condition, rest: Sequence[ast.stmt], range: SourceRange
) -> frozenset[str]:
    def yes() -> frozenset[str]:
        refine_all(e, test.yes)
        return statements(e, node.body)

    def no() -> frozenset[str]:
        refine_all(e, test.no)
        return statements(e, node.orelse)

    assert test.value is not None
    if_node, sides = branch(e, test.value, (yes, no), range)
    falling = [Flow.FALL in side.ways for side in sides]
    if rest and sum(falling) == 1:
        other, through = sides[falling.index(False)], sides[falling.index(True)]
        if other.ways & EXITS:  # what follows belongs to the branch that gets there
            with e.within(through.block, through.scope):
                ways = then(e, through.ways, lambda: statements(e, rest), range)
            index = falling.index(True)
            sides[index] = through._replace(ways=ways)
            return join(e, if_node, sides, range)[0]
    ways = join(e, if_node, sides, range)[0]
    if not rest:
        return ways
    if sure(ways) == FALLS:
        ways = FALLS
    return then(e, ways, lambda: statements(e, rest), range)


# Loops ----------------------------------------------------------------------------------------


@statement(ast.While)
def _while(e: Emitter, node: ast.While) -> frozenset[str]:
    from weft.jit.frontend import loops

    range = e.range(node)
    assigned = loops.assigned_names([*node.body, node.test])
    used = {each.id for each in ast.walk(node.test) if isinstance(each, ast.Name)}
    changes = not used.isdisjoint(assigned)
    if changes and _tells_something(e, node.test):
        return _while_inside(e, node)
    first = condition(e, node.test)
    if first.known is not None and changes:  # known of the first step only
        first = Condition(e.constant(first.known))
    if first.known is False:
        return statements(e, node.orelse) if node.orelse else FALLS

    def again() -> Value:
        return condition(e, node.test).materialize(e)

    plan = loops.Plan(
        trips=e.constant(loops.FOREVER),
        first=first.materialize(e),
        start=lambda step: refine_all(e, first.yes),
        again=None if first.known else again,
        body=lambda: statements(e, node.body),
        assigned=assigned,
        forever=first.known is True,
        wants_broke=bool(node.orelse),
    )
    ways = loops.run(e, plan, range)
    orelse = (lambda: statements(e, node.orelse)) if node.orelse else None
    return loops.finish(e, ways, orelse, range)


def _tells_something(e: Emitter, test: ast.expr) -> bool:
    """Whether a test may tell about the types of variables, or sets some (`:=`)."""
    if isinstance(test, ast.Name):
        known = e.scope.find(test.id)
        return not isinstance(known, Simple) or known.v.type is not ty.BOOL
    return any(
        isinstance(each, ast.Is | ast.IsNot | ast.NamedExpr)
        or (isinstance(each, ast.Call) and ast.unparse(each.func).endswith("isinstance"))
        for each in ast.walk(test)
    )


def _while_inside(e: Emitter, node: ast.While) -> frozenset[str]:
    """while x is not None: the test stands inside the loop, where x has all its types:
    while True: if test: ... else: break."""
    leave = ast.copy_location(ast.Break(), node)
    inner = ast.copy_location(ast.If(node.test, node.body, [*node.orelse, leave]), node)
    always = ast.copy_location(ast.Constant(True), node.test)
    return _while(e, ast.copy_location(ast.While(always, [inner], []), node))


@statement(ast.For)
def _for(e: Emitter, node: ast.For) -> frozenset[str]:
    from weft.jit.frontend import loops
    from weft.jit.frontend.iteration import Counted, iterate

    range = e.range(node)
    source = iterate(e, expr(e, node.iter), e.range(node.iter))
    orelse = (lambda: statements(e, node.orelse)) if node.orelse else None

    def bind(item: Sugared) -> None:
        assign(e, node.target, item, e.range(node.target))

    if not isinstance(source, Counted):
        ways = loops.unroll(e, source, bind, lambda: statements(e, node.body), range)
        return loops.finish(e, ways, orelse, range)
    counted = source
    plan = loops.Plan(
        trips=counted.length,
        first=e.constant(True),
        start=lambda step: bind(counted.item(step)),
        again=None,
        body=lambda: statements(e, node.body),
        assigned=loops.assigned_names([node.target, *node.body]),
        forever=False,
        wants_broke=bool(node.orelse),
    )
    return loops.finish(e, loops.run(e, plan, range), orelse, range)


# Other ----------------------------------------------------------------------------------------


@statement(ast.With)
def _with(e: Emitter, node: ast.With) -> frozenset[str]:
    from weft.jit.frontend.context_managers import with_statement

    return with_statement(e, node)


@statement(ast.FunctionDef)
def _local_function(e: Emitter, node: ast.FunctionDef) -> frozenset[str]:
    from weft.jit.frontend.local_functions import LocalFunction

    e.scope.set(node.name, LocalFunction(e, node))
    return FALLS
