"""Extension modules in C++ as PyTorch's users write them, built against weft's headers."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.utils import cpp_extension

SOURCE = """
#include <torch/extension.h>

#include <vector>

// The cell of the tutorial on extensions, in small: forward, and backward by hand.
std::vector<torch::Tensor> forward(torch::Tensor input, torch::Tensor weight, double scale) {
  TORCH_CHECK(input.dim() == 2, "forward: expected a matrix, got ", input.dim(), " dims");
  auto gates = torch::sigmoid(torch::mm(input, weight.t())) * scale;
  return {gates, input};
}
torch::Tensor differentiable(const torch::Tensor& x) { return (x * x).sum(); }
void fill(torch::Tensor x, float value) { x.fill_(value); }
torch::Tensor same(torch::Tensor x) { return x; }
torch::Tensor shaped(at::IntArrayRef sizes, at::ScalarType dtype) { return torch::ones(sizes, dtype); }
std::optional<torch::Tensor> maybe(const std::optional<torch::Tensor>& x) { return x; }
py::tuple about(const torch::Tensor& x) { return py::make_tuple(x.scalar_type(), x.device()); }
template <class T>
double total_of(const torch::Tensor& x) {
  double total = 0;
  const T* elements = x.data_ptr<T>();
  for (int64_t i = 0; i < x.numel(); ++i) total += elements[i];
  return total;
}
double total(torch::Tensor x) {
  return AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "total", [&] { return total_of<scalar_t>(x); });
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("forward", &forward, "gates", py::arg("input"), py::arg("weight"), py::arg("scale") = 2.0);
  m.def("differentiable", &differentiable);
  m.def("fill", &fill);
  m.def("same", &same);
  m.def("shaped", &shaped);
  m.def("maybe", &maybe);
  m.def("about", &about);
  m.def("total", &total);
}
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("extension")
    source = folder / "cell.cpp"
    source.write_text(SOURCE)
    flags = ["-O0", "-Wall", "-Wextra", "-Werror"]
    return cpp_extension.load("cell", [str(source)], flags, build_directory=str(folder))


def test_tensors_go_in_and_out(module: Any) -> None:
    x, w = weft.tensor([[1.0, -1.0]]), weft.tensor([[0.5, 0.25], [2.0, 1.0]])
    gates, given = module.forward(x, w)
    assert weft.equal(gates, weft.sigmoid(x @ w.T) * 2) and given is x
    assert weft.equal(module.forward(input=x, weight=w, scale=1.0)[0] * 2, gates)
    assert module.same(x) is x
    module.fill(x, 3.0)
    assert x.tolist() == [[3.0, 3.0]]
    assert module.total(x.double()) == 6.0
    assert module.maybe(None) is None and module.maybe(x) is x


def test_gradients_go_through(module: Any) -> None:
    x = weft.tensor([1.0, 2.0], requires_grad=True)
    module.differentiable(x).backward()
    assert x.grad is not None and x.grad.tolist() == [2.0, 4.0]
    parameter = weft.nn.Parameter(weft.ones(2))
    assert module.same(parameter) is parameter


def test_other_arguments(module: Any) -> None:
    made = module.shaped([2, 3], weft.int16)
    assert made.shape == (2, 3) and made.dtype == weft.int16
    assert module.about(made) == (weft.int16, weft.device("cpu"))
    with pytest.raises(TypeError, match="incompatible function arguments"):
        module.same(3)


def test_errors_are_pythons(module: Any) -> None:
    with pytest.raises(RuntimeError, match="forward: expected a matrix, got 1 dims"):
        module.forward(weft.ones(2), weft.ones(2, 2))
    with pytest.raises(NotImplementedError, match="total: expected a dtype that it computes"):
        module.total(weft.ones(2, dtype=weft.int32))


def test_inline(tmp_path: Path) -> None:
    source = "torch::Tensor twice(torch::Tensor x) { return x + x; }"
    build = partial(
        cpp_extension.load_inline, "inline_twice", source, functions=["twice"],
        extra_cflags=["-O0"], build_directory=str(tmp_path),
    )  # fmt: skip
    assert build().twice(weft.ones(2)).tolist() == [2.0, 2.0]
    before = sorted(tmp_path.glob("*.so"))
    build()
    assert sorted(tmp_path.glob("*.so")) == before  # built once


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotImplementedError, match="expected sources in C\\+\\+ for the CPU"):
        cpp_extension.load("k", ["k.cu"], build_directory=str(tmp_path))
    broken = tmp_path / "broken.cpp"
    broken.write_text("int main(")
    with pytest.raises(RuntimeError, match="load: expected sources that compile, got"):
        cpp_extension.load("broken", [str(broken)], build_directory=str(tmp_path))
    with pytest.raises(NotImplementedError, match="expected 'cpu', got 'cuda'"):
        cpp_extension.include_paths("cuda")


def test_handles_are_checked() -> None:
    with pytest.raises(TypeError, match="_to_handle: expected a tensor, got int"):
        weft._C._to_handle(3)
    with pytest.raises(TypeError, match="_from_handle: expected a handle, got int"):
        weft._C._from_handle(3)
