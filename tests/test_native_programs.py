"""The examples in other languages, built against the package and run on a compiled file."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import weft
from weft import nn
from weft.serialization import safetensors

EXAMPLES = pathlib.Path(__file__).parents[1] / "examples" / "native"
ROW = [0.5, -1.0, 2.0, 0.25]


def run(*command: str | pathlib.Path) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def weft_command(*words: str) -> str:
    return run(sys.executable, "-m", "weft", *words).strip()


def build(compiler: str, source: str, folder: pathlib.Path, *options: str) -> pathlib.Path:
    found = shutil.which(compiler)
    if found is None:
        pytest.skip(f"no {compiler}")
    program = folder / source.replace(".", "_")
    run(found, *options, EXAMPLES / source, *weft_command("--flags").split(), "-o", program)
    return program


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> tuple[pathlib.Path, list[float]]:
    """A compiled file, and what it gives for ROW."""
    weft.manual_seed(0)
    net = weft.jit.script(nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3)))
    path = tmp_path_factory.mktemp("native") / "model.weft"
    weft.jit.aot_compile(net, path)
    return path, net(weft.tensor([ROW]))[0].tolist()


@pytest.mark.parametrize(
    "compiler, source, options",
    [
        ("c++", "inference.cpp", ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-pedantic"]),
        ("cc", "inference.c", ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]),
        ("gfortran", "inference.f90", []),
    ],
)
def test_inference(compiler, source, options, model, tmp_path) -> None:
    path, expected = model
    program = build(compiler, source, tmp_path, *options)
    printed = [float(line) for line in run(program, path).split()]
    assert weft.tensor(printed).tolist() == expected


def test_inference_in_node(model, tmp_path) -> None:
    node = shutil.which("node")
    koffi = EXAMPLES / "node_modules" / "koffi"
    if node is None or not koffi.is_dir():
        pytest.skip("no node with koffi")
    path, expected = model
    library = pathlib.Path(weft_command("--library"), "libweft.so")
    printed = [float(x) for x in run(node, EXAMPLES / "inference.mjs", library, path).split()]
    assert weft.tensor(printed).tolist() == expected


def test_failures_are_shown(tmp_path) -> None:
    program = build("cc", "inference.c", tmp_path)
    broken = tmp_path / "broken.weft"
    broken.write_bytes(b"no archive")
    done = subprocess.run([program, broken], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("load: expected a zip archive, got a damaged file")


def test_programs_need_neither_python_nor_llvm(tmp_path) -> None:
    program = build("cc", "inference.c", tmp_path)
    if shutil.which("ldd") is None:
        pytest.skip("no ldd")
    lines = run("ldd", program).splitlines()
    needed = {pathlib.Path(line.split()[0]).name for line in lines}
    assert "libweft.so" in needed and not any("not found" in line for line in lines)
    assert not [name for name in needed if "python" in name.lower() or "llvm" in name.lower()]


def test_training_without_python(tmp_path) -> None:
    """The digits to 98 %; the state goes back to Python."""
    program = build("c++", "train_digits.cpp", tmp_path, "-std=c++17", "-O1")
    files = [tmp_path / name for name in ("model.weft", "digits.bin", "state.safetensors")]
    run(sys.executable, EXAMPLES / "digits_model.py", *files[:2])
    printed = run(program, *files)
    assert float(printed.split()[-1]) >= 0.98
    state = weft.serialization.safetensors.load_file(files[2])
    assert set(state) == {f"layers.{i}.{name}" for i in (0, 3) for name in ("weight", "bias")}


STATE = """
#include <weft.hpp>

#include <cstdio>

int main(int, char** argv) {
  weft::Module model(argv[1]);
  try {
    model.load_state(argv[2]);
    model.save_state(argv[3]);
  } catch (const weft::Error& error) {
    std::printf("%s\\n", error.what());
  }
  for (const auto& [name, tensor] : model.parameters()) std::printf("%g\\n", tensor.item());
}
"""


def test_states_go_to_programs_without_python(tmp_path) -> None:
    """What Python saves is read, what the program saves is the same; other states change nothing."""
    source, weights = tmp_path / "state.cpp", [1.5, -2.0]
    source.write_text(STATE)
    net = nn.Linear(1, 1)
    weft.jit.aot_compile(weft.jit.script(net), tmp_path / "model.weft")
    before = [net.weight.item(), net.bias.item()]
    program = build("c++", str(source), tmp_path, "-std=c++17", "-Wall", "-Werror")
    good = {"weight": weft.tensor([[1.5]]), "bias": weft.tensor([-2.0], dtype=weft.float64)}
    for state, error in (
        (good, None),
        ({**good, "more": weft.ones(1)}, "expected 2 tensors, got 3"),
        ({"weight": good["weight"]}, "expected a tensor 'bias', got none"),
        ({**good, "bias": weft.ones(2)}, "expected sizes (1,) of 'bias', got (2,)"),
    ):
        paths = [tmp_path / name for name in ("model.weft", "state", "again")]
        safetensors.save_file(state, paths[1])
        lines = run(program, *paths).splitlines()
        if error is None:
            assert [float(line) for line in lines] == weights
            again = safetensors.load_file(paths[2])
            assert [again["weight"].item(), again["bias"].item()] == weights
        else:
            assert lines[0] == f"weft_module_load_state: {error}"
            assert [float(line) for line in lines[1:]] == pytest.approx(before, abs=1e-5)


STATIC = pathlib.Path(weft.__file__).parent / "lib" / "libweft.a"


@pytest.mark.skipif(not STATIC.exists(), reason="built without -DWEFT_STATIC=ON")
def test_static_library(model, tmp_path) -> None:
    """By pkg-config's flags, and by CMake's package: the program runs without libweft.so."""
    path, expected = model
    pkg_config = shutil.which("pkg-config")
    if pkg_config is None or shutil.which("cmake") is None:
        pytest.skip("no pkg-config or no CMake")
    found = [pkg_config, "--cflags", "--libs", STATIC.parent / "pkgconfig" / "weft-static.pc"]
    compiler = [shutil.which("c++"), "-std=c++17", EXAMPLES / "inference.cpp"]
    run(*compiler, "-o", tmp_path / "inference", *run(*found).split())
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.21)\nproject(example CXX)\nset(CMAKE_CXX_STANDARD 17)\n"
        "find_package(weft REQUIRED)\n"
        f'add_executable(inference "{EXAMPLES}/inference.cpp")\n'
        "target_link_libraries(inference PRIVATE weft::static)\n"
    )
    prefix = weft_command("--cmake-prefix")
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path / "build")
    for program in (tmp_path / "inference", tmp_path / "build" / "inference"):
        assert "libweft" not in run("ldd", program)
        assert weft.tensor([float(x) for x in run(program, path).split()]).tolist() == expected


@pytest.mark.skipif(shutil.which("cmake") is None, reason="no CMake")
def test_cmake_package(model, tmp_path) -> None:
    path, expected = model
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.21)\nproject(example CXX)\nset(CMAKE_CXX_STANDARD 17)\n"
        "find_package(weft REQUIRED)\n"
        f'add_executable(inference "{EXAMPLES}/inference.cpp")\n'
        "target_link_libraries(inference PRIVATE weft::weft)\n"
    )
    prefix = weft_command("--cmake-prefix")
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path / "build")
    printed = [float(x) for x in run(tmp_path / "build" / "inference", path).split()]
    assert weft.tensor(printed).tolist() == expected


# AArch64 ------------------------------------------------------------------------------------------

ARM = os.environ.get("WEFT_AARCH64")  # the folder of a cross build, as tools/nightly makes it
THRICE = """
#include <stdio.h>
#include <stdlib.h>
#include <weft.h>

int main(int argc, char **argv) {
  float rows[32];
  const int64_t sizes[2] = {8, 4};
  weft_module *model = NULL;
  int i, call;
  for (i = 0; i < 32; ++i) rows[i] = (float)i / 8 - 2;
  weft_allow_machine_code(argc > 2);
  if (weft_module_load(argv[1], &model) != WEFT_OK) return puts(weft_last_error()), 1;
  for (call = 0; call < 3; ++call) {
    weft_tensor *x = NULL, *y = NULL;
    if (weft_tensor_wrap(rows, WEFT_FLOAT32, 2, sizes, NULL, NULL, NULL, &x) != WEFT_OK ||
        weft_module_forward(model, (const weft_tensor *const *)&x, 1, &y) != WEFT_OK)
      return puts(weft_last_error()), 1;
    for (i = 0; i < 8; ++i) printf("%a ", ((const float *)weft_tensor_data(y))[i]);
    puts("");
    weft_tensor_release(x);
    weft_tensor_release(y);
  }
  weft_module_release(model);
  return 0;
}
"""


class Fused(nn.Module):
    """A product, then operators that become machine code."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 1)

    def forward(self, x: weft.Tensor) -> weft.Tensor:
        y = self.linear(x)
        return (y.exp() + 1).log() * y.tanh() - y.sigmoid() / 3


@pytest.mark.skipif(ARM is None, reason="no cross build: WEFT_AARCH64 is not set")
def test_machine_code_for_aarch64_runs(tmp_path) -> None:
    """One file has code for three machines. Under QEMU the third is mapped, and gives to the bit
    what tile steps give there, which is near to what this machine gives."""
    net, x = weft.jit.script(Fused()), (weft.arange(32) / 8 - 2).reshape(8, 4)
    net.save(tmp_path / "model.pt")
    targets = "x86-64-v3,x86-64-v4,aarch64"
    model, source, program = (tmp_path / name for name in ("model.weft", "thrice.c", "thrice"))
    weft_command(
        "compile", str(tmp_path / "model.pt"), "-o", str(model),
        "--example", "8x4", "--target", targets,
    )  # fmt: skip
    source.write_text(THRICE)
    include = EXAMPLES.parents[1] / "csrc" / "capi"
    run("aarch64-linux-gnu-gcc", source, f"-I{include}", f"-L{ARM}", "-lweft",
        f"-Wl,-rpath,{ARM}", "-Wl,--allow-shlib-undefined", "-o", program)  # fmt: skip
    emulator = ["qemu-aarch64", "-cpu", "cortex-a57", "-L", "/usr/aarch64-linux-gnu"]
    steps = run(*emulator, program, model).splitlines()
    code = run(*emulator, program, model, "code").splitlines()
    assert len(set(steps)) == 1 and code == steps
    assert [float.fromhex(each) for each in code[0].split()] == pytest.approx(
        net(x).reshape(-1).tolist(), rel=1e-5
    )
    for words, is_mapped in ((["code"], True), ([], False)):
        traced = subprocess.run(
            [*emulator, "-strace", program, model, *words], capture_output=True, text=True
        )
        made = re.findall(r"mprotect\(.*PROT_EXEC", traced.stderr)
        assert bool(made) == is_mapped, made
