"""Errors of workers: how an exception travels, and how the end of a process is told."""

from __future__ import annotations

import builtins
import errno
import pickle
import resource
import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn


def pack_error(error: BaseException, worker: int) -> tuple[Any, str]:
    """The class of an exception (None where it cannot be sent) and the text for the parent."""
    name = type(error).__name__
    text = (
        f"Caught {name} in DataLoader worker process {worker}.\n"
        f"Original {''.join(traceback.format_exception(error))}"
    )
    try:
        pickle.dumps(type(error))
    except Exception:  # a class inside a function: it exists in the worker only
        return None, text
    return type(error), text


class _Verbatim(str):
    """A message that KeyError shows as it is, with its line breaks."""

    def __repr__(self) -> str:
        return str(self)


def raise_packed(kind: Any, text: str) -> NoReturn:
    """Raises the class with the text; RuntimeError where the class cannot be made from a text."""
    if kind is StopIteration:  # would end the caller's loop as if the epoch were over
        raise RuntimeError(text)
    if kind is not None and issubclass(kind, builtins.KeyError):
        raise kind(_Verbatim(text))
    try:
        error = kind(text)
    except Exception:
        raise RuntimeError(text) from None
    try:
        raise error
    finally:
        del error  # or it would keep itself, and the frames that hold the loader, in a cycle


@contextmanager
def explained(method: str) -> Iterator[None]:
    """Errors of what cannot be pickled say why it is (from Python 3.11 on, which shows notes)."""
    try:
        yield
    except (AttributeError, TypeError, pickle.PicklingError) as error:
        if method != "fork" and hasattr(error, "add_note"):
            error.add_note(
                "DataLoader: expected a data set and functions that can be pickled, which workers "
                f"need that {method!r} starts ('forkserver': the default from Python 3.14 on); "
                "multiprocessing_context='fork' takes all others"
            )
        raise


# What runs out when a process cannot be started: its name, its limit, and how a shell shows that.
LIMITS = {
    errno.EMFILE: ("file descriptors", resource.RLIMIT_NOFILE, "ulimit -n"),
    errno.EAGAIN: ("processes of one user", resource.RLIMIT_NPROC, "ulimit -u"),
}


def start_error(number: int, wanted: int, started: int) -> OSError:
    """The OSError of workers that could not be started, which names the limit."""
    what, limit, command = LIMITS[number]
    most = resource.getrlimit(limit)[0]
    allowed = "what a container" if most == resource.RLIM_INFINITY else f"the {most} that {command}"
    return OSError(
        number,
        f"DataLoader: expected to start {wanted} workers, got {started} of them and no more "
        f"{what} than {allowed} allows; raise that limit or choose a smaller num_workers",
    )


HINTS = {
    "SIGKILL": "; the system may have run out of memory",
    "SIGBUS": "; the system may have run out of shared memory",
}


def describe_exit(pid: int, code: int | None) -> str:
    """One line on how a worker ended."""
    if code is None:
        return f"worker {pid} closed its connection"
    if code >= 0:
        return f"worker {pid} exited with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    told = signal.strsignal(-code) or name
    return f"worker {pid} was killed by signal: {told} ({name}){HINTS.get(name, '')}"
