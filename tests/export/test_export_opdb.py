"""PyTorch's operator samples as exported programs: weft runs what PyTorch wrote, and the other way
round. CI takes a part of the operators, tools/nightly all."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from drawing import SCALE

import weft
from weft.utils._pytree import tree_leaves, tree_map

pytestmark = pytest.mark.parity
pytest.importorskip("torch", reason="PyTorch has the samples")
pytest.importorskip("expecttest", reason="PyTorch's operator samples need expecttest")

EVERY = 8 if SCALE == 1 else 1
# Results nobody wrote, drawn numbers, other layouts, and dtypes that NumPy has not.
SKIPPED = frozenset((
    "empty", "empty_like", "new_empty", "new_empty_strided", "empty_strided", "empty_permuted",
    "resize_", "resize_as_", "bfloat16", "chalf", "sparse.mm.reduce", "sparse.sampled_addmm",
    "to_sparse", "cauchy", "exponential", "geometric", "log_normal", "normal", "uniform", "randn",
    "randn_like", "rand_like", "randint", "randint_like", "multinomial", "bernoulli",
    "nn.functional.rrelu", "nn.functional.fractional_max_pool2d",
    "nn.functional.fractional_max_pool3d", "nn.functional.multi_head_attention_forward",
    "nn.functional.feature_alpha_dropout", "nn.functional.dropout", "nn.functional.dropout2d",
    "nn.functional.dropout3d", "nn.functional.alpha_dropout",
    "svd_lowrank", "pca_lowrank", "linalg.eigh",  # vectors up to their signs
))  # fmt: skip
# What weft does not export: functions that read values, and operators that it has not.
REFUSED = ("expected a module whose Python", "expected operators of PyTorch", "trace: expected")


def samples() -> Iterator[tuple[str, Any, Any, list[Any], dict[str, Any]]]:
    """Name, both libraries' functions, and the arguments of a sample."""
    import torch
    from parity.operators import op_infos, samples_of, weft_function

    for index, (name, info) in enumerate(op_infos().items()):
        function = weft_function(info)
        taken = index % EVERY == 0 and info.name not in SKIPPED
        if function is None or not taken or torch.float32 not in info.supported_dtypes("cpu"):
            continue
        for sample in samples_of(info, torch.float32, False)[:1]:
            yield name, info.op, function, [sample.input, *sample.args], sample.kwargs


def module_of(library: Any, function: Any, args: Any, kwargs: Any) -> tuple[Any, tuple[Any, ...]]:
    """A module of the tensors among the arguments, and these."""

    def is_tensor(value: Any) -> bool:
        return isinstance(value, library.Tensor)

    class Call(library.nn.Module):
        def forward(self, *tensors: Any) -> Any:
            rest = iter(tensors)
            filled = tree_map(lambda v: next(rest) if is_tensor(v) else v, (args, kwargs))
            result = function(*filled[0], **filled[1])
            return tuple(each for each in tree_leaves(result) if is_tensor(each))

    return Call(), tuple(t.detach() for t in tree_leaves((args, kwargs)) if is_tensor(t))


def numpy(values: Any) -> list[Any]:
    return [each.detach().resolve_conj().resolve_neg().numpy() for each in tree_leaves(values)]


def same(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(
        a.shape == b.shape and a.dtype == b.dtype and np.allclose(a, b, 1e-3, 1e-3, equal_nan=True)
        for a, b in zip(one, other)
    )


def converted(tensors: tuple[Any, ...], library: Any) -> list[Any]:
    return [library.from_numpy(each.copy()) for each in numpy(tensors)]


def test_weft_runs_pytorchs_programs_of_samples() -> None:
    import torch

    wrong, done = [], 0
    for name, function, _, args, kwargs in samples():
        module, tensors = module_of(torch, function, args, kwargs)
        file = io.BytesIO()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected = numpy(module(*[each.clone() for each in tensors]))
                torch.export.save(torch.export.export(module, tensors), file)
        except Exception:  # which PyTorch does not export
            continue
        try:
            program = weft.export.load(io.BytesIO(file.getvalue()))
        except NotImplementedError:
            continue
        got = program.module(check_guards=False)(*converted(tensors, weft))
        done += 1
        if not same(numpy(got), expected):
            wrong.append(name)
    assert wrong == [] and done > 400 // EVERY


def test_pytorch_runs_wefts_programs_of_samples() -> None:
    import torch
    from parity.convert import to_weft

    wrong, done = [], 0
    for name, _, function, given, named in samples():
        try:
            args = [to_weft(each) for each in given]
            kwargs = {key: to_weft(each) for key, each in named.items()}
            module, tensors = module_of(weft, function, args, kwargs)
            expected = numpy(module(*[each.clone() for each in tensors]))
        except Exception:
            continue  # what weft itself refuses is compared elsewhere
        file = io.BytesIO()
        try:
            weft.export.save(weft.export.export(module, tensors), file)
        except (NotImplementedError, RuntimeError) as error:
            assert any(text in str(error) for text in REFUSED), (name, error)
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loaded = torch.export.load(io.BytesIO(file.getvalue())).module(check_guards=False)
            got = numpy(loaded(*converted(tensors, torch)))
        done += 1
        if not same(got, expected):
            wrong.append(name)
    assert wrong == [] and done > 400 // EVERY
