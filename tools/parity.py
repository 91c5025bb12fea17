"""Runs PyTorch's operator samples through weft: see tests/parity/cli.py (`--help`)."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from parity.cli import main

if __name__ == "__main__":
    sys.exit(main())
