"""Compiles what weft composes in Python into the file of operators that hosts call by name.

    python tools/compose.py --extension build/weft --out composed.weft

tools/gen/composed.txt has their schemas. A function of each one's arguments calls what archives
call by its name, or is the body that stands below it; libweft reads the file when a host asks for
an operator that the table has not (csrc/capi/composed_operator.cpp). --extension is the folder of a
built weft._C; without it the weft that is installed compiles.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import os
import sys
from collections.abc import Iterator
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
)
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "weft"


class Loader(SourceFileLoader):
    """Of modules whose code is named src/weft/..., wherever the sources lie."""

    def source_to_code(self, data: Any, path: Any, *rest: Any, **more: Any) -> Any:
        """The code of a module."""
        place = Path(os.fsdecode(path))
        name = place.relative_to(ROOT).as_posix() if place.is_relative_to(ROOT) else str(place)
        return super().source_to_code(data, name, *rest, **more)


def import_built(extension: Path) -> None:
    """Imports weft from its sources, and the extension from another folder."""
    os.chdir(ROOT)
    sys.path_hooks.insert(
        0,
        FileFinder.path_hook((ExtensionFileLoader, EXTENSION_SUFFIXES), (Loader, SOURCE_SUFFIXES)),
    )
    folders = [str(extension.resolve()), str(PACKAGE)]
    spec = importlib.util.spec_from_file_location(
        "weft", PACKAGE / "__init__.py", submodule_search_locations=folders
    )
    assert spec is not None and spec.loader is not None
    sys.modules["weft"] = package = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)


def main() -> None:
    """Parses the command line, writes the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--extension", type=Path, help="the folder of a built weft._C")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    options = parser.parse_args()
    if options.extension is not None:
        import_built(options.extension)
    from gen import composed

    from weft.jit.aot.compile import aot_compile

    gc.disable()  # graphs are circles: walking all of them often is a sixth of the time
    entries = composed.load()
    functions = {each.schema.key: function for each, function in compiled(entries)}
    schemas = "\n".join(str(each.schema) for each in entries)
    aot_compile(functions, options.out, extra_files={"schemas": schemas})


def compiled(entries: Any) -> Iterator[tuple[Any, Any]]:
    """Each operator with its function."""
    from weft import _C
    from weft.jit import scripting
    from weft.jit.archive.names import Archive, Namespace, globals_of
    from weft.jit.archive.numbers import dtype_of
    from weft.jit.archive.operators import NEWEST, Operator
    from weft.jit.frontend.source.errors import FrontendError, UnknownOperator

    missing = "{} is no operator of weft".format

    class Strict(Operator):
        """An operator that has to be there: archives may name others."""

        def call(self, c: Any, call: Any) -> Any:
            try:
                return super().call(c, call)
            except UnknownOperator as error:
                raise FrontendError(error.message, call.range) from error

    archive = Archive(lambda name: None, lambda name: False, [], NEWEST, missing, str)
    scope = {
        **globals_of(archive),
        "torch": Namespace("torch", lambda name: Strict(f"aten::{name}", NEWEST, missing)),
        "dtype": _C.dtype,
        "dtype_of": dtype_of,
    }
    for entry in entries:
        functions: dict[str, Any] = {}
        scripting.define(entry.text(), (scope,), functions, None)
        yield entry, functions[entry.function]


if __name__ == "__main__":
    main()
