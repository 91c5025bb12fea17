"""The command line: its words, and what they run."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from weft._command import development

# Each file has `add_arguments(parser)` and `run(arguments)`; its first line is the help.
WORDS = ("compile", "exec", "show")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command with these words, by default those of the process; gives its exit status.

    >>> main(["--version"])
    weft 0.1.0
    0
    """
    parser = argparse.ArgumentParser("weft", description="Programs of tensors, without PyTorch.")
    development.add_arguments(parser)
    words = parser.add_subparsers(dest="word")
    for word in WORDS:
        file = importlib.import_module(f"weft._command.{word}")
        text = (file.__doc__ or "").partition("\n")[0]
        file.add_arguments(words.add_parser(word, help=text, description=text))
    given = parser.parse_args(arguments)
    if given.word is None:
        return development.run(given, parser)
    try:
        importlib.import_module(f"weft._command.{given.word}").run(given)
    except (OSError, RuntimeError, ValueError, TypeError, LookupError) as error:
        print(f"weft {given.word}: {error}", file=sys.stderr)
        return 1
    return 0
