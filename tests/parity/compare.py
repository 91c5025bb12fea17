"""One sample through both libraries, forward and backward."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

import weft

from .convert import (
    Unconvertible,
    flat,
    map_tensors,
    name_of,
    tensor_to_torch,
    tensors_in,
    to_weft,
)
from .operators import PLACES, UNDEFINED, UNSIGNED, rebound

#: (rtol, atol) of a result; where weft and PyTorch differ by more, a result that is this near to
#: the one computed in the next wider dtype passes too
TOLERANCE = {
    torch.float16: (2e-3, 2e-4),
    torch.bfloat16: (1.6e-2, 1e-3),
    torch.float32: (2e-6, 1e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex32: (2e-3, 2e-4),
    torch.complex64: (2e-6, 1e-5),
    torch.complex128: (1e-7, 1e-7),
}
#: factor on the tolerance where an exponential of large numbers loses their digits: complex powers
#: are exp(w * log(z)); and where sums of many products cancel
LOOSE = {
    "pow": 10.0,
    "__rpow__": 10.0,
    "nn.functional.scaled_dot_product_attention": 10.0,
    "addbmm": 10.0,
    "stft": 10.0,
    "nn.functional.conv3d": 20.0,
    "nn.functional.conv_transpose3d": 20.0,
}
#: Where an inverse or a factor of a matrix enters, errors grow by the condition of the matrix, in the order in
#: which the processor's LAPACK sums: also a factor of 10.
CONDITIONED = re.compile(r"\bp?inv|tensorinv|solve|cholesky|det$|ldl|lstsq|linalg.cond")
#: beside the spectra, operators whose elements are sums of terms as large as the largest element
SUMS = frozenset({"nn.functional.scaled_dot_product_attention"})
WIDER = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.float32: torch.float64,
    torch.complex32: torch.complex64,
    torch.complex64: torch.complex128,
}


class Different(Exception):
    """The libraries disagree; the text says where."""


@dataclass(frozen=True)
class Case:
    """An operator on one sample."""

    theirs: Callable[..., Any]
    ours: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    select: Callable[[Any], Any]  # which part of the result has gradients that make sense
    name: str

    def run_theirs(self, convert: Callable[[Any], Any]) -> tuple[Any, list[torch.Tensor]]:
        """PyTorch's result and the tensors that went in, every argument through `convert`."""
        args, kwargs = convert(self.args), convert(self.kwargs)
        torch.manual_seed(42)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.theirs(*args, **kwargs), tensors_in((args, kwargs), torch.Tensor)

    def run_ours(self) -> tuple[Any, list[weft.Tensor]]:
        """weft's result and the tensors that went in."""
        args, kwargs = to_weft(self.args), to_weft(self.kwargs)
        weft.manual_seed(42)
        return self.ours(*args, **kwargs), tensors_in((args, kwargs), weft.Tensor)


def make_case(info: Any, ours: Any, sample: Any) -> Case:
    """A case of a SampleInput."""
    args = (sample.input, *sample.args)
    return Case(info.op, ours, args, sample.kwargs, sample.output_process_fn_grad, info.name)


def _fresh(value: Any) -> Any:
    """Leaves with the same layout, so that no run sees what another wrote."""

    def leaf(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.layout != torch.strided:
            return tensor.detach().clone().requires_grad_(tensor.requires_grad)
        plain = tensor.detach()
        storage = plain.untyped_storage().clone()
        copy = torch.empty(0, dtype=plain.dtype).set_(
            storage, plain.storage_offset(), plain.shape, plain.stride()
        )
        copy = copy.conj() if plain.is_conj() else copy
        return copy.requires_grad_(tensor.requires_grad)

    return map_tensors(value, leaf)


def _widened(value: Any) -> Any:
    def widen(tensor: torch.Tensor) -> torch.Tensor:
        dtype = WIDER.get(tensor.dtype, tensor.dtype)
        return tensor.detach().to(dtype).requires_grad_(tensor.requires_grad)

    value = map_tensors(value, widen)
    return map_tensors(value, lambda dtype: WIDER.get(dtype, dtype), torch.dtype)


def check(case: Case, gradients: bool) -> tuple[str | None, str | None]:
    """What is wrong with the result and with the gradient: None where nothing is.

    Raises RuntimeError and the like where PyTorch itself cannot run the sample.
    """
    expected, inputs = case.run_theirs(_fresh)
    try:
        got, arguments = case.run_ours()
    except (Exception, Unconvertible) as error:
        text = _said(error)
        return text, text if gradients else None
    if case.name in UNSIGNED:
        forward = _problem(
            lambda: _compare_results(case, rebound(case.select)(got), case.select(expected))
        )
    else:
        forward = _problem(lambda: _compare_results(case, got, expected))
    if not gradients:
        return forward, None
    reference = _gradients(torch, case.select(expected), inputs, _seeds(case, expected))
    if reference is None:
        return forward, None
    return forward, _problem(
        lambda: _compare_gradients(case, got, arguments, reference, _seeds(case, expected))
    )


def _said(error: BaseException) -> str:
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}"


def _problem(comparison: Callable[[], None]) -> str | None:
    try:
        comparison()
    except Different as difference:
        return str(difference)
    except Exception as error:
        return _said(error)
    return None


# Results ----------------------------------------------------------------------------------------


def _compare_results(case: Case, got: Any, expected: Any) -> None:
    ours, theirs = flat(got), flat(expected)
    if len(ours) != len(theirs):
        raise Different(f"result: expected {len(theirs)} values, got {len(ours)}")
    wide: list[Any] | None = None
    for index, (one, other) in enumerate(zip(ours, theirs)):
        if not isinstance(other, torch.Tensor):
            _compare_plain(one, other)
            continue
        converted = _same_kind(one, other, f"result {index}")
        if case.name in UNDEFINED or _close(case, converted, other):
            continue
        if case.name in PLACES and _same_values_there(case, converted, other):
            continue
        if wide is None:
            wide = _attempt(lambda: _wide_results(case))
        if not _close_to_wide(case, converted, wide, index):
            raise Different(f"result {index}: {_difference(converted, other)}")


def _wide_results(case: Case) -> list[Any]:
    result = case.run_theirs(_widened)[0]
    return flat(case.select(result) if case.name in UNSIGNED else result)


def _same_values_there(case: Case, one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether both index tensors pick the same values of the input: ties may fall either way."""
    source = case.args[0].detach()
    if one.dtype != torch.int64 or source.dim() == 0:
        return False
    dim = _dimension(case)
    if one.dim() < source.dim():
        one, other = one.unsqueeze(dim), other.unsqueeze(dim)
    return torch.equal(source.gather(dim, one), source.gather(dim, other))


def _dimension(case: Case) -> int:
    place = 2 if case.name in ("topk", "kthvalue") else 1
    given = case.args[place] if len(case.args) > place else case.kwargs.get("dim", -1)
    return -1 if isinstance(given, bool) else given


def _compare_plain(one: Any, other: Any) -> None:
    if isinstance(other, (bool, int, float, complex)):
        same = type(one) is type(other) and (one == other or (one != one and other != other))
        close = isinstance(other, (float, complex)) and abs(one - other) <= 1e-6 * abs(other)
        if not same and not close:
            raise Different(f"result: expected {other!r}, got {one!r}")
    elif str(one) != str(other):
        raise Different(f"result: expected {other}, got {one}")


def _same_kind(one: Any, other: torch.Tensor, what: str) -> torch.Tensor:
    """weft's tensor as PyTorch's, once dtype and shape agree."""
    if not isinstance(one, weft.Tensor):
        raise Different(f"{what}: expected a tensor, got {type(one).__name__}")
    if name_of(one.dtype) != name_of(other.dtype):
        raise Different(f"{what}: expected {other.dtype}, got {one.dtype}")
    if tuple(one.shape) != tuple(other.shape):
        raise Different(f"{what}: expected shape {tuple(other.shape)}, got {tuple(one.shape)}")
    return tensor_to_torch(one)


def _close(case: Case, one: torch.Tensor, other: torch.Tensor, gradient: bool = False) -> bool:
    rtol, atol = TOLERANCE.get(one.dtype, (0.0, 0.0))
    if one.dtype in (torch.float32, torch.complex64):
        rtol *= LOOSE.get(case.name, 10.0 if CONDITIONED.search(case.name) else 1.0)
    other = other.detach().resolve_conj().resolve_neg()
    if not other.dtype.is_floating_point and not other.dtype.is_complex:
        return torch.equal(one, other)
    several_steps = gradient or case.name.startswith("nn.functional.")
    if several_steps and one.dtype in (torch.float16, torch.bfloat16, torch.complex32):
        # Each step of a formula rounds to 8 or 11 bits, so what is left after terms cancel is as
        # exact as the terms were.
        atol += rtol * _root_mean_square(other)
    if case.name.startswith("fft.") or case.name in SUMS:
        # Every element is a sum over many terms: its error is in proportion to all of them, however
        # small the element.
        atol += rtol * _root_mean_square(other)
    return torch.allclose(one, other, rtol=rtol, atol=atol, equal_nan=True)


def _root_mean_square(values: torch.Tensor) -> float:
    return float(values[values.isfinite()].abs().double().square().mean().sqrt().nan_to_num())


def _close_to_wide(
    case: Case, one: torch.Tensor, wide: list[Any] | None, index: int, gradient: bool = False
) -> bool:
    """Whether `one` is right although PyTorch's own result is farther off."""
    if wide is None or index >= len(wide) or not isinstance(wide[index], torch.Tensor):
        return False
    truth = wide[index]
    if truth.shape != one.shape or one.dtype not in WIDER:
        return False
    return _close(case, one, truth.to(one.dtype), gradient)


def _difference(one: torch.Tensor, other: torch.Tensor) -> str:
    """The worst element, for a person to read."""
    other = other.detach().resolve_conj().resolve_neg()
    if one.dtype == torch.bool:
        return f"{int((one != other).sum())} of {one.numel()} differ"
    kind = torch.complex128 if one.dtype.is_complex else torch.float64
    gap = (one.to(kind) - other.to(kind)).abs()
    equal = (one == other) | ((one != one) & (other != other))
    gap = torch.where(equal, torch.zeros_like(gap), gap.nan_to_num(torch.inf)).flatten()
    rtol, atol = TOLERANCE.get(one.dtype, (0.0, 1.0))
    at = int((gap / (atol + rtol * other.to(kind).abs().flatten())).nan_to_num(torch.inf).argmax())
    expected, got = other.flatten()[at].item(), one.flatten()[at].item()
    return f"expected {expected!r}, got {got!r} (element {at} of {one.numel()})"


def _attempt(function: Callable[[], Any]) -> Any:
    try:
        return function()
    except Exception:
        return None


# Gradients --------------------------------------------------------------------------------------


def _seeds(case: Case, expected: Any) -> list[torch.Tensor]:
    """What flows into the differentiable results: the same numbers each time."""
    generator = torch.Generator().manual_seed(7)
    return [
        torch.randn(tuple(tensor.shape), generator=generator, dtype=torch.float64)
        for tensor in _differentiable(torch, case.select(expected))
    ]


def _differentiable(library: Any, result: Any) -> list[Any]:
    return [v for v in flat(result) if isinstance(v, library.Tensor) and v.requires_grad]


def _gradients(library: Any, result: Any, inputs: list[Any], seeds: list[Any]) -> Any:
    outputs = _differentiable(library, result)
    wanted = [tensor for tensor in inputs if tensor.requires_grad]
    if not outputs or not wanted:
        return None
    if library is torch:
        flows = [s.to(o.dtype) for s, o in zip(seeds, outputs)]
    else:
        flows = [to_weft(s.to(getattr(torch, name_of(o.dtype)))) for s, o in zip(seeds, outputs)]
    return library.autograd.grad(outputs, wanted, flows, allow_unused=True)


def _compare_gradients(
    case: Case, got: Any, arguments: list[Any], reference: Any, seeds: list[Any]
) -> None:
    result = rebound(case.select)(got)
    count = len(_differentiable(weft, result))
    if count == 0 and all(one is None or not bool(one.any()) for one in reference):
        return
    if count != len(seeds):
        raise Different(f"gradient: expected {len(seeds)} differentiable results, got {count}")
    gradients = _gradients(weft, result, arguments, seeds)
    wide: Any = None
    for index, (one, other) in enumerate(zip(gradients, reference, strict=True)):
        if one is None or other is None:
            _compare_absent(one, other, index)
            continue
        converted = _same_kind(one, other, f"gradient {index}")
        if _close(case, converted, other, True):
            continue
        if case.name in PLACES and _close(
            case, *(g.flatten().sort()[0] for g in (converted, other))
        ):
            continue
        if wide is None:
            wide = _attempt(lambda: _wide_gradients(case, seeds)) or []
        if not _close_to_wide(case, converted, wide, index, True):
            raise Different(f"gradient {index}: {_difference(converted, other)}")


def _wide_gradients(case: Case, seeds: list[Any]) -> list[Any]:
    result, inputs = case.run_theirs(_widened)
    return list(_gradients(torch, case.select(result), inputs, seeds))


def _compare_absent(one: Any, other: Any, index: int) -> None:
    """No gradient and a gradient of zeros say the same."""
    present = tensor_to_torch(one) if one is not None else other
    if present is not None and bool((present != 0).any()):
        raise Different(f"gradient {index}: expected {other}, got {one}")
