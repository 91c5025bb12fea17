"""A process ends whatever its threads are doing."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

ENDS = """
    import weft as torch

    @torch.jit.ignore
    def python(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    @torch.jit.script
    def many(x: torch.Tensor):
        for _ in range(1000000):
            x = python(x)
        return x

    @torch.jit.script
    def begin(x: torch.Tensor):
        futures = [torch.jit.fork(many, x) for _ in range(2)]
        return x

    begin(torch.ones(2))
    print("ends")
"""


def test_a_process_ends_while_its_tasks_call_python(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(textwrap.dedent(ENDS))
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, str(tmp_path / "program.py")],
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (0, "ends\n", "")
