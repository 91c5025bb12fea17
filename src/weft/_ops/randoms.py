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


def _random(
    schema: str,
    doc: str,
    variants: str | None = None,
    factory: bool = False,
    out: bool | None = None,
    casts_out: bool = False,
    **rest: Any,
) -> None:
    tags = (
        ("random", "nondifferentiable", "factory") if factory else ("random", "nondifferentiable")
    ) + (("casts_out",) if casts_out else ())
    schema = f"{schema} -> Tensor"
    name = parse(schema).name
    op(schema, doc=doc, random=name, tags=tags, variants=variants, out=out, **rest)


def _fresh(head: str, doc: str, options: str = _OPTIONS, shape: str = "size") -> None:
    """A row and its twin with a generator: "rand(int[] size" and "rand.generator(...)"."""
    name, args = head.split("(")
    base, _, overload = name.partition(".")
    with_generator = f"{base}.{overload}_generator" if overload else f"{base}.generator"
    _random(f"{name}({args}, *, {options})", doc, factory=True, out=True, shape=shape)
    with_generator = f"{with_generator}({args}, *, Generator? generator, {options})"
    _random(with_generator, doc, factory=True, out=True, shape=shape)


_fresh("rand(int[] size", "Uniform numbers in [0, 1).")
_fresh("randn(int[] size", "Normal numbers of mean 0 and variance 1.")
_fresh("randint(int high, int[] size", "Integers in [0, high).", _INT_OPTIONS)
_fresh("randint.low(int low, int high, int[] size", "Integers in [low, high).", _INT_OPTIONS)
_fresh("randperm(int n", "The integers 0 to n - 1 in random order.", _INT_OPTIONS, shape="[n]")


def _like(head: str, doc: str, twin: str, **rest: Any) -> None:
    """A row and its twin with a generator, which is named `twin`."""
    for form, generator in ((head, ""), (f"{twin}({head.split('(')[1]}", "Generator? generator, ")):
        _random(f"{form}, *, {generator}{_OPTIONS}, {_FORMAT})", doc, "f", True, **rest)


_like(
    "rand_like(Tensor self", "Uniform numbers in [0, 1), as many as in self.",
    "rand_like.generator", like="self",
)  # fmt: skip
_like(
    "randn_like(Tensor self", "Normal numbers of mean 0 and variance 1, as many as in self.",
    "randn_like.generator", like="self",
)  # fmt: skip
_like(
    "randint_like(Tensor self, int high", "Integers in [0, high), as many as in self.",
    "randint_like.generator", shape="self",
)  # fmt: skip
_like(
    "randint_like.low_dtype(Tensor self, int low, int high",
    "Integers in [low, high), as many as in self.",
    "randint_like.low_generator_dtype", shape="self",
)  # fmt: skip
_random(
    f"bernoulli(Tensor self, *, {_GENERATOR})",
    "1 with the probability that self holds, else 0.",
    out=True,
    casts_out=True,
)
_random(
    f"bernoulli.p(Tensor self, float p, *, {_GENERATOR})",
    "1 with probability p, else 0, as many as in self.",
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
    "Normal numbers of one mean and deviation.", factory=True, out=True, shape="size",
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
    grad={"count": "grad.new_zeros(count.shape)", "prob": "grad.new_zeros(prob.shape)"},
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
        random=_name.partition(".")[0],
        tags=("random",),
        constants=("p",) if "Tensor p" in _arguments else (),
        grad={"self": "None"},
    )

# ---- dropout ----

op(
    "dropout(Tensor input, float p, bool train) -> Tensor",
    doc="In training, elements set to 0 with probability p and the others divided by 1 - p.",
    random="dropout",
    tags=("random", "composite", "may_give_input"),
    like="input",
)
