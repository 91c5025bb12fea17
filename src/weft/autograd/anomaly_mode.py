"""Anomaly mode: finds the operator, and the line of the program, that spoils a gradient."""

from __future__ import annotations

import warnings

from weft import _C

_autograd = _C._autograd

is_anomaly_enabled = _autograd.is_anomaly_enabled
is_anomaly_check_nan_enabled = _autograd.is_anomaly_check_nan_enabled


class set_detect_anomaly:
    """Turns anomaly mode on or off, at once; as a context manager it restores the old state.

    - mode: whether nodes remember the line that recorded them. A failure in backward then warns
      with the traceback of that line, and the error names it.
    - check_nan: raise RuntimeError when a node returns a gradient with NaN.

    It holds for all threads and slows everything down: for debugging only.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._old = (is_anomaly_enabled(), is_anomaly_check_nan_enabled())
        _autograd.set_anomaly_enabled(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        _autograd.set_anomaly_enabled(*self._old)


class detect_anomaly:
    """Anomaly mode for a `with` block around forward and backward; see `set_detect_anomaly`."""

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should "
            "only be enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self._old = (is_anomaly_enabled(), is_anomaly_check_nan_enabled())
        _autograd.set_anomaly_enabled(True, self.check_nan)

    def __exit__(self, *exception: object) -> None:
        _autograd.set_anomaly_enabled(*self._old)
