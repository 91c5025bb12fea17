"""`weft exec`."""

from __future__ import annotations

import argparse
from typing import Any

import numpy

import weft


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The compiled file, its arguments, and where the results go."""
    parser.add_argument("file", help="what `weft compile` wrote")
    parser.add_argument("--method", default="forward")
    parser.add_argument(
        "--input", action="append", default=[], metavar="[NAME=]X.npy",
        help="an argument, by its name or in the order of the method's",
    )  # fmt: skip
    parser.add_argument(
        "--output", action="append", default=[], metavar="[NAME=]Y.npy",
        help="where a result goes, by its key or field or in order; without it results are printed",
    )  # fmt: skip
    parser.add_argument(
        "--library", action="append", default=[], help="a library in C that registers operators"
    )
    parser.add_argument(
        "--profile", type=int, default=0, metavar="RUNS",
        help="prints a table of the time that operators take in so many further runs",
    )  # fmt: skip


def run(given: argparse.Namespace) -> None:
    """Calls the method and writes the tensors that it gives."""
    for library in given.library:
        weft.ops.load_library(library)
    module = weft._C.CompiledModule(given.file)
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for text in given.input:
        name, equals, path = text.partition("=")
        value = weft.from_numpy(numpy.load(path if equals else name, allow_pickle=False))
        if equals:
            kwargs[name] = value
        else:
            args.append(value)
    for parameter in module.parameters().values():
        parameter.requires_grad_(False)  # the program may ask for gradients of its own
    result = module.call(given.method, *args, **kwargs)
    if given.profile:
        with weft.profiler.profile(record_shapes=True) as profile:
            for _ in range(given.profile):
                module.call(given.method, *args, **kwargs)
        print(profile.key_averages(True).table(sort_by="self_cpu_time_total", row_limit=40))
    if not given.output:
        print(result)
        return
    for path, tensor in _located(given.output, result):
        if not isinstance(tensor, weft.Tensor):
            raise TypeError(f"expected tensors as results, got {type(tensor).__name__}")
        numpy.save(path, tensor.detach().numpy())


def _located(outputs: list[str], result: Any) -> list[tuple[str, Any]]:
    """Each path with its result. Results without names take those of the outputs, in order."""
    split = [text.partition("=") for text in outputs]
    names = [name if equals else "" for name, equals, _ in split]
    paths = [path if equals else name for name, equals, path in split]
    named = result if isinstance(result, dict) else getattr(result, "_asdict", dict)()
    if named and all(names):
        unknown = [name for name in names if name not in named]
        if unknown:
            raise ValueError(f"expected outputs among {', '.join(named)}, got {unknown[0]}")
        return [(path, named[name]) for name, path in zip(names, paths)]
    results = list(named.values()) if named else [result]
    if not named and isinstance(result, tuple | list):
        results = list(result)
    if len(results) != len(outputs):
        raise ValueError(
            f"expected an output for each of {len(results)} results, got {len(outputs)}"
        )
    return list(zip(paths, results))
