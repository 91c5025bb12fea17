"""`weft compile`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import weft
from weft.export._read import program_archive
from weft.jit.aot.compile import aot_compile
from weft.jit.archive.load import extra_files, load
from weft.jit.frozen import freeze
from weft.serialization.source import open_source


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The archive, where the result goes, and methods besides those that are found."""
    parser.add_argument("archive", help="what torch.jit.save or torch.export.save wrote")
    parser.add_argument(
        "-o", "--output",
        help="the compiled file; by default archive.weft. One whose name ends in .pt is an archive "
        "too, for torch.jit.load",
    )  # fmt: skip
    parser.add_argument(
        "--method", action="append", default=[], help="one more method that can be called"
    )
    parser.add_argument(
        "--freeze", action="store_true",
        help="for inference alone: parameters become constants, and what follows from them is "
        "computed now, as torch.jit.freeze does",
    )  # fmt: skip
    parser.add_argument(
        "--example", action="append", default=[], metavar="[DTYPE:]2x3x4",
        help="an argument of forward, by its sizes: machine code is made for such calls",
    )  # fmt: skip
    parser.add_argument(
        "--packed", action="store_true",
        help="keep the weights that --example needs once more, as the kernels read them: programs "
        "start faster, from a larger file",
    )  # fmt: skip
    parser.add_argument(
        "--target", default="x86-64-v3,x86-64-v4",
        help="machines that it is made for: x86-64-v2, x86-64-v3, x86-64-v4, aarch64",
    )  # fmt: skip
    parser.add_argument(
        "--library", action="append", default=[], help="a library in C that registers operators"
    )
    parser.add_argument(
        "--operator", action="append", default=[], metavar="SCHEMA",
        help="an operator that the program that runs the file registers: "
        "'my::scale(Tensor x, float by) -> Tensor'",
    )  # fmt: skip


def run(given: argparse.Namespace) -> None:
    """Loads the archive, compiles it, and says how large the result is."""
    output = Path(given.output or Path(given.archive).with_suffix(".weft"))
    arguments = tuple(_example(text) for text in given.example)
    examples = [arguments] if arguments else []
    for library in given.library:
        weft.ops.load_library(library)
    for schema in given.operator:
        name, bracket, rest = schema.partition("(")
        weft.library.define(name.strip(), bracket + rest)
    module = _module(given.archive)
    if given.freeze:
        module = freeze(module.eval(), preserved_attrs=given.method)
    archive, targets = output.suffix == ".pt", given.target.split(",")
    extra = extra_files(given.archive)
    aot_compile(module, output, given.method, examples, targets, archive, given.packed, extra)
    print(f"{output}: {output.stat().st_size} bytes")


def _module(path: str) -> Any:
    """The program of an archive, or of a file that torch.export.save wrote."""
    with open_source(path, "load") as source:
        is_exported = program_archive(source) is not None
    return weft.jit.script(weft.export.load(path).module()) if is_exported else load(path)


def _example(text: str) -> Any:
    """A tensor of ones: "int64:2x3" or "2x3", which is float32."""
    dtype, _, sizes = text.rpartition(":")
    if sizes and not all(size.isdigit() for size in sizes.split("x")):
        raise ValueError(f"--example: expected sizes like 2x3x4, got {text}")
    numbers = [int(size) for size in sizes.split("x")] if sizes else []
    return weft.ones(numbers, dtype=getattr(weft, dtype or "float32"))
