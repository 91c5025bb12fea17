"""The command line: its words, and what they run."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from weft._command import development

# Each has a file with `add_arguments(parser)` and `run(arguments)`, imported when it is asked for.
WORDS = {
    "compile": "compiles a TorchScript archive into a file that libweft runs without Python",
    "exec": "runs a method of a compiled file on arrays of .npy files",
    "launch": "starts a program as several processes, by MPI",
    "run": "runs a program, with weft under the name torch",
    "show": "prints what a TorchScript archive holds: modules, methods, operators, sizes",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command with these words, by default those of the process; gives its exit status.

    >>> main(["--version"])
    weft 0.1.0
    0
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser("weft", description="Programs of tensors, without PyTorch.")
    development.add_arguments(parser)
    parsers = parser.add_subparsers(dest="word")
    added = {word: parsers.add_parser(word, help=text) for word, text in WORDS.items()}
    word = words[0] if words else ""
    if word not in WORDS:
        return development.run(parser.parse_args(words), parser)
    file = importlib.import_module(f"weft._command.{word}")
    added[word].description = WORDS[word]
    file.add_arguments(added[word])
    try:
        file.run(parser.parse_args(words))
    except (OSError, RuntimeError, ValueError, TypeError, LookupError) as error:
        print(f"weft {word}: {error}", file=sys.stderr)
        return 1
    return 0
