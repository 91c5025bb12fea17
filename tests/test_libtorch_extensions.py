"""Operators of extensions in libtorch's C++, compiled against weft's headers."""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
import sys

import numpy
import pytest
from cpp_programs import run, weft_command

import weft

pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="no c++")

WARNINGS = ["-Wall", "-Wextra", "-Werror"]


def build(folder: pathlib.Path, name: str, *sources: str) -> pathlib.Path:
    """A shared library of some sources."""
    files = []
    for i, text in enumerate(sources):
        files.append(folder / f"{name}{i}.cpp")
        files[-1].write_text(text)
    flags = weft_command("--libtorch-flags").split()
    library = folder / f"lib{name}.so"
    run("c++", "-std=c++17", "-shared", "-fPIC", *WARNINGS, *files, *flags, "-o", library)
    return library


def in_new_process(folder: pathlib.Path, program: str, *words: str | pathlib.Path) -> list[str]:
    path = folder / "program.py"
    path.write_text("import sys\nimport weft\n" + program)
    return run(sys.executable, path, *words).splitlines()


# What public extensions do: definitions here, kernels there, the gradient in a third file.
DEFINED = """
#include <torch/library.h>

TORCH_LIBRARY(ext, m) {
  m.def("scale(Tensor x, float by=2.0) -> Tensor");
  m.def("squares(Tensor x, Tensor? more=None) -> (Tensor, Tensor)");
  m.def("fill_(Tensor(a!) x, float value) -> Tensor(a!)");
  m.def("add_out(Tensor a, Tensor b, *, Tensor (a!) out) -> ()");
  m.def("plain(Tensor x) -> Tensor", {at::Tag::pt2_compliant_tag});
  m.def("nobody(Tensor x) -> Tensor");
}
"""
KERNELS = """
#include <torch/torch.h>

#include <algorithm>

namespace {

at::Tensor scale(const at::Tensor& x, double by) {
  const at::Tensor given = x.contiguous();
  at::Tensor made = at::empty_like(given);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "scale", [&] {
    const scalar_t* from = given.data_ptr<scalar_t>();
    std::transform(from, from + given.numel(), made.data_ptr<scalar_t>(),
                   [by](scalar_t each) { return static_cast<scalar_t>(each * by); });
  });
  return made;
}
std::tuple<at::Tensor, at::Tensor> squares(const at::Tensor& x,
                                           const c10::optional<at::Tensor>& more) {
  return {x * x, more ? *more * *more : at::zeros_like(x)};
}
at::Tensor& fill_(at::Tensor& x, double value) {
  std::fill_n(x.data_ptr<float>(), x.numel(), static_cast<float>(value));
  return x;
}
void add_out(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) {
  TORCH_CHECK(out.sizes() == a.sizes(), "expected an out of sizes ", a.sizes());
  out.copy_(a + b);
}

}  // namespace

TORCH_LIBRARY_IMPL(ext, CPU, m) {
  m.impl("scale", &scale);
  m.impl(TORCH_SELECTIVE_NAME("ext::squares"), TORCH_FN(squares));
  m.impl("fill_", fill_);
  m.impl("add_out", TORCH_FN(add_out));
  m.impl("plain", [](const at::Tensor& x) { return x.clone(); });
}
TORCH_LIBRARY_IMPL(ext, Meta, m) {
  m.impl("scale", [](const at::Tensor& x, double) {
    TORCH_CHECK(x.is_meta() && !x.is_cpu() && x.device() == at::Device(at::kMeta));
    return at::empty(x.sizes(), x.options());
  });
}
TORCH_LIBRARY_IMPL(ext, CUDA, m) { m.impl("nobody", [](const at::Tensor& x) { return x; }); }
"""
GRADIENTS = """
#include <torch/autograd.h>
#include <torch/library.h>

namespace {

at::Tensor call_scale(const at::Tensor& x, double by) {
  static auto op = c10::Dispatcher::singleton()
                       .findSchemaOrThrow("ext::scale", "")
                       .typed<at::Tensor(const at::Tensor&, double)>();
  return op.call(x, by);
}

class Scale : public torch::autograd::Function<Scale> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& x, double by) {
    ctx->saved_data["by"] = by;
    at::AutoDispatchBelowADInplaceOrView guard;
    return call_scale(x, by);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list grads) {
    return {call_scale(grads[0], ctx->saved_data["by"].toDouble()), at::Tensor()};
  }
};

}  // namespace

TORCH_LIBRARY_IMPL(ext, Autograd, m) {
  m.impl("scale", [](const at::Tensor& x, double by) { return Scale::apply(x, by); });
}
"""


@pytest.fixture(scope="module")
def ext(built_once) -> pathlib.Path:
    """The library `ext`, loaded in this process too. Kernels stand before the definitions."""
    sources = GRADIENTS, KERNELS, DEFINED
    library = built_once("ext", lambda folder: build(folder, "ext", *sources)) / "libext.so"
    weft.ops.load_library(library)
    return library


def test_operators_are_called(ext) -> None:
    x = weft.tensor([1.0, -2.0])
    assert weft.ops.ext.scale(x).tolist() == [2.0, -4.0]
    assert weft.ops.ext.scale(x, by=0.5).tolist() == [0.5, -1.0]
    assert weft.ops.ext.scale.default(x.double(), 3).dtype == weft.float64
    assert str(weft.ops.ext.scale.default._schema).startswith("ext::scale(Tensor x, float by=2")
    squared, more = weft.ops.ext.squares(x)
    assert (squared.tolist(), more.tolist()) == ([1.0, 4.0], [0.0, 0.0])
    assert weft.ops.ext.squares(x, x + 1)[1].tolist() == [4.0, 1.0]


def test_operators_write_to_arguments(ext) -> None:
    x = weft.zeros(3)
    version = x._version
    assert weft.ops.ext.fill_(x, 2.0).tolist() == [2.0] * 3 == x.tolist()
    assert x._version > version
    out = weft.zeros(2)
    assert weft.ops.ext.add_out(weft.ones(2), weft.ones(2), out=out) is None
    assert out.tolist() == [2.0, 2.0]
    kept = (weft.ones(3, requires_grad=True) * x).sum()  # which needs x as it was
    weft.ops.ext.fill_(x, 5.0)
    with pytest.raises(RuntimeError, match=r"changed|modified"):
        kept.backward()


def test_failures_are_raised(ext) -> None:
    with pytest.raises(NotImplementedError, match=r"ext::scale: .*a dtype that it computes"):
        weft.ops.ext.scale(weft.ones(2, dtype=weft.int64))
    with pytest.raises(RuntimeError, match=r"ext::add_out: expected an out of sizes \[2\]"):
        weft.ops.ext.add_out(weft.ones(2), weft.ones(2), out=weft.ones(3))
    with pytest.raises(NotImplementedError, match=r"ext::nobody: .*CPU, got those for CUDA"):
        weft.ops.ext.nobody(weft.ones(2))


def test_gradients_of_kernels_of_autograd(ext) -> None:
    x = weft.tensor([1.0, -2.0], dtype=weft.float64, requires_grad=True)
    (grad,) = weft.autograd.grad(weft.ops.ext.scale(x, 3.0).sum(), x)
    assert grad.tolist() == [3.0, 3.0]
    assert weft.autograd.gradcheck(lambda x: weft.ops.ext.scale(x, 0.5), (x,))
    assert weft.autograd.gradgradcheck(lambda x: weft.ops.ext.scale(x, 0.5) ** 2, (x,))
    with weft.no_grad():
        assert not weft.ops.ext.scale(x).requires_grad


def test_kernels_without_a_gradient_say_so(ext) -> None:
    x = weft.ones(2, requires_grad=True)
    for made in (weft.ops.ext.plain(x), weft.ops.ext.squares(x)[0]):
        assert made.requires_grad
        with pytest.raises(NotImplementedError, match="expected a kernel of Autograd in backward"):
            made.sum().backward()
    y = x * 2
    weft.ops.ext.fill_(y, 1.0)
    with pytest.raises(NotImplementedError, match="ext::fill_"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="leaf"):
        weft.ops.ext.fill_(x, 1.0)


def test_gradients_in_python(ext) -> None:
    """register_autograd gives an operator of a library its gradient; register_fake its sizes."""
    weft.library.register_autograd("ext::plain", lambda ctx, grad: 7 * grad)
    weft.library.register_fake("ext::plain")(lambda x: weft.empty_like(x))
    x = weft.ones(2, requires_grad=True)
    weft.ops.ext.plain(x).sum().backward()
    assert x.grad.tolist() == [7.0, 7.0]
    assert weft.ops.ext.plain(weft.empty(2, device="meta")).device.type == "meta"


def test_tensors_without_elements(ext) -> None:
    """Kernels over elements run on the CPU alone; those of Meta, and of operators, on meta."""
    x = weft.empty(2, 3, device="meta")
    made = weft.ops.ext.scale(x)
    assert (made.device.type, made.shape) == ("meta", (2, 3))
    with pytest.raises(NotImplementedError, match=r"ext::squares: expected a kernel for Meta, got"):
        weft.ops.ext.squares(x)
    weft.library.register_fake("ext::squares")(lambda x, more=None: (x, x))
    assert weft.ops.ext.squares(x)[0].shape == (2, 3)


class Scaled(weft.nn.Module):
    def forward(self, x: weft.Tensor) -> weft.Tensor:
        a, b = weft.ops.ext.squares(weft.ops.ext.scale(x, 3.0), None)
        return a + b


def test_programs_and_compiled_files(ext, tmp_path) -> None:
    x = weft.tensor([1.0, 2.0])
    program = weft.jit.script(Scaled())
    assert program(x).tolist() == [9.0, 36.0]
    weft.jit.save(program, tmp_path / "scaled.pt")
    loaded = weft.jit.load(tmp_path / "scaled.pt")
    assert loaded(x).tolist() == [9.0, 36.0]
    numpy.save(tmp_path / "x.npy", numpy.array([1.0, 2.0], dtype="float32"))
    made = tmp_path / "scaled.weft"
    given = ["--library", ext, "--example", "2"]
    weft_command("compile", tmp_path / "scaled.pt", "-o", made, *given)
    printed = weft_command("exec", made, "--library", ext, "--input", tmp_path / "x.npy")
    assert printed.startswith("tensor([ 9., 36.])")


def test_programs_differentiate(ext, tmp_path) -> None:
    @weft.jit.script
    def f(x):
        return weft.ops.ext.scale(x, 3.0).exp().sum()

    x = weft.zeros(2, requires_grad=True)
    for _ in range(3):
        (grad,) = weft.autograd.grad(f(x), x)
        assert grad.tolist() == [3.0, 3.0]
    weft.jit.aot_compile(f, tmp_path / "f.weft")
    found = weft._C.CompiledModule(str(tmp_path / "f.weft")).call("forward", x)
    assert weft.autograd.grad(found, x)[0].tolist() == [3.0, 3.0]


class Filled(weft.nn.Module):
    def forward(self, x: weft.Tensor) -> weft.Tensor:
        y = x + 1
        z = y * 3
        weft.ops.ext.fill_(y, 2.0)
        w = y * 3 + z
        weft.ops.ext.add_out(x, x, out=y)
        return w + y


def test_programs_see_what_is_written(ext, tmp_path) -> None:
    x = weft.ones(3)
    expected = Filled()(x).tolist()
    assert expected == [14.0] * 3
    program = weft.jit.script(Filled())
    assert [program(x).tolist() for _ in range(3)] == [expected] * 3
    assert weft.jit.trace(Filled(), x)(x).tolist() == expected
    weft.jit.aot_compile(program, tmp_path / "filled.weft")
    compiled = weft._C.CompiledModule(str(tmp_path / "filled.weft"))
    assert [compiled.call("forward", x).tolist() for _ in range(2)] == [expected] * 2


# ---- all types, inferred schemas, operators made of others ----

TYPES = """
#include <torch/script.h>

#include <sstream>

namespace {

std::string words(const at::Tensor& a, at::Tensor b, const c10::optional<at::Tensor>& c,
                  at::TensorList d, std::vector<at::Tensor> e, at::IntArrayRef f,
                  std::vector<int64_t> g, double h, int64_t i, bool j, std::string k,
                  c10::string_view l, const at::Scalar& m, at::Device n, at::ScalarType o,
                  c10::optional<int64_t> p, c10::optional<at::IntArrayRef> q,
                  const c10::List<c10::optional<at::Tensor>>& r, at::ArrayRef<double> s) {
  std::ostringstream out;
  out << a.dim() << b.dim() << (c ? c->dim() : -1) << ' ' << d.size() << e.size() << ' ' << f << at::IntArrayRef(g)
      << ' ' << h << ' ' << i << ' ' << j << ' ' << k << l << ' ' << m << ' ' << n << ' ' << o << ' '
      << p.value_or(-1) << ' ' << q.value_or(at::IntArrayRef()) << ' ' << r.size()
      << r.get(0).has_value() << ' ' << s;
  return out.str();
}

std::tuple<at::Tensor, std::vector<at::Tensor>, int64_t, double, bool, std::string,
           c10::optional<at::Tensor>, std::vector<int64_t>>
results(const at::Tensor& x) {
  return {x, {x, x + 1}, 3, 0.5, true, "text", c10::nullopt, {1, 2}};
}
std::vector<at::Tensor> parts(const at::Tensor& x, int64_t count) { return x.chunk(count); }
void nothing() {}
// Made of other operators: gradients go through it.
at::Tensor swish(const at::Tensor& x) { return x * at::sigmoid(x); }

}  // namespace

TORCH_LIBRARY_FRAGMENT(types, m) {
  m.def("words", words);
  m.def("results", results);
  m.def("parts(Tensor x, int count) -> Tensor[]", &parts);
  m.def("nothing", TORCH_FN(nothing));
  m.def("window(Tensor x, int[2] k=1, *, SymInt pad=0, str mode=\'a, b\') -> int[]",
        [](const at::Tensor&, at::IntArrayRef k, c10::SymInt pad, const std::string& mode) {
          return std::vector<int64_t>{k.at(0), k.at(1), pad, static_cast<int64_t>(mode.size())};
        });
}
TORCH_LIBRARY_FRAGMENT(types, m) {
  m.def("silu(Tensor x) -> Tensor");
  m.def("twice", [](at::Tensor x) { return swish(x) * 2; });
}
TORCH_LIBRARY_IMPL(types, CompositeImplicitAutograd, m) { m.impl("silu", swish); }

struct Cubes {
  at::Tensor operator()(const at::Tensor& x) const { return x * x * x; }
};
at::Tensor half(at::Tensor x, c10::optional<double> by) { return x * by.value_or(0.5); }
static auto registry =
    torch::RegisterOperators("types::half", &half)
        .op("types::negated(Tensor x) -> Tensor", [](const at::Tensor& x) { return -x; })
        .op("types::cubes", torch::RegisterOperators::options().kernel(
                                c10::DispatchKey::CPU, Cubes()))
        .op(torch::RegisterOperators::options()
                .schema("types::third(Tensor x) -> Tensor")
                .catchAllKernel([](const at::Tensor& x) { return x / 3; }));
static auto more = c10::RegisterOperators().op(
    "types::late", c10::RegisterOperators::options().catchAllKernel<decltype(half), &half>());

static void boxed(const c10::OperatorHandle&, torch::jit::Stack* stack) {
  const at::Tensor x = stack->at(0).toTensor();
  stack->assign(1, x + stack->at(1).toInt());
}
TORCH_LIBRARY_FRAGMENT(types, m) {
  m.def("shifted(Tensor x, int by) -> Tensor", torch::CppFunction::makeFromBoxedFunction<&boxed>());
  m.def("sums(Tensor x) -> Tensor");
  m.impl("sums", torch::dispatch(c10::kCPU, [](const at::Tensor& x) {
           static auto op = c10::Dispatcher::singleton()
                                .findSchemaOrThrow("aten::add", "Tensor")
                                .typed<at::Tensor(const at::Tensor&, const at::Tensor&,
                                                  const at::Scalar&)>();
           return op.call(x, x, 1);
         }));
}
"""


@pytest.fixture(scope="module")
def several(built_once) -> pathlib.Path:
    """A library of several namespaces, in one unit, since headers take most of the time."""
    source = TYPES + FUNCTIONS + GOOD % ("imported", "")
    return built_once("several", lambda folder: build(folder, "several", source)) / "libseveral.so"


@pytest.fixture(scope="module")
def types(several):
    weft.ops.load_library(several)
    return weft.ops.types


def test_types_of_arguments(types) -> None:
    x, y = weft.ones(2), weft.ones(2, 2)
    rest = [0.5, 7, True, "a", "b", 3, weft.device("cpu"), weft.float16]
    given = [x, y, None, [x], [x, y], [1, 2], [3], *rest, None, [4], [None, x], [0.25]]
    assert types.words(*given) == "12-1 12 [1, 2][3] 0.5 7 1 ab 3 cpu Half -1 [4] 20 [0.25]"
    given[2], given[15], given[16] = y, 8, None
    assert types.words(*given) == "122 12 [1, 2][3] 0.5 7 1 ab 3 cpu Half 8 [] 20 [0.25]"
    schema = str(types.words.default._schema)
    assert schema.startswith("types::words(Tensor _0, Tensor _1, Tensor? _2, Tensor[] _3, ")


def test_types_of_results(types) -> None:
    x = weft.ones(4)
    first, two, *rest = types.results(x)
    assert first.tolist() == [1.0] * 4 and [each[0].item() for each in two] == [1.0, 2.0]
    assert rest == [3, 0.5, True, "text", None, [1, 2]]
    assert [len(each) for each in types.parts(x, 2)] == [2, 2]
    assert types.nothing() is None


def test_defaults(types) -> None:
    x = weft.ones(1)
    assert types.window(x) == [1, 1, 0, 4]
    assert types.window(x, 3, pad=2) == [3, 3, 2, 4]
    assert types.window(x, [3, 4], mode="") == [3, 4, 0, 0]

    @weft.jit.script
    def f(x):
        return weft.ops.types.window(x), weft.ops.types.window(x, 5, pad=1)

    assert f(x) == ([1, 1, 0, 4], [5, 5, 1, 4])


def test_operators_made_of_operators_have_gradients(types) -> None:
    x = weft.tensor([0.5, -1.0], dtype=weft.float64, requires_grad=True)
    for function in (types.silu, types.twice, types.half, types.negated, types.third, types.late):
        args = (x, None) if function in (types.half, types.late) else (x,)
        assert weft.autograd.gradcheck(function, args)
        assert weft.autograd.gradgradcheck(function, args)
    assert weft.equal(types.silu(x), x * x.sigmoid())
    assert types.cubes(x).tolist() == [0.125, -1.0]
    assert types.shifted(x, 2).tolist() == [2.5, 1.0]
    assert types.sums(x.detach()).tolist() == [1.0, -2.0]


# ---- functions with a gradient of their own ----

FUNCTIONS = """
#include <torch/torch.h>

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Product : torch::autograd::Function<Product> {
  static variable_list forward(AutogradContext* ctx, at::Tensor a, at::Tensor b) {
    const at::Tensor made = a * b;
    ctx->save_for_backward({a, b, made});
    ctx->saved_data["seen"] = std::vector<int64_t>{1, 2};
    const at::Tensor places = a > b;
    ctx->mark_non_differentiable({places});
    return {made, places};
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    TORCH_CHECK(saved.at(2).requires_grad() == saved.at(0).requires_grad() ||
                saved.at(1).requires_grad(), "a result has its history");
    TORCH_CHECK(ctx->saved_data["seen"].toIntVector().size() == 2);
    at::Tensor first, second;
    if (ctx->needs_input_grad(0)) first = grads.at(0) * saved.at(1);
    if (ctx->needs_input_grad(1)) second = grads.at(0) * saved.at(0);
    return {first, second};
  }
};

struct Doubled : torch::autograd::Function<Doubled> {
  static at::Tensor forward(AutogradContext* ctx, at::Tensor x) {
    x.mul_(2);
    ctx->mark_dirty({x});
    return x;
  }
  static variable_list backward(AutogradContext*, variable_list grads) { return {grads[0] * 2}; }
};

// Lists, optional tensors, and gradients that are not there.
struct Weighted : torch::autograd::Function<Weighted> {
  static variable_list forward(AutogradContext* ctx, const variable_list& xs, double by,
                               const c10::optional<at::Tensor>& more) {
    ctx->set_materialize_grads(false);
    ctx->saved_data["by"] = by;
    ctx->saved_data["count"] = static_cast<int64_t>(xs.size());
    at::Tensor sum = at::zeros_like(xs[0]);
    for (const at::Tensor& x : xs) sum = sum + x * by;
    return {sum, more ? *more * by : at::zeros({1})};
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const double by = ctx->saved_data["by"].toDouble();
    variable_list found;
    for (int64_t i = 0; i < ctx->saved_data["count"].toInt(); ++i) {
      found.push_back(grads[0].defined() ? grads[0] * by : at::Tensor());
    }
    found.emplace_back();
    found.push_back(grads[1].defined() ? grads[1] * by : at::Tensor());
    return found;
  }
};

struct Wrong : torch::autograd::Function<Wrong> {
  static at::Tensor forward(AutogradContext*, at::Tensor x, int64_t) { return x + 1; }
  static variable_list backward(AutogradContext*, variable_list grads) { return grads; }
};

TORCH_LIBRARY(functions, m) {
  m.def("product", [](at::Tensor a, at::Tensor b) {
    const variable_list made = Product::apply(a, b);
    return std::make_tuple(made[0], made[1]);
  });
  m.def("doubled_(Tensor(a!) x) -> Tensor(a!)", [](at::Tensor x) { return Doubled::apply(x); });
  m.def("weighted", [](std::vector<at::Tensor> xs, double by, c10::optional<at::Tensor> more) {
    return Weighted::apply(xs, by, more);
  });
  m.def("wrong", [](at::Tensor x) { return Wrong::apply(x, 3); });
}
"""


@pytest.fixture(scope="module")
def functions(several):
    weft.ops.load_library(several)
    return weft.ops.functions


def test_functions_record_their_gradient(functions) -> None:
    a = weft.tensor([1.0, 2.0], dtype=weft.float64, requires_grad=True)
    b = weft.tensor([3.0, -1.0], dtype=weft.float64, requires_grad=True)
    made, places = functions.product(a, b)
    assert made.grad_fn.name() == "Product" and not places.requires_grad
    assert places.tolist() == [False, True]
    assert weft.autograd.gradcheck(lambda a, b: functions.product(a, b)[0], (a, b))
    assert weft.autograd.gradgradcheck(lambda a, b: functions.product(a, b)[0], (a, b))
    assert weft.autograd.grad(functions.product(a, b.detach())[0].sum(), a)[0].tolist() == [3, -1]
    made.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        made.sum().backward()
    assert not functions.product(a.detach(), b.detach())[0].requires_grad


def test_what_functions_save_is_guarded(functions) -> None:
    a, b = weft.ones(2, requires_grad=True), weft.ones(2)
    made, _ = functions.product(a, b)
    b.add_(1)
    with pytest.raises(RuntimeError, match=r"changed|modified"):
        made.sum().backward()


def test_functions_write_to_inputs(functions) -> None:
    x = weft.ones(2, requires_grad=True)
    y = x * 3
    z = functions.doubled_(y)
    assert y.tolist() == [6.0, 6.0] and y.grad_fn.name() == "Doubled"
    weft.autograd.backward((z + y).sum())
    assert x.grad.tolist() == [12.0, 12.0]
    with pytest.raises(RuntimeError, match="leaf"):
        functions.doubled_(x)


def test_functions_of_lists(functions) -> None:
    xs = [weft.ones(2, requires_grad=True), weft.ones(2), weft.ones(2, requires_grad=True)]
    more = weft.ones(2, requires_grad=True)
    functions.weighted(xs, 2.0, more)[0].sum().backward()
    assert [each.grad is None for each in (*xs, more)] == [False, True, False, True]
    assert xs[0].grad.tolist() == xs[2].grad.tolist() == [2.0, 2.0]
    (found,) = weft.autograd.grad(functions.weighted(xs, 2.0, more)[1].sum(), more)
    assert found.tolist() == [2.0, 2.0]
    assert functions.weighted(xs, 1.0, None)[0].tolist() == [3.0, 3.0]


def test_wrong_numbers_of_gradients(functions) -> None:
    x = weft.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Wrong: backward: expected 2 gradients, got 1"):
        functions.wrong(x).sum().backward()


# ---- what cannot be registered ----

GOOD = """
#include <torch/library.h>

TORCH_LIBRARY(%s, m) {
  m.def("good(Tensor x) -> Tensor", [](at::Tensor x) { return x; });
  %s
}
"""
BAD = [
    ('"f(Tenser x) -> Tensor"', "expected a type of operators"),
    ('"f"', "expected a schema or a function"),
    ('"f(Tensor x) -> Tensor", [](at::Tensor, double) {}', r"arguments are \(Tensor\).*float"),
    ('"f(Tensor x) -> Tensor", [](at::Tensor) {}', r"results are \(Tensor\)"),
    ('"good(Tensor x) -> Tensor"', "defined once"),
]


@pytest.fixture(scope="module")
def bad(built_once) -> pathlib.Path:
    """A library that defines what the environment says besides a good operator."""
    cases = "".join(f"case {i}: m.def({text}); break;\n" for i, (text, _) in enumerate(BAD))
    source = GOOD % ("bad", f'switch (std::atoi(std::getenv("BAD"))) {{ {cases} }}')
    return built_once("bad", lambda folder: build(folder, "bad", source)) / "libbad.so"


@pytest.mark.parametrize("case", range(len(BAD)), ids=[text for text, _ in BAD])
def test_libraries_that_cannot_be_registered(case, bad, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("BAD", str(case))
    program = """
try:
    weft.ops.load_library(sys.argv[1])
except OSError as error:
    print(str(error).replace("\\n", " "))
print(weft.ops.bad.good(weft.ones(1)).item())
"""
    error, value = in_new_process(tmp_path, program, bad)
    assert error.startswith("ops.load_library: expected a library whose operators can be")
    assert "TORCH_LIBRARY: bad: " in error and value == "1.0"
    assert re.search(BAD[case][1], error), error


def test_classes_do_not_compile(tmp_path) -> None:
    source = tmp_path / "classes.cpp"
    source.write_text("""
#include <torch/custom_class.h>
struct Stack : torch::CustomClassHolder {};
TORCH_LIBRARY(classes, m) { m.class_<Stack>("Stack").def(torch::init<>()); }
""")
    flags = weft_command("--libtorch-flags").split()
    command = ["c++", "-std=c++17", "-fsyntax-only", str(source), *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0
    assert "torch::class_: weft has operators of extensions, and no classes" in done.stderr


def test_extensions_that_are_imported(several, tmp_path) -> None:
    """An extension module of Python, which nobody loads by load_library."""
    program = """
import ctypes
ctypes.CDLL(sys.argv[1])
print(weft.ops.imported.good(weft.ones(1)).item())
weft.library.register_autograd("imported::good", lambda ctx, grad: grad)
"""
    assert in_new_process(tmp_path, program, several) == ["1.0"]
