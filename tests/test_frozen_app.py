"""An application frozen by PyInstaller scripts, traces and spawns far from its source."""

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import textwrap

import pytest

from weft import _freezing

APPLICATION = """
    import multiprocessing
    import weft as torch
    import weft.nn.functional as F
    import kernels

    @torch.jit.script
    class Box:
        def __init__(self, n: int):
            self.n = n

        def twice(self) -> int:
            return self.n * 2

    @torch.jit.script
    def boxed(n: int) -> int:
        return Box(n).twice()

    def main():
        print(boxed(4), kernels.sum_of_even(torch.ones(2), 4).tolist())
        print(list(torch.jit.script(kernels.Net())(torch.ones(2, 3)).shape))
        larger = torch.jit.trace(lambda x: F.interpolate(x, scale_factor=2.0), torch.ones(1, 1, 4))
        print(list(larger(torch.ones(1, 1, 6)).shape))
        shared = torch.ones(4).share_memory_()
        child = multiprocessing.get_context("spawn").Process(target=kernels.add_one, args=(shared,))
        child.start()
        child.join()
        print(child.exitcode, shared.tolist())
        print(torch.linalg.cholesky(torch.eye(2) * 4).tolist())  # by OpenBLAS

    if __name__ == "__main__":
        multiprocessing.freeze_support()
        main()
"""
KERNELS = """
    import weft as torch

    @torch.jit.script
    def sum_of_even(x, n: int):
        for i in range(n):
            if i % 2 == 0:
                x = x + i
        return x

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 4)

        def forward(self, x):
            return torch.relu(self.linear(x))

    def add_one(x):
        x += 1
"""
PRINTS = "8 [3.0, 3.0]\n[2, 4]\n[1, 1, 12]\n0 [2.0, 2.0, 2.0, 2.0]\n[[2.0, 0.0], [0.0, 2.0]]\n"
NOT_NEEDED = ("torch", "llvmlite", "scipy", "sklearn", "matplotlib", "pytest")


def _registered() -> bool:
    """Whether PyInstaller finds the hooks by itself: an installed weft says where they are."""
    found = importlib.metadata.entry_points(group="pyinstaller40")
    return any(point.value == "weft._freezing:hook_folders" for point in found)


def _freeze(folder):
    hooks = [] if _registered() else ["--additional-hooks-dir", _freezing.hook_folders()[0]]
    left_out = [part for name in NOT_NEEDED for part in ("--exclude-module", name)]
    command = [sys.executable, "-m", "PyInstaller", "--log-level", "ERROR", *hooks, *left_out]
    result = subprocess.run(
        [*command, "application.py"], cwd=folder, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.nightly
@pytest.mark.skipif(
    importlib.util.find_spec("PyInstaller") is None, reason="PyInstaller is not installed"
)
def test_a_frozen_application(tmp_path):
    folder = tmp_path / "build"
    folder.mkdir()
    (folder / "application.py").write_text(textwrap.dedent(APPLICATION))
    (folder / "kernels.py").write_text(textwrap.dedent(KERNELS))
    _freeze(folder)
    (folder / "dist" / "application").rename(tmp_path / "application")
    elsewhere = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    program = [str(tmp_path / "application" / "application")]
    result = subprocess.run(program, cwd=tmp_path, env=elsewhere, capture_output=True, text=True)
    assert result.stdout == PRINTS, result.stderr
