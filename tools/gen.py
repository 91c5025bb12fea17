"""Generates code from the operator table: C++ functions, autograd nodes, boxed calls, stubs.

python tools/gen.py --out build/generated          # write what changed
python tools/gen.py --out build/generated --list   # list the files, one per line, relative
"""

from __future__ import annotations

import argparse
import sys
import types
from collections.abc import Container
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def import_table_alone() -> None:
    """Makes `weft._ops` importable without running weft/__init__, which needs the extension."""
    package = types.ModuleType("weft")
    package.__path__ = [str(ROOT / "src" / "weft")]
    sys.modules["weft"] = package


def remove_old(out: Path, files: Container[str], banner: str) -> None:
    """Removes what an earlier state of the generators made and this one does not.

    Other builds may take all that is there (WEFT_GENERATED in cmake/weft_generated.cmake).
    """
    for path in [*out.glob("*.h"), *out.glob("*.cpp")]:
        if path.name in files:
            continue
        with path.open(encoding="utf-8") as file:
            ours = file.readline() == banner
        if ours:
            path.unlink()


def main() -> None:
    """Parses the command line, writes or lists the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of generated files")
    parser.add_argument("--list", action="store_true", help="only list the files it would write")
    options = parser.parse_args()
    import_table_alone()
    from gen.emit import BANNER, generate, names

    if options.list:
        print("\n".join(names()))
        return
    files = generate()
    remove_old(options.out, files, BANNER)
    for name, text in files.items():
        path = options.out / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
