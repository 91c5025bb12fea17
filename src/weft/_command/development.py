"""What other programs are built with: the folders of headers, libraries and CMake's package."""

from __future__ import annotations

import argparse
from pathlib import Path

import weft

_FOLDER = Path(weft.__file__).resolve().parent


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that stand for themselves."""
    parser.add_argument("--version", action="store_true", help="the version of weft")
    parser.add_argument("--include", action="store_true", help="the folder of weft.h and weft.hpp")
    parser.add_argument("--library", action="store_true", help="the folder of libweft.so")
    parser.add_argument(
        "--cmake-prefix", action="store_true", help="CMAKE_PREFIX_PATH for find_package(weft)"
    )
    parser.add_argument(
        "--flags",
        action="store_true",
        help="options with which a C or C++ compiler builds and links",
    )
    parser.add_argument(
        "--libtorch-flags", action="store_true", help="the same for programs of libtorch"
    )
    parser.add_argument(
        "--libtorch-prefix",
        action="store_true",
        help="CMAKE_PREFIX_PATH for find_package(Torch) of programs of libtorch",
    )


def run(given: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Prints what is asked for; the help when it is nothing."""
    include, library = _FOLDER / "include", _FOLDER / "lib"
    flags = f"-I{include} -L{library} -lweft -Wl,-rpath,{library}"
    answers = [
        (given.version, f"weft {weft.__version__}"),
        (given.include, include),
        (given.library, library),
        (given.cmake_prefix, library / "cmake"),
        (given.flags, flags),
        (given.libtorch_flags, f"-I{include / 'libtorch'} {flags} -pthread"),
        (given.libtorch_prefix, library / "libtorch"),
    ]
    asked = [answer for is_asked, answer in answers if is_asked]
    for answer in asked:
        print(answer)
    if not asked:
        parser.print_help()
    return 0 if asked else 2
