"""From functions of the IR to callables: optimise, lower, load; once each, at the first call."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from typing import Any

from weft import _C
from weft.jit.ir import Function
from weft.jit.ir import types as ty
from weft.jit.passes import gradients
from weft.jit.passes.options import DEFAULT, INFERENCE, Options
from weft.jit.recursion import DeepRecursion

_FORK_WAITS = 10.0  # seconds


class _Compiling:
    """One compiler at a time, since the frontend and the passes share tables."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._taken = False  # by a thread that forks
        self._entered = 0  # by the thread that has the lock
        self._deep = DeepRecursion()

    def __enter__(self) -> None:
        self._lock.acquire()
        self._entered += 1
        if self._entered == 1:
            self._deep.__enter__()

    def __exit__(self, *exception: object) -> None:
        self._entered -= 1
        if not self._entered:
            self._deep.__exit__()
        self._lock.release()

    def before_fork(self) -> None:
        """No child is made while another thread compiles, unless that takes too long."""
        self._taken = self._lock.acquire(timeout=_FORK_WAITS)

    def after_fork_in_parent(self) -> None:
        if self._taken:
            self._lock.release()

    def after_fork_in_child(self) -> None:
        """The thread that compiles, if there still is one, is not in this process."""
        if self._taken:
            self._lock.release()
        else:
            self._lock = threading.RLock()
            self._entered = 0


LOCK = _Compiling()
os.register_at_fork(
    before=LOCK.before_fork,
    after_in_parent=LOCK.after_fork_in_parent,
    after_in_child=LOCK.after_fork_in_child,
)
_LEVEL = 2
programs_made = 0  # in this process; weft.jit.stats tells


def class_of(type: ty.ClassType) -> Any:
    """The runtime class of a class type. All programs share it, so that an object goes from one to
    another."""
    from weft.jit.codegen import compile_program

    with LOCK:
        if type.runtime is None:
            within = _classes_within(type)
            for inner in within:
                if inner.runtime is None:
                    known = {each.name: each.runtime for each in within if each.runtime is not None}
                    inner.runtime = compile_program([], [inner], known).class_(inner.name)
        return type.runtime


def _classes_within(type: ty.ClassType) -> list[ty.ClassType]:
    """The classes of the attributes, each before those that hold it."""
    found: dict[int, ty.ClassType] = {}
    seen: set[int] = set()

    def visit(each: ty.Type) -> None:
        if isinstance(each, ty.ClassType):
            if id(each) in seen:
                return
            seen.add(id(each))
            for attribute in each.attributes.values():
                visit(attribute.type)
            found[id(each)] = each
        else:
            for child in each.children:
                visit(child)

    visit(type)
    return list(found.values())


def executable(
    function: Function, classes: Iterable[ty.ClassType] = (), level: int | None = None
) -> Callable[..., Any]:
    """The function, ready to be called with Python objects. `classes` are those whose objects may
    stand behind interfaces.

    There are two programs, each made when it is first needed: for calls in which no gradient can
    be recorded, because grad mode is off or no argument requires one, passes are freer and groups
    carry no gradient. Before them the very first call takes the function as the frontend made it,
    unless there are loops: many functions are called once, and its result is sooner there than the
    optimised program. A `level` of the pipeline has its programs from the first call on.
    """
    classes = list(classes)
    made: dict[bool, Any] = {}
    wanted = _LEVEL if level is None else level

    def first() -> Any:
        with LOCK:
            return _load(function, classes, 0, DEFAULT)

    def make(records: bool) -> Any:
        with LOCK:
            records = records or not wanted or gradients.may_start(function.graph)
            if records not in made:
                made[records] = _load(function, classes, wanted, DEFAULT if records else INFERENCE)
            return made[records]

    is_tiered = level is None and not _may_repeat(function)
    return _C.JitChoice(make, first if is_tiered else None)


_LOOPS = frozenset({"prim::Loop", "prim::fork"})
_CALLS = frozenset({"prim::CallFunction", "prim::CallMethod"})


def _may_repeat(function: Function, known: dict[int, bool] | None = None) -> bool:
    """Whether a call may run a node again and again."""
    if function.graph.may_have(_LOOPS):
        return True
    if not function.graph.may_have(_CALLS):
        return False
    from weft.jit.passes.inlining import callee

    known = {} if known is None else known
    if id(function) not in known:
        known[id(function)] = True  # should it call itself
        called = [callee(node) for node in function.graph.walk() if node.kind in _CALLS]
        known[id(function)] = any(each is None or _may_repeat(each, known) for each in called)
    return known[id(function)]


def _optimized(function: Function, level: int, options: Options) -> Function:
    # A third of the compiler's modules, which first calls do without.
    from weft.jit import native
    from weft.jit.pipeline import optimize

    native.start()
    return optimize(function, level, options)


def _load(
    function: Function, held: Iterable[ty.ClassType], level: int, options: Options
) -> Callable[..., Any]:
    # Imported under LOCK: a child of fork would wait for ever for a thread that imports.
    from weft.jit.codegen import lower_program

    optimized = _optimized(function, level, options) if level else function
    data = lower_program([optimized], held, options.gradients)
    encoded = data.encode()  # which brings the last classes
    classes = {type.name: class_of(type) for type in data.tables.classes}
    program = _C.JitProgram(encoded, data.tables.inputs, data.callables, classes)
    run = program.function(optimized.name)
    run._source = function  # for traces that call it
    global programs_made
    programs_made += 1
    return run
