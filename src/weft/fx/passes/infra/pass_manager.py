"""PassManager: passes in an order that constraints allow, until they change nothing."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from weft.fx.graph_module import GraphModule
from weft.fx.passes.infra.pass_base import PassResult
from weft.nn import Module

Pass = Callable[[Any], Any]
Constraint = Callable[[Pass, Pass], bool]


def pass_result_wrapper(fn: Pass) -> Pass:
    """A pass from a function that gives a module, or None where it changed its argument."""

    @functools.wraps(fn)
    def call(module: Module) -> Any:
        result = fn(module)
        if isinstance(result, PassResult):
            return result
        return PassResult(module if result is None else result, True)

    if not inspect.isfunction(fn):
        call.__name__ = type(fn).__name__
    return call


def this_before_that_pass_constraint(this: Pass, that: Pass) -> Constraint:
    """A constraint: `this` does not come after `that`."""
    return lambda first, second: first != that or second != this


def _sorted(passes: Sequence[Pass], constraints: Sequence[Constraint]) -> list[Pass]:
    """The passes, each behind those that must come before it; else as they were."""
    waits = {
        each: {o for o in passes if o != each and not all(c(each, o) for c in constraints)}
        for each in passes
    }
    made: list[Pass] = []
    while len(made) < len(passes):
        ready = [each for each in passes if each not in made and waits[each] <= set(made)]
        if not ready:
            left = [each for each in passes if each not in made]
            raise RuntimeError(f"Circular dependency detected within the following passes: {left}")
        made += ready
    return made


class PassManager:
    """Runs passes one after the other over a module, `steps` times or until none changes it.

    passes: functions that take a module and give a `PassResult`. constraints: each says of two
    passes whether the first may come before the second; passes are sorted by them.
    run_checks_after_each_pass: `check`, or what `add_checks` set, is called after every pass.

    >>> from weft.fx.passes.infra.pass_manager import PassManager, pass_result_wrapper
    >>> done = PassManager([pass_result_wrapper(lambda module: module.eval())])(weft.nn.ReLU())
    >>> done.modified, done.graph_module.training
    (True, False)
    """

    def __init__(
        self,
        passes: list[Pass] | None = None,
        constraints: list[Constraint] | None = None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        self.passes: list[Pass] = passes or []
        self.constraints: list[Constraint] = constraints or []
        self.steps = steps or 1
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        self._validated = False
        self._check: Callable[[Module], None] = lambda module: None

    def add_pass(self, _pass: Pass) -> None:
        """Adds a pass behind the others."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Constraint) -> None:
        """Adds a constraint."""
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self) -> None:
        """RuntimeError where the passes stand in an order that a constraint forbids."""
        if self._validated:
            return
        for i, first in enumerate(self.passes):
            for j, second in enumerate(self.passes[i + 1 :], i + 1):
                if not all(constraint(first, second) for constraint in self.constraints):
                    raise RuntimeError(
                        f"pass schedule constraint violated. Expected {second} before {first}, "
                        f"found them at {j} and {i}"
                    )
        self._validated = True

    def solve_constraints(self) -> None:
        """Sorts the passes. RuntimeError where no order is allowed."""
        self.passes = _sorted(self.passes, self.constraints)
        self._validated = True

    def add_checks(self, check: Callable[[Module], None]) -> None:
        """Sets what looks at modules. TypeError unless it takes one argument."""
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("add_checks: expected a function of one argument, a module")
        self._check = check

    def check(self, module: Module) -> None:
        """Looks at a module: what `add_checks` set."""
        self._check(module)

    def __call__(self, module: Module) -> PassResult:
        """The module after the passes, and whether one changed it."""
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        modified = False
        for _ in range(self.steps):
            changed = False
            for each in self.passes:
                module, one = self._run(each, module)
                changed |= bool(one)
            modified |= changed
            if not changed:
                break
        return PassResult(module, modified)

    def _run(self, each: Pass, module: Module) -> PassResult:
        name = getattr(each, "__name__", type(each).__name__)
        try:
            result = each(module)
            if not hasattr(result, "graph_module"):
                raise TypeError(
                    f"{name}: expected a PassResult, got {type(result).__name__}; "
                    "pass_result_wrapper makes one"
                )
            if isinstance(result.graph_module, GraphModule):
                result.graph_module.recompile()
            if self.run_checks_after_each_pass:
                self.check(result.graph_module)
        except Exception as error:
            before = [getattr(p, "__name__", type(p).__name__) for p in self.passes]
            raise Exception(
                f"An error occurred when running the {name!r} pass among {before}"
            ) from error
        return PassResult(result.graph_module, bool(result.modified))


__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]
