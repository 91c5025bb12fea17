"""Compiles the operator table's kernels: kernels/*.o and tile_ops.cpp.

    python tools/build_kernels.py --out build/generated --isa v2 --isa v3 --isa v4

Files are written only when their content changes: an object is compiled when the LLVM text of its
kernels is not that of the last time, and nothing is done at all when no source changed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import types
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "weft"
STAMP = "kernels.stamp"
TABLES = "tile_ops.cpp"


def import_without_extension() -> None:
    """Makes `weft._ops` and `weft._kernels` importable without running weft/__init__.py."""
    package = types.ModuleType("weft")
    package.__path__ = [str(SOURCE)]
    sys.modules["weft"] = package


def write_if_changed(path: Path, content: bytes) -> bool:
    """Writes a file unless it has this content already. Returns whether it wrote."""
    if path.exists() and path.read_bytes() == content:
        return False
    path.write_bytes(content)
    return True


def fingerprint(isas: list[str]) -> str:
    from weft._kernels import aot

    files = sorted([*(SOURCE / "_kernels").glob("*.py"), *(SOURCE / "_ops").glob("*.py")])
    parts = [part for f in files for part in (f.name.encode(), f.read_bytes())]
    return aot.digest(" ".join(isas).encode(), Path(__file__).read_bytes(), *parts)


def build(out: Path, isas: list[str], processes: int) -> None:
    from weft import _ops
    from weft._kernels import aot

    start = time.perf_counter()
    work = aot.job(_ops.load())
    source = work.source(isas).encode()
    written = [TABLES] if write_if_changed(out / TABLES, source) else []
    objects = aot.update_objects(work, out, isas, processes)
    written += objects if len(objects) < 10 else [f"{len(objects)} objects"]
    print(
        f"build_kernels: {len(work.kernels)} kernels for {' '.join(isas)} in "
        f"{time.perf_counter() - start:.1f} s; written: {' '.join(written) or 'nothing'}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("."), help="folder of the outputs")
    isa_help = "default: all of x86-64; neon is AArch64's"
    parser.add_argument("--isa", action="append", choices=["v2", "v3", "v4", "neon"], help=isa_help)
    parser.add_argument("--list-outputs", action="store_true", help="print the files, do nothing")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    options = parser.parse_args()
    import_without_extension()
    from weft._kernels import aot

    isas = options.isa or ["v2", "v3", "v4"]
    names = [*aot.object_names(isas), TABLES]
    if options.list_outputs:
        print("\n".join(names))
        return
    options.out.mkdir(parents=True, exist_ok=True)
    stamp, current = options.out / STAMP, fingerprint(isas)
    complete = all((options.out / name).exists() for name in names)
    if complete and stamp.exists() and stamp.read_text() == current:
        return
    stamp.unlink(missing_ok=True)
    build(options.out, isas, options.jobs)
    stamp.write_text(current)


if __name__ == "__main__":
    main()
