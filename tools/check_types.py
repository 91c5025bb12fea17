"""Runs mypy over the package together with the stub of its extension.

    python tools/check_types.py [mypy options]

The stub weft/_C.pyi is made from the operator table, so it is not in the repository, and mypy looks
for it in the package's own folder. This makes a folder that has both.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Generates, links, checks; returns mypy's exit status."""
    with tempfile.TemporaryDirectory() as work:
        made, package = Path(work, "generated"), Path(work, "path", "weft")
        generator = [sys.executable, str(ROOT / "tools" / "gen.py"), "--out", str(made)]
        subprocess.run(generator, check=True, stdout=subprocess.DEVNULL)
        package.mkdir(parents=True)
        sources = [*(ROOT / "src" / "weft").iterdir(), *(made / "weft").iterdir()]
        for name, path in {source.name: source for source in sources}.items():
            (package / name).symlink_to(path)  # a stub that a build left is not the made one
        command = [sys.executable, "-m", "mypy", "--cache-dir", str(ROOT / ".mypy_cache")]
        command += ["--config-file", str(ROOT / "pyproject.toml"), "-p", "weft", *sys.argv[1:]]
        environment = {**os.environ, "MYPYPATH": str(package.parent)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=work)
        print(done.stdout.replace("path/weft/", "src/weft/"), end="")
        print(done.stderr, end="", file=sys.stderr)
        return done.returncode


if __name__ == "__main__":
    sys.exit(main())
