"""Where in the user's program a trace is, and warnings that name that place."""

from __future__ import annotations

import itertools
import linecache
import os
import sys
import warnings
from types import CodeType, FrameType

from weft._runtime.public import weft
from weft.jit.ir.source import Source, SourceRange

_LIBRARY = os.path.dirname(os.path.abspath(weft.__file__)) + os.sep
_COMPILER = os.path.join(_LIBRARY, "jit") + os.sep


class TracerWarning(Warning):
    """A trace has become a constant, or may be wrong for other inputs."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Silences the warnings that are about lines of weft itself."""
        warnings.filterwarnings("ignore", category=TracerWarning, module="weft.*")


def user_frame(outermost: CodeType | None) -> FrameType:
    """The innermost frame that is not weft's, or of weft's own modules where they are what is
    traced: nothing outside the frame of `outermost` is looked at."""
    frame: FrameType | None = sys._getframe(1)
    own = None
    while frame is not None and frame.f_code is not outermost:
        name = frame.f_code.co_filename
        if not name.startswith(_LIBRARY):
            return frame
        if own is None and not name.startswith(_COMPILER):
            own = frame
        frame = frame.f_back
    return own or frame or sys._getframe(1)


def is_library(frame: FrameType) -> bool:
    """Whether a frame runs a line of weft."""
    return frame.f_code.co_filename.startswith(_LIBRARY)


class SourceLocations:
    """Source ranges of frames; each line is read once."""

    def __init__(self, outermost: CodeType | None) -> None:
        self._outermost = outermost
        self._sources: dict[tuple[str, int], Source] = {}

    def here(self) -> SourceRange:
        """The place in the program where the trace is."""
        frame = user_frame(self._outermost)
        name = frame.f_code.co_filename
        line, end_line, start, end = _position(frame)
        source = self._sources.get((name, line))
        if source is None:
            text = linecache.getline(name, line, frame.f_globals).rstrip("\n")
            source = self._sources[name, line] = Source(text, name, line)
        assert source.text is not None
        size = len(source.text)
        start = len(source.text.encode()[:start].decode(errors="ignore"))
        stop = len(source.text.encode()[:end].decode(errors="ignore"))
        return SourceRange(source, min(start, size), min(stop if end_line == line else size, size))

    def warn(self, message: str) -> None:
        """A TracerWarning at the place where the trace is."""
        frame = user_frame(self._outermost)
        warnings.warn_explicit(
            message,
            TracerWarning,
            frame.f_code.co_filename,
            frame.f_lineno,
            module=frame.f_globals.get("__name__", "<unknown>"),
            registry=frame.f_globals.setdefault("__warningregistry__", {}),
        )


def _position(frame: FrameType) -> tuple[int, int, int, int]:
    """Line, last line, and the columns (in bytes) of what the frame runs."""
    number = frame.f_lineno
    if not hasattr(frame.f_code, "co_positions"):  # Python 3.10
        return number, number, 0, 1
    found = next(
        itertools.islice(frame.f_code.co_positions(), max(frame.f_lasti, 0) // 2, None), None
    )
    line, end_line, start, end = found or (None, None, None, None)
    if line is None or line != number:
        return number, number, 0, 1
    return line, end_line or line, start or 0, end or 1
