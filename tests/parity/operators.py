"""Which weft callable stands for an OpInfo, and which samples it gets."""

from __future__ import annotations

import itertools
import random
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from libraries import seed_the_cpu_only

import weft
import weft.nn

from .convert import DTYPES, WIDE_UNSIGNED

#: the most samples per dtype; what is left of a longer list is spread over it
LIMITS = {
    torch.float32: 12, torch.float64: 5, torch.complex64: 6, torch.int64: 6, torch.complex32: 2,
}  # fmt: skip
OTHER_LIMIT = 4
#: how far a list of samples is generated at all
HORIZON = 64
#: the most elements of a sample's first tensor: one of 5 million takes as long as a hundred operators
MOST_ELEMENTS = 100_000
#: results are memory nobody wrote
UNDEFINED = frozenset(
    ("empty", "empty_like", "new_empty", "new_empty_strided", "empty_strided", "empty_permuted")
)
#: results are the places of elements: among equal ones any place will do
PLACES = frozenset(("sort", "argsort", "topk", "msort", "kthvalue", "mode", "median"))
#: results are determined up to the signs of vectors: what the sample selects of them is not
UNSIGNED = frozenset(("linalg.eigh", "linalg.svd", "pca_lowrank", "svd", "svd_lowrank"))
#: deliberate differences, told in docs/differences.md
DELIBERATE = frozenset((("any", torch.uint8), ("all", torch.uint8)))


def op_infos() -> dict[str, Any]:
    """Every OpInfo by its full name ("div.floor_rounding"), sorted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    _forget_the_test_function()
    seed_the_cpu_only()
    return dict(sorted((_full_name(info), info) for info in op_db))


def _forget_the_test_function() -> None:
    """For each list of samples PyTorch looks for a unittest in the whole stack, with the source of
    every frame: two thirds of the time that the samples took. There is none here."""
    from torch.testing._internal import common_utils
    from torch.testing._internal.opinfo import core

    for module in (common_utils, core):
        module.extract_test_fn = lambda: None


def _full_name(info: Any) -> str:
    return f"{info.name}.{info.variant_test_name}" if info.variant_test_name else info.name


def _look_up(root: Any, path: str) -> Any:
    for part in path.split("."):
        root = getattr(root, part, None)
    return root


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, (type, types.ModuleType))


def _seeded(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The twin of the samples' `wrapper_set_seed`."""
    weft.manual_seed(42)
    return function(*args, **kwargs)


def rebound(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of PyTorch's test suite, reading weft where it says torch."""
    if not isinstance(function, types.FunctionType):
        return function
    names = {**function.__globals__, "torch": weft, "wrapper_set_seed": _seeded}
    return types.FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )


def weft_function(info: Any) -> Callable[..., Any] | None:
    """The operator of weft with the name of `info`; None where there is none."""
    module = getattr(info.op, "__module__", None) or ""
    if isinstance(info.op, types.FunctionType) and module.startswith("torch.testing"):
        return rebound(info.op) if _reads_only_what_exists(info.op) else None
    if str(info.op).startswith("aten."):  # an operator of torch.ops
        return _look_up(weft.ops, str(info.op))
    name = info.name
    found = _look_up(weft, name) if _is_function(_look_up(torch, name)) else None
    if found is None and hasattr(torch.Tensor, name):
        found = getattr(weft.Tensor, name, None)
    return found if callable(found) else None


def _reads_only_what_exists(function: types.FunctionType) -> bool:
    """Whether every name the body reads of torch or of a tensor exists in weft."""
    known = (weft, weft.nn.functional, weft.Tensor, weft.linalg)
    code = [function.__code__]
    code += [const for const in code[0].co_consts if isinstance(const, types.CodeType)]
    names = {name for part in code for name in part.co_names} - {"torch", "wrapper_set_seed"}
    return all(any(hasattr(place, name) for place in known) for name in names)


def dtypes_of(info: Any, full: bool = False) -> list[tuple[torch.dtype, bool]]:
    """(dtype, whether gradients are compared) of all dtypes `info` has on the CPU; the unsigned
    ones of more than one byte in a full run."""
    backward = info.supported_backward_dtypes("cpu") if info.supports_autograd else set()
    forward = info.supported_dtypes("cpu")
    known = DTYPES + WIDE_UNSIGNED if full else DTYPES
    return [(dtype, dtype in backward) for dtype in known if dtype in forward]


def samples_of(info: Any, dtype: torch.dtype, requires_grad: bool, full: bool = False) -> list[Any]:
    """At most LIMITS samples of no more than MOST_ELEMENTS, the same ones in every run; in a full run
    all of them."""
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch makes some with names that it deprecates
        if full:
            return list(_generate(info, dtype, requires_grad))
        found = list(itertools.islice(_generate(info, dtype, requires_grad), HORIZON))
    found = [sample for sample in found if _elements(sample) <= MOST_ELEMENTS]
    limit = LIMITS.get(dtype, OTHER_LIMIT)
    if len(found) <= limit:
        return found
    return [found[i * len(found) // limit] for i in range(limit)]


def _elements(sample: Any) -> int:
    return sample.input.numel() if isinstance(sample.input, torch.Tensor) else 0


def _generate(info: Any, dtype: torch.dtype, requires_grad: bool) -> Iterator[Any]:
    yield from info.sample_inputs("cpu", dtype, requires_grad=requires_grad)
