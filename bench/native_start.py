"""C++ programs that load a model and print the sum of its first result."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

_WEFT = """
#include <cstdio>
#include <weft.hpp>
int main(int, char** argv) {
  const weft::NoGrad guard;
  const weft::Module model(argv[1]);
  const std::vector<int64_t> sizes = {SIZES};
  size_t count = 1;
  for (const int64_t size : sizes) count *= static_cast<size_t>(size);
  const std::vector<float> ones(count, 1.0f);
  double sum = 0;
  for (const float value : model(weft::Tensor::over(ones.data(), sizes)).to_vector<float>())
    sum += value;
  std::printf("%g\\n", sum);
}
"""
_TORCH = """
#include <cstdio>
#include <torch/script.h>
int main(int, char** argv) {
  torch::NoGradGuard guard;
  torch::jit::Module model = torch::jit::load(argv[1]);
  const torch::Tensor y = model.forward({torch::ones({SIZES})}).toTensor();
  std::printf("%g\\n", y.sum().item<double>());
}
"""
_RUNS = 10


def seconds(library: str, archive: str, sizes: Sequence[int], frozen: bool = False) -> float:
    """From the start of a C++ program of a library to the result of an archive's module, the best
    of some runs. A frozen module is one for inference; weft's file has its weights packed.
    RuntimeError without a compiler."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise RuntimeError("archives: expected a C++ compiler (g++, clang++), got none")
    make = _weft_program if library == "weft" else _torch_program
    with tempfile.TemporaryDirectory() as folder:
        command = make(Path(folder), compiler, archive, sizes, frozen)
        return min(_timed(command) for _ in range(_RUNS))


def _timed(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def _built(folder: Path, compiler: str, source: str, options: list[str]) -> str:
    text, program = folder / "start.cpp", folder / "start"
    text.write_text(source)
    subprocess.run([compiler, "-O2", str(text), "-o", str(program), *options], check=True)
    return str(program)


def _numbers(sizes: Sequence[int]) -> str:
    return ", ".join(map(str, sizes))


def _weft_program(
    folder: Path, compiler: str, archive: str, sizes: Sequence[int], frozen: bool
) -> list[str]:
    import weft

    compiled, module = folder / "model.weft", weft.jit.load(archive)
    if frozen:
        example = (weft.ones(*sizes),)
        weft.jit.aot_compile(
            weft.jit.freeze(module.eval()), compiled, examples=[example], packed=True
        )
    else:
        weft.jit.aot_compile(module, compiled)
    command = [sys.executable, "-m", "weft", "--flags"]
    flags = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    source = _WEFT.replace("SIZES", _numbers(sizes))
    return [_built(folder, compiler, source, ["-std=c++17", *flags]), str(compiled)]


def _torch_program(
    folder: Path, compiler: str, archive: str, sizes: Sequence[int], frozen: bool
) -> list[str]:
    if frozen:
        import torch

        module = torch.jit.load(archive).eval()
        archive = str(folder / "frozen.pt")
        torch.jit.save(torch.jit.freeze(module), archive)
    spec = find_spec("torch")
    assert spec is not None and spec.submodule_search_locations
    root = spec.submodule_search_locations[0]
    include, library = os.path.join(root, "include"), os.path.join(root, "lib")
    options = [
        "-std=c++20",
        f"-I{include}",
        f"-I{include}/torch/csrc/api/include",
        f"-L{library}",
        f"-Wl,-rpath,{library}",
        "-Wl,--no-as-needed",
        *("-ltorch", "-ltorch_cpu", "-lc10"),
    ]
    return [_built(folder, compiler, _TORCH.replace("SIZES", _numbers(sizes)), options), archive]
