"""The examples in other languages, built against the package and run on a compiled file."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy
import pytest
from cpp_programs import SOURCES, run, weft_command

import weft
from weft import nn
from weft.serialization import safetensors

EXAMPLES = pathlib.Path(__file__).parents[1] / "examples" / "native"
ROW = [0.5, -1.0, 2.0, 0.25]


def build(compiler: str, source: str, folder: pathlib.Path, *options: str) -> pathlib.Path:
    found = shutil.which(compiler)
    if found is None:
        pytest.skip(f"no {compiler}")
    program = folder / source.replace(".", "_")
    if compiler == "gfortran":
        options = ("-J", str(folder), *options)  # where it writes the files of modules
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


@pytest.mark.skipif(shutil.which("rustc") is None, reason="no rustc")
def test_inference_in_rust(model, tmp_path) -> None:
    path, expected = model
    library = weft_command("--library")
    program = tmp_path / "inference"
    link = ("-L", library, "-l", "weft", "-C", f"link-arg=-Wl,-rpath,{library}")
    run("rustc", "-D", "warnings", EXAMPLES / "inference.rs", *link, "-o", program)
    printed = [float(line) for line in run(program, path).split()]
    assert weft.tensor(printed).tolist() == expected
    done = subprocess.run([program, tmp_path / "none"], capture_output=True, text=True)
    assert done.returncode == 1 and "load: expected a file that can be read" in done.stderr


@pytest.mark.skipif(shutil.which("javac") is None, reason="no Java")
def test_inference_in_java(model, tmp_path) -> None:
    path, expected = model
    home = pathlib.Path(shutil.which("javac")).resolve().parents[1] / "include"
    run("javac", "-h", tmp_path, "-d", tmp_path, EXAMPLES / "Inference.java")
    run(
        *("c++", "-std=c++17", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"),
        *(EXAMPLES / "inference_jni.cpp", f"-I{tmp_path}", f"-I{home}", f"-I{home / 'linux'}"),
        *weft_command("--flags").split(),
        *("-o", tmp_path / "libinference.so"),
    )
    java = ("java", f"-Djava.library.path={tmp_path}", "-cp", tmp_path, "Inference")
    printed = [float(line) for line in run(*java, path).split()]
    assert weft.tensor(printed).tolist() == expected
    done = subprocess.run([*map(str, java), "none"], capture_output=True, text=True)
    assert done.returncode == 1 and "load: expected a file that can be read" in done.stderr


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


@pytest.mark.skipif(shutil.which("strip") is None, reason="no strip")
def test_the_library_with_its_kernels_is_small(tmp_path) -> None:
    library = pathlib.Path(weft_command("--library")) / "libweft.so"
    run("strip", "-o", tmp_path / "stripped.so", library)
    gcc = re.search(rb"GCC: \([^)]*\) (\d+)", library.read_bytes())
    most = 17e6 if gcc is not None and int(gcc[1]) > 12 else 16.3e6  # GCC 16 unrolls more
    assert (tmp_path / "stripped.so").stat().st_size < most


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


def scaling_archive(folder: pathlib.Path, name: str = "my") -> pathlib.Path:
    """An archive that calls an operator nobody has."""
    library = weft.library.Library(name, "FRAGMENT")
    library.define("scale(Tensor x, float by) -> Tensor")
    try:
        text = "def f(x):\n    return ops.scale(x, 2.0) + 1\n"
        scope = {"ops": getattr(weft.ops, name)}
        path = folder / "scaling.py"
        path.write_text(text)
        exec(compile(text, str(path), "exec"), scope)
        weft.jit.save(weft.jit.script(scope["f"]), folder / "scaling.pt")
    finally:
        library._destroy()
    return folder / "scaling.pt"


SCALE = "my::scale(Tensor x, float by) -> Tensor"


def test_operators_of_programs_in_c(tmp_path) -> None:
    archive, model = scaling_archive(tmp_path), tmp_path / "scaling.weft"
    weft_command("compile", str(archive), "-o", str(model), "--operator", SCALE)
    options = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    program = build("cc", "operator.c", tmp_path, *options)
    *printed, calls = run(program, model).splitlines()
    assert [float(line) for line in printed] == [2 * x + 1 for x in ROW]
    assert calls == "1 calls"
    without = build("cc", "inference.c", tmp_path)
    done = subprocess.run([without, model], capture_output=True, text=True)
    assert done.returncode == 1
    assert "my::scale: expected an operator that the host has registered, got none" in done.stderr
    assert "scaling.py" in done.stderr  # the line that calls it


IN_CPP = """
#include <weft.hpp>

#include <cstdio>

int main(int, char** argv) {
  const std::string schema = "my::scale(Tensor x, float by) -> Tensor";
  auto kept = std::make_shared<int>(0);
  weft::register_operator(
      schema,
      [kept](const std::vector<weft::Value>& args) -> weft::Value {
        const double by = args[1].to_double();
        std::vector<float> made;
        for (float x : args[0].to_tensor().to_vector<float>()) {
          if (x > 100) throw std::runtime_error("expected less than 100");
          made.push_back(x * static_cast<float>(by));
        }
        return weft::Tensor::of(made, args[0].to_tensor().sizes());
      },
      [](const std::vector<weft::Value>& args) -> weft::Value {
        weft::Tensor grad = args[3].to_tensor();
        std::vector<float> made;
        for (float g : grad.to_vector<float>()) made.push_back(g * args[1].to_double());
        return weft::Value::tuple({weft::Tensor::of(made, grad.sizes()), weft::Value()});
      });
  weft::Module model(argv[1]);
  weft::Tensor x = weft::Tensor::of<float>({1, 2}, {2});
  x.set_requires_grad(true);
  model(x).backward(weft::Tensor::of<float>({1, 10}, {2}));
  for (float each : x.grad().to_vector<float>()) std::printf("%g\\n", each);
  try {
    model(weft::Tensor::of<float>({101}, {1}));
  } catch (const weft::Error& error) {
    std::printf("%d %s\\n", error.status(), error.what());
  }
  const long before = kept.use_count();
  weft_unregister_operator("my::scale");
  std::printf("%ld %ld\\n", before, kept.use_count());
}
"""


def test_operators_of_programs_in_cpp(tmp_path) -> None:
    """With a gradient; what it throws ends the call; what it holds is let go of."""
    archive, model = scaling_archive(tmp_path), tmp_path / "scaling.weft"
    weft_command("compile", str(archive), "-o", str(model), "--operator", SCALE)
    source = tmp_path / "in_cpp.cpp"
    source.write_text(IN_CPP)
    program = build("c++", str(source), tmp_path, "-std=c++17", "-Wall", "-Werror")
    lines = run(program, model).splitlines()
    assert lines[:2] == ["2", "20"] and lines[-1] == "2 1"
    assert lines[2].startswith("1 ") and "my::scale: expected less than 100" in "\n".join(lines)


LIBRARY = """
#include <weft.h>

static weft_status twice(const weft_value *const *args, size_t count, weft_value **out,
                         void *context) {
  weft_tensor *x = 0, *made = 0;
  double value = 0;
  weft_status status = weft_value_get_tensor(args[0], &x);
  (void)count, (void)context;
  if (status == WEFT_OK) status = weft_tensor_item(x, &value);
  if (status == WEFT_OK && value < 0) status = weft_fail(WEFT_VALUE_ERROR, "expected no minus");
  if (status == WEFT_OK) status = weft_tensor_empty(WEFT_FLOAT64, 0, 0, &made);
  if (status == WEFT_OK) *(double *)weft_tensor_data(made) = 2 * value;
  if (status == WEFT_OK) status = weft_value_tensor(made, out);
  weft_tensor_release(x);
  weft_tensor_release(made);
  return status;
}

__attribute__((constructor)) static void start(void) {
  weft_register_operator("inlib::twice(Tensor x) -> Tensor", twice, 0, 0, 0);
}
"""

IN_PYTHON = """
import sys
import weft

folder, library = sys.argv[1:]
weft.ops.load_library(library)
weft.ops.load_library(library)  # once more
x = weft.tensor(3.0, dtype=weft.float64)
print(weft.ops.inlib.twice(x).item(), weft.ops.inlib.twice.default._schema)

def f(x):
    return weft.ops.inlib.twice(x) + 1

g = weft.jit.trace(f, x, check_trace=False)
weft.jit.save(g, folder + "/f.pt")
loaded = weft.jit.load(folder + "/f.pt")
print(g(x).item(), loaded(x).item())
weft.jit.aot_compile(loaded, folder + "/f.weft")
print(weft._C.CompiledModule(folder + "/f.weft").call("forward", x).item())
for run in (weft.ops.inlib.twice, loaded):
    try:
        run(-x)
    except ValueError as error:
        print("inlib::twice: expected no minus" in str(error))
try:
    weft.ops.inlib.twice(x.clone().requires_grad_()).backward()
except NotImplementedError as error:
    print("inlib::twice: expected an operator with a gradient" in str(error))
"""


def test_libraries_of_operators_in_python(tmp_path) -> None:
    """What a library in C registers is an operator of programs and archives in Python."""
    compiler, source = shutil.which("cc"), tmp_path / "inlib.c"
    if compiler is None:
        pytest.skip("no cc")
    source.write_text(LIBRARY)
    library = tmp_path / "libinlib.so"
    flags = weft_command("--flags").split()
    run(compiler, "-shared", "-fPIC", source, *flags, "-o", library)
    (tmp_path / "program.py").write_text(IN_PYTHON)
    printed = run(sys.executable, tmp_path / "program.py", tmp_path, library)
    assert printed.splitlines() == [
        "6.0 inlib::twice(Tensor x) -> Tensor",
        "7.0 7.0",
        "7.0",
        *["True"] * 3,
    ]
    words = [str(tmp_path / "f.pt"), "-o", str(tmp_path / "g.weft"), "--library", str(library)]
    weft_command("compile", *words, "--example", "float64:")
    numpy.save(tmp_path / "x.npy", numpy.array(5.0))
    words = [str(tmp_path / "g.weft"), "--library", str(library), "--input"]
    assert weft_command("exec", *words, str(tmp_path / "x.npy")).startswith("tensor(11.")


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


EMULATOR = ["qemu-aarch64", "-cpu", "cortex-a57", "-L", "/usr/aarch64-linux-gnu"]
crossed = pytest.mark.skipif(ARM is None, reason="no cross build: WEFT_AARCH64 is not set")


def cross_compiled(source: pathlib.Path, program: pathlib.Path) -> pathlib.Path:
    include = EXAMPLES.parents[1] / "csrc" / "capi"
    run("aarch64-linux-gnu-gcc", source, f"-I{include}", f"-L{ARM}", "-lweft",
        f"-Wl,-rpath,{ARM}", "-Wl,--allow-shlib-undefined", "-o", program)  # fmt: skip
    return program


@pytest.mark.nightly
@crossed
def test_composed_operators_on_aarch64(tmp_path) -> None:
    """The file of this machine's package serves there, too."""
    shutil.copy(pathlib.Path(weft.__file__).parent / "lib" / "composed.weft", ARM)
    host = SOURCES / "named_operators.c"
    here = tmp_path / "here"
    run("cc", host, *weft_command("--flags").split(), "-o", here)
    names = ("aten::fft_rfft", "aten::avg_pool1d")
    there = cross_compiled(host, tmp_path / "there")
    assert run(*EMULATOR, there, *names) == run(here, *names)


@pytest.mark.nightly
@crossed
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
    cross_compiled(source, program)
    steps = run(*EMULATOR, program, model).splitlines()
    code = run(*EMULATOR, program, model, "code").splitlines()
    assert len(set(steps)) == 1 and code == steps
    assert [float.fromhex(each) for each in code[0].split()] == pytest.approx(
        net(x).reshape(-1).tolist(), rel=1e-5
    )
    for words, is_mapped in ((["code"], True), ([], False)):
        traced = subprocess.run(
            [*EMULATOR, "-strace", program, model, *words], capture_output=True, text=True
        )
        made = re.findall(r"mprotect\(.*PROT_EXEC", traced.stderr)
        assert bool(made) == is_mapped, made
