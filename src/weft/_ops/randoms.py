"""Random numbers, in the streams of PyTorch's CPU generator."""

from __future__ import annotations

from typing import Any

from weft._ops.schema import parse
from weft._ops.table import op

_REST = "Layout? layout=None, Device? device=None, bool? pin_memory=None"
_OPTIONS = f"ScalarType? dtype=None, {_REST}"
_INT_OPTIONS = f"ScalarType? dtype=4, {_REST}"
_FORMAT = "MemoryFormat? memory_format=None"
_GENERATOR = "Generator? generator=None"


def _random(schema: str, doc: str, *tags: str, body: str = "", **rest: Any) -> None:
    body = body or parse(f"{schema} -> Tensor").name
    constant = () if {"grad", "no_gradient"} & {*rest} else ("nondifferentiable",)
    op(f"{schema} -> Tensor", doc=doc, random=body, tags=("random", *constant, *tags), **rest)


def _twins(
    head: str, twin: str, doc: str, body: str, options: str = _OPTIONS, own: bool = False,
    **rest: Any,
) -> None:  # fmt: skip
    """A row, and one named `twin` with a generator. The body says GENERATOR; `own`: it is the one
    of the second, in C++."""
    args = head.split("(")[1]
    for form, generator in ((head, ""), (f"{twin}({args}", "Generator? generator, ")):
        text = body.replace("GENERATOR", "generator" if generator else "nullptr")
        text = "" if own and generator else text
        _random(f"{form}, *, {generator}{options})", doc, "factory", body=text, **rest)


_EMPTY = "empty(size, dtype, layout, device, pin_memory, {})"
_FORM = "empty_like(self, dtype, layout, device, pin_memory, memory_format)"
_SIZED: dict[str, Any] = {"out": True, "shape": "size"}
_AS_SELF: dict[str, Any] = {"options": f"{_OPTIONS}, {_FORMAT}", "variants": "f"}
_twins(
    "rand(int[] size", "rand.generator", "Uniform numbers in [0, 1).",
    f"uniform_({_EMPTY}, 0, 1, GENERATOR)", **_SIZED,
)  # fmt: skip
_twins(
    "randn(int[] size", "randn.generator", "Normal numbers of mean 0 and variance 1.",
    f"normal_({_EMPTY}, 0, 1, GENERATOR)", **_SIZED,
)  # fmt: skip
_twins(
    "randint(int high, int[] size", "randint.generator", "Integers in [0, high).",
    "randint(0, high, size, GENERATOR, ...)", _INT_OPTIONS, **_SIZED,
)  # fmt: skip
_twins(
    "randint.low(int low, int high, int[] size", "randint.low_generator",
    "Integers in [low, high).",
    "randint(low, high, size, GENERATOR, ...)", _INT_OPTIONS, own=True, **_SIZED,
)  # fmt: skip
_twins(
    "randperm(int n", "randperm.generator", "The integers 0 to n - 1 in random order.",
    "randperm(n, GENERATOR, ...)", _INT_OPTIONS, own=True, out=True, shape="[n]",
)  # fmt: skip
_twins(
    "rand_like(Tensor self", "rand_like.generator",
    "Uniform numbers in [0, 1), as many as in self.",
    f"uniform_({_FORM}, 0, 1, GENERATOR)", like="self", **_AS_SELF,
)  # fmt: skip
_twins(
    "randn_like(Tensor self", "randn_like.generator",
    "Normal numbers of mean 0 and variance 1, as many as in self.",
    f"normal_({_FORM}, 0, 1, GENERATOR)", like="self", **_AS_SELF,
)  # fmt: skip
_twins(
    "randint_like(Tensor self, int high", "randint_like.generator",
    "Integers in [0, high), as many as in self.",
    f"random_({_FORM}, 0, high, GENERATOR)", shape="self", **_AS_SELF,
)  # fmt: skip
_twins(
    "randint_like.low_dtype(Tensor self, int low, int high", "randint_like.low_generator_dtype",
    "Integers in [low, high), as many as in self.",
    f"random_({_FORM}, low, high, GENERATOR)", shape="self", **_AS_SELF,
)  # fmt: skip
_SAME = 'bernoulli_(Tensor::empty(self.sizes(), self.dtype(), self.device(), "bernoulli"), '
_random(
    f"bernoulli(Tensor self, *, {_GENERATOR})",
    "1 with the probability that self holds, else 0.",
    "casts_out",
    body=f"{_SAME}self, generator)",
    grad={"self": "grad.new_zeros(self.shape)"},
    out=True,
)
_random(
    f"bernoulli.p(Tensor self, float p, *, {_GENERATOR})",
    "1 with probability p, else 0, as many as in self.",
    body=f"{_SAME}p, generator)",
    no_gradient=("self",),
)
# As in PyTorch, what is drawn counts as constant: the gradients are zeros.
for _arguments, _doc, _moments in (
    ("Tensor_float(Tensor mean, float std=1", "the given means and one deviation", ("mean",)),
    ("float_Tensor(float mean, Tensor std", "one mean and the given deviations", ("std",)),
    ("Tensor_Tensor(Tensor mean, Tensor std", "the given means and deviations", ("mean", "std")),
):
    op(
        f"normal.{_arguments}, *, {_GENERATOR}) -> Tensor",
        doc=f"Normal numbers with {_doc}.",
        random="normal",
        tags=("random", "casts_out"),
        grad={name: f"grad.new_zeros({name}.shape)" for name in _moments},
        out=True,
    )
_random(
    f"normal.float_float(float mean, float std, int[] size, *, {_GENERATOR}, {_OPTIONS})",
    "Normal numbers of one mean and deviation.", "factory", out=True, shape="size",
    body=f"normal_({_EMPTY}, mean, std, generator)",
)  # fmt: skip
op(
    "poisson(Tensor self, Generator? generator=None) -> Tensor",
    doc="Numbers of events, drawn from Poisson distributions whose means are the elements of self.",
    random="poisson",
    tags=("random",),
    variants="f",
    like="self",
    grad={"self": "grad.new_zeros(self.shape)"},
    out=True,
)
op(
    "binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor",
    doc="How many of `count` trials of probability `prob` succeed. Of floating dtypes, and of that "
    "of count; the tensors broadcast.",
    random="binomial",
    tags=("random",),
    variants="f",
    result="count",
    no_gradient=("count", "prob"),
)
for _name, _doc, _gradient in (
    (
        "_standard_gamma",
        "Numbers of the gamma distributions of rate 1 and concentrations self.",
        "grad * _standard_gamma_grad(self, result)",
    ),
    (
        "_sample_dirichlet",
        "Numbers of Dirichlet distributions, each in the last dimension.",
        "_dirichlet_grad(result, self, self.sum([-1], True)) * "
        "(grad - (result * grad).sum([-1], True))",  # within the simplex
    ),
):
    op(
        f"{_name}(Tensor self, Generator? generator=None) -> Tensor",
        doc=_doc,
        random=_name,
        tags=("random",),
        variants="f",
        like="self",
        grad={"self": _gradient},
    )
_random(
    f"multinomial(Tensor self, int num_samples, bool replacement=False, *, {_GENERATOR})",
    "Indices drawn with the weights in the rows of self.",
    out=True,
)

# ---- in place ----

_OF_CHANCES = {"bernoulli_.Tensor": {"p": "grad.new_zeros(p.shape)"}}

for _name, _arguments, _doc in (
    ("uniform_", ", float from=0, float to=1", "Writes uniform numbers in [from, to)."),
    ("normal_", ", float mean=0, float std=1", "Writes normal numbers."),
    ("bernoulli_.Tensor", ", Tensor p", "Writes 1 with the probabilities that p holds, else 0."),
    ("bernoulli_.float", ", float p=0.5", "Writes 1 with probability p, else 0."),
    ("random_.from", ", int from, int? to", "Writes integers in [from, to)."),
    ("random_.to", ", int to", "Writes integers in [0, to)."),
    ("random_", "", "Writes integers that the dtype can hold exactly."),
    ("exponential_", ", float lambd=1", "Writes numbers of the exponential distribution."),
    (
        "log_normal_",
        ", float mean=1, float std=2",
        "Writes exp of normal numbers of that mean and deviation.",
    ),
    ("cauchy_", ", float median=0, float sigma=1", "Writes numbers of the Cauchy distribution."),
    ("geometric_", ", float p", "Writes how many trials of chance p the first success takes."),
):
    op(
        f"{_name}(Tensor(a!) self{_arguments}, *, {_GENERATOR}) -> Tensor(a!)",
        doc=_doc,
        random="random_(self, 0, to, generator)" if _name == "random_.to" else _name.split(".")[0],
        tags=("random",),
        grad={"self": "zeros_like(grad)", **_OF_CHANCES.get(_name, {})},
    )

# ---- dropout ----

op(
    "dropout(Tensor input, float p, bool train) -> Tensor",
    doc="In training, elements set to 0 with probability p and the others divided by 1 - p.",
    random="dropout",
    tags=("random", "composite", "may_give_input"),
    like="input",
)
