"""How long statements take, and tables of it."""

from weft.utils.benchmark.compare import Compare
from weft.utils.benchmark.measurement import Measurement, TaskSpec, select_unit
from weft.utils.benchmark.timer import Timer, timer

__all__ = ["Compare", "Measurement", "TaskSpec", "Timer", "select_unit", "timer"]
