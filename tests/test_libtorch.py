"""Programs of libtorch, built over weft's headers: they print what PyTorch's own library prints."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from test_native_programs import run, weft_command

import weft
from weft import Tensor, nn

SOURCES = Path(__file__).parent / "libtorch"
ROOT = Path(__file__).parents[1]
STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic", "-O1")


class Host(nn.Module):
    fixed: weft.jit.Final[int]
    kinds: list[str]

    def __init__(self) -> None:
        super().__init__()
        self.fixed, self.scale, self.kinds = 7, 2.5, ["H", "O"]
        self.register_buffer("r_max", weft.tensor(4.5))
        self.linear = nn.Linear(3, 2)
        with weft.no_grad():
            self.linear.weight.copy_(weft.arange(6.0).reshape(2, 3) / 8)
            self.linear.bias.fill_(0.5)

    def forward(self, x: Tensor) -> Tensor:
        return weft.tanh(self.linear(x)) * self.scale

    @weft.jit.export
    def energy(self, x: Tensor, factor: float = 1.0) -> Tensor:
        return (weft.tanh(self.linear(x)) ** 2).sum() * factor

    @weft.jit.export
    def mixed(
        self,
        named: dict[str, Tensor],
        numbers: list[int],
        text: str,
        pair: tuple[float, bool],
        none: Tensor | None,
    ) -> tuple[Tensor, dict[str, int], list[str], Tensor | None, float, list[Tensor], list[int]]:
        total = weft.zeros(2)
        for value in named.values():
            total = total + value
        counts = {"sum": sum(numbers), "length": len(numbers)}
        left = float(none is None)
        return total, counts, [text, text + "!"], none, pair[0] + left, [total, total], numbers


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive with a compiled program, as both libraries read it."""
    folder = tmp_path_factory.mktemp("host")
    plain, compiled = folder / "plain.pt", folder / "host.pt"
    weft.jit.save(weft.jit.script(Host()), plain, _extra_files={"config.json": '{"a": 1}'})
    weft_command("compile", str(plain), "-o", str(compiled))
    return compiled


def build(source: str | Path, folder: Path, *options: str) -> Path:
    program = folder / Path(source).stem
    flags = weft_command("--libtorch-flags").split()
    run("c++", *(options or ("-std=c++17", *STRICT)), SOURCES / source, *flags, "-o", program)
    return program


@pytest.mark.parametrize("standard", ["c++17", "c++20"])
def test_tensors(standard: str, tmp_path: Path) -> None:
    program = build("tensors.cpp", tmp_path, f"-std={standard}", *STRICT)
    assert run(program) == (SOURCES / "tensors.txt").read_text()


def test_memory(tmp_path: Path) -> None:
    """Storages, other memory in place, and results that the caller's tensors take."""
    program = build("memory.cpp", tmp_path, "-std=c++17", "-O0", *STRICT)
    assert run(program) == (SOURCES / "memory.txt").read_text()


def test_bindings(archive: Path, tmp_path: Path) -> None:
    """What the native parts of other languages' bindings ask for, in their forms."""
    program = build("bindings.cpp", tmp_path, "-std=c++17", *STRICT)
    assert run(program, archive) == (SOURCES / "bindings.txt").read_text()


ABSENT = """
#include <torch/script.h>
#include <torch/torch.h>

#include <iostream>

template <class Call>
void attempt(Call&& call) {
  try {
    call();
  } catch (const c10::NotImplementedError& error) {
    std::cout << error.what() << "\\n";
  }
}

int main() {
  const torch::Tensor x = torch::ones({2});
  attempt([&] { torch::Tensor made = torch::_add_relu(x, x); });
  attempt([&] {
    auto outputs = torch::_fused_dropout(x, 0.5, c10::nullopt);
    new torch::Tensor(std::get<1>(outputs));
  });
  attempt([&] {
    auto outputs = torch::_foreach_add(std::vector<torch::Tensor>{x}, 1);
    for (size_t i = 0; i < outputs.size(); ++i) new torch::Tensor(outputs[i]);
  });
  attempt([&] { return x.coalesce().values(); });
  attempt([&] { return x.q_scale() + static_cast<double>(x.sparse_dim()); });
  attempt([&] { return x._version(); });
  attempt([&] { return at::detail::getDefaultCPUGenerator().get_state(); });
  attempt([&] { return torch::jit::compile("def f(x): return x"); });
  attempt([&] { torch::Tensor(x).uniform_(0, 1, at::detail::createCPUGenerator(3)); });
}
"""


def test_functions_that_weft_lacks_raise_when_they_are_called(tmp_path: Path) -> None:
    (tmp_path / "absent.cpp").write_text(ABSENT)
    program = build(tmp_path / "absent.cpp", tmp_path, "-std=c++17", "-O0", *STRICT)
    names = [line.partition(":")[0] for line in run(program).splitlines()]
    without_hosts = ["_add_relu", "_fused_dropout", "_foreach_add", "coalesce", "q_scale"]
    assert names == [*without_hosts, "_version", "get_state", "compile", "Generator"]


def test_no_function_that_is_written_by_hand_is_listed_as_absent() -> None:
    """Such a name would be taken before the function itself."""
    listed = (ROOT / "tools/gen/libtorch_absent.txt").read_text().replace("*", "").split()
    written = "".join(each.read_text() for each in (ROOT / "csrc/libtorch").glob("*.h"))
    defined = re.findall(r"^inline .*? [&*]?(?:Tensor::)?(\w+)\((?:const )?Tensor", written, re.M)
    assert len(listed) > 500 and len(defined) > 20 and not set(defined).intersection(listed)


def test_modules(archive: Path, tmp_path: Path) -> None:
    program = build("modules.cpp", tmp_path)
    assert run(program, archive) == (SOURCES / "modules.txt").read_text()


def test_a_file_that_is_not_compiled_says_how(tmp_path: Path) -> None:
    weft.jit.save(weft.jit.script(nn.ReLU()), tmp_path / "relu.pt")
    program = build("modules.cpp", tmp_path, "-std=c++17")
    done = subprocess.run([program, tmp_path / "relu.pt"], capture_output=True, text=True)
    assert done.returncode == 1 and "`weft compile` makes one of it" in done.stderr


@pytest.mark.skipif(shutil.which("cmake") is None, reason="no CMake")
def test_find_package(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.21)\nproject(host CXX)\n"
        "find_package(Torch 2.0 REQUIRED)\n"
        f"add_executable(host {SOURCES / 'tensors.cpp'})\n"
        'target_link_libraries(host "${TORCH_LIBRARIES}")\n'
        "set_property(TARGET host PROPERTY CXX_STANDARD 17)\n"
    )
    prefix = weft_command("--libtorch-prefix")
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path / "build")
    assert run(tmp_path / "build" / "host") == (SOURCES / "tensors.txt").read_text()


@pytest.mark.parity
@pytest.mark.parametrize("source", ["tensors.cpp", "modules.cpp", "memory.cpp", "bindings.cpp"])
def test_pytorch_prints_the_same(source: str, archive: Path, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    folder = Path(torch.__file__).parent
    program, library = tmp_path / "reference", folder / "lib"
    includes = [folder / "include", folder / "include/torch/csrc/api/include"]
    run(
        *("c++", "-std=c++17", "-O0", SOURCES / source, *(f"-I{each}" for each in includes)),
        *(f"-L{library}", "-ltorch", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{library}"),
        *("-o", program),
    )
    assert run(program, archive) == (SOURCES / source).with_suffix(".txt").read_text()
