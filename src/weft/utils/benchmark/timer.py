"""Timer: how long a statement takes."""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable
from typing import Any, NoReturn

from weft import _C
from weft._runtime.public import weft
from weft.utils.benchmark.measurement import Measurement, TaskSpec

timer = time.perf_counter


class Timer:
    """Measures a statement of Python, with `num_threads` threads for operators.

    stmt, setup: source, run with the names of `globals`; a first, unmeasured run warms up. label,
    sub_label, description, env: names in tables. global_setup and other languages are for C++:
    NotImplementedError.

    >>> timer = weft.utils.benchmark.Timer("x + 1", globals={"x": weft.ones(2)})
    >>> timer.timeit(10).number_per_run
    10
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Any = "python",
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError(
                f"Timer: expected the source of a statement, got {type(stmt).__name__}"
            )
        if global_setup or str(language).lower().rpartition(".")[2] not in ("py", "python"):
            raise NotImplementedError(f"Timer: expected a statement of Python, got {language!r}")
        names = {"torch": weft, "weft": weft, **({} if globals is None else globals)}
        self._timer = timeit.Timer(stmt=stmt, setup=setup, timer=timer, globals=names)
        self._task_spec = TaskSpec(
            *(stmt, setup, global_setup, label, sub_label, description, env, num_threads)
        )

    def _measured(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self._task_spec)

    def _threaded(self, function: Callable[[], Any]) -> Any:
        """A call with the threads of the task."""
        before = _C.get_num_threads()
        _C.set_num_threads(self._task_spec.num_threads)
        try:
            return function()
        finally:
            _C.set_num_threads(before)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """One measurement of `number` runs, after a hundredth of them (at most 100) to warm up."""

        def run() -> Measurement:
            self._timer.timeit(min(max(number // 100, 1), 100))
            return self._measured(number, [self._timer.timeit(number)])

        return self._threaded(run)

    def autorange(self, callback: Callable[[int, float], NoReturn] | None = None) -> NoReturn:
        """NotImplementedError: blocked_autorange and adaptive_autorange are there."""
        raise NotImplementedError("Timer.autorange: expected blocked_autorange, got autorange")

    def collect_callgrind(self, *args: Any, **kwargs: Any) -> NoReturn:
        """NotImplementedError: instructions are not counted."""
        raise NotImplementedError("Timer.collect_callgrind: expected times, got instructions")

    def _block_size(self, min_run_time: float) -> int:
        """A number of runs that takes a thousandth of the time, so that reading a clock is free."""
        self._timer.timeit(1)
        number = 1
        while True:
            taken = self._timer.timeit(number)
            if taken >= min(1e-4, min_run_time / 1000) * 10 or number >= 1 << 30:
                return number
            number *= 2

    def _until(
        self, least: float, most: float, enough: Callable[[Measurement], bool], callback: Any
    ) -> Measurement:
        def run() -> Measurement:
            number, times, spent = self._block_size(least), [], 0.0
            while spent < most:
                taken = self._timer.timeit(number)
                times.append(taken)
                spent += taken
                if callback is not None:
                    callback(number, taken)
                if spent >= least and enough(self._measured(number, times)):
                    break
            return self._measured(number, times)

        return self._threaded(run)

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Blocks of as many runs as keep the clock's share small, for min_run_time seconds.

        callback: called after each block with its runs and seconds.
        """
        return self._until(min_run_time, float("inf"), lambda _: True, callback)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """Blocks until the times vary by less than threshold, at most max_run_time seconds."""

        def steady(measured: Measurement) -> bool:
            return len(measured.raw_times) > 3 and measured.meets_confidence(threshold)

        return self._until(min_run_time, max_run_time, steady, callback)
