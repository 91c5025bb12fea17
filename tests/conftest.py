"""Drawn tests draw the same examples in every run, so that a red run is a fault of the change and not the luck
of the draw. `pytest --hypothesis-profile=explore` draws anew: do that after a change, and turn what it finds into
a named case."""

import signal

from hypothesis import settings
from shm_support import private_shm

__all__ = ["private_shm"]  # a fixture

settings.register_profile("same", derandomize=True, database=None)
settings.register_profile("explore", print_blob=True)
settings.load_profile("same")

# A shell's background job ignores Ctrl-C, and what tests start would ignore it too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
