"""How tensors print: PyTorch's notation, number by number.

The elements are taken as Python numbers first (only those that are shown), then one of three
notations is chosen for all of them, then they are laid out in rows of at most `linewidth`
characters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

from weft import _C
from weft._C import Tensor


@dataclass(frozen=True)
class _Options:
    precision: int = 4
    threshold: int = 1000  # more elements than this are summarised
    edgeitems: int = 3  # shown at each end of a summarised dimension
    linewidth: int = 80
    sci_mode: bool | None = None  # None: chosen by the numbers


_PROFILES = {
    "default": _Options(),
    "short": _Options(precision=2, edgeitems=2),
    "full": _Options(threshold=10**18),
}
_options = _PROFILES["default"]


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Sets how tensors print from now on; None leaves an option as it is.

    - precision: digits after the point
    - threshold: tensors of more elements are summarised
    - edgeitems: elements shown at each end of a summarised dimension
    - linewidth: characters in a line
    - profile: "default", "short" or "full", applied before the others
    - sci_mode: True or False for scientific notation always or never

    Raises ValueError for an unknown profile.
    """
    global _options
    if profile is not None:
        if profile not in _PROFILES:
            known = ", ".join(map(repr, _PROFILES))
            raise ValueError(f"set_printoptions: expected profile in {known}, got {profile!r}")
        _options = _PROFILES[profile]
    given: dict[str, Any] = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    _options = replace(_options, **{k: v for k, v in given.items() if v is not None})
    _options = replace(_options, sci_mode=sci_mode)


def get_printoptions() -> dict[str, Any]:
    """The options of `set_printoptions` that hold now, by name."""
    return asdict(_options)


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Within the block tensors print with these options of `set_printoptions`.

    >>> from weft._tensor.repr import printoptions
    >>> with printoptions(precision=1):
    ...     print(weft.tensor([0.125]))
    tensor([0.1])
    """
    global _options
    before = _options
    try:
        set_printoptions(**options)
        yield
    finally:
        _options = before


# ---- one number ----

_Format = Callable[[Any], str]


def _scientific(value: float) -> str:
    return f"{value:.{_options.precision}e}"


def _fixed(value: float) -> str:
    return f"{value:.{_options.precision}f}"


def _whole(value: float) -> str:
    return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"


def _float_format(values: list[float]) -> tuple[_Format, int]:
    """The notation for real numbers, and the width of the widest finite one.

    Whole numbers print as "3.", others with `precision` digits; very large, very small or very
    different ones in scientific notation. Zeros and non-finite numbers have no say.
    """
    telling = [v for v in values if v != 0 and math.isfinite(v)]
    if not telling:
        return _whole, 1
    largest = max(map(abs, telling))
    smallest = min(map(abs, telling))
    whole = all(v == math.ceil(v) for v in telling)
    scientific = largest / smallest > 1000 or largest > 1e8 or (not whole and smallest < 1e-4)
    if _options.sci_mode is not None:
        scientific = _options.sci_mode
    text = _scientific if scientific else _whole if whole else _fixed
    return text, max(len(text(v)) for v in telling)


def _padded(text_of_value: _Format, width: int) -> _Format:
    return lambda value: text_of_value(value).rjust(width)


def _complex_format(values: list[complex]) -> tuple[_Format, int]:
    """Both parts in the notation of their own, joined as 1.+2.j."""
    real_text, real_width = _float_format([v.real for v in values])
    imag_text, imag_width = _float_format([v.imag for v in values])

    def text(value: complex) -> str:
        imag = imag_text(value.imag)
        sign = "" if imag.startswith("-") else "+"
        return f"{real_text(value.real).rjust(real_width)}{sign}{imag}j"

    return text, real_width + imag_width + 1


def _format_for(tensor: Tensor, values: list[Any]) -> tuple[_Format, int]:
    """A function from an element to its padded text, and the width used for line breaks."""
    if tensor.dtype.is_complex:
        text, width = _complex_format(values)
        return text, width
    if tensor.dtype.is_floating_point:
        text, width = _float_format(values)
    else:
        text, width = str, max((len(str(v)) for v in values), default=1)
    return _padded(text, width), width


# ---- all numbers ----


class _Ellipsis:
    """Stands for the elements that a summary leaves out."""


_CUT = _Ellipsis()


def _shown(tensor: Tensor, summarise: bool) -> Any:
    """Nested lists of the elements to show, `_CUT` where some are left out."""
    if tensor.dim() == 0:
        return tensor.item()
    edge = _options.edgeitems
    if not summarise:
        return tensor.tolist()
    if tensor.size(0) <= 2 * edge:
        return [_shown(row, summarise) for row in tensor]
    head = [_shown(tensor[i], summarise) for i in range(edge)]
    tail = [_shown(tensor[i], summarise) for i in range(tensor.size(0) - edge, tensor.size(0))]
    return [*head, _CUT, *tail]


def _flatten(items: Any, out: list[Any]) -> list[Any]:
    if isinstance(items, list):
        for item in items:
            _flatten(item, out)
    elif items is not _CUT:
        out.append(items)
    return out


def _row(items: list[Any], text: _Format, width: int, indent: int) -> str:
    """One bracket of numbers, broken into lines."""
    per_line = max(1, (_options.linewidth - indent) // (width + 2))
    parts = [" ..." if item is _CUT else text(item) for item in items]
    lines = [", ".join(parts[i : i + per_line]) for i in range(0, len(parts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _nested(items: list[Any], dims: int, text: _Format, width: int, indent: int) -> str:
    if dims == 1:
        return _row(items, text, width, indent)
    parts = [
        "..." if item is _CUT else _nested(item, dims - 1, text, width, indent + 1)
        for item in items
    ]
    return "[" + ("," + "\n" * (dims - 1) + " " * (indent + 1)).join(parts) + "]"


def contents(tensor: Tensor, indent: int) -> str:
    """The numbers of a tensor, whose lines begin below one another at column `indent`."""
    if tensor.numel() == 0:
        return "[]"
    summarise = tensor.numel() > _options.threshold
    shown = _shown(tensor, summarise)
    text, width = _format_for(tensor, _flatten(shown, []))
    if tensor.dim() == 0:
        return text(shown)
    return _nested(shown, tensor.dim(), text, width, indent)


# ---- what stands after the numbers ----


def is_default_dtype(tensor: Tensor) -> bool:
    """Whether the numbers show the dtype."""
    default = _C.get_default_dtype()
    if tensor.numel() == 0 or tensor.is_meta:
        return tensor.dtype is default
    return tensor.dtype in (default, default.to_complex(), _C.int64, _C.bool)


def _suffixes(tensor: Tensor) -> list[str]:
    suffixes = []
    if tensor.device.type != "cpu":
        suffixes.append(f"device='{tensor.device}'")
    if tensor.is_meta or (tensor.numel() == 0 and tensor.dim() != 1):
        suffixes.append(f"size={tuple(tensor.shape)}")
    if not is_default_dtype(tensor):
        suffixes.append(f"dtype={tensor.dtype}")
    node = tensor.grad_fn
    if node is not None:
        suffixes.append(f"grad_fn=<{node.name()}>")
    elif tensor.requires_grad:
        suffixes.append("requires_grad=True")
    return suffixes


def text_of(tensor: Tensor, given: str | None = None) -> str:
    """The whole text: tensor([...], dtype=..., requires_grad=True)."""
    kind = type(tensor).__name__
    plain = kind in ("Tensor", "Parameter")
    prefix = "tensor(" if plain else f"{kind}("
    indent, suffixes = len(prefix), _suffixes(tensor)
    if given is None:
        given = "..." if tensor.is_meta else contents(tensor.detach().cpu(), indent)
    text = followed(prefix + given, suffixes, indent) + ")"
    around = None if plain else getattr(tensor, "_shown_within", None)  # of parameters' classes
    return f"{around}({text})" if around else text


def followed(text: str, suffixes: list[str], indent: int, new_line: bool = False) -> str:
    """A text and its suffixes, in lines of at most `linewidth` characters; new_line: the first
    suffix begins one."""
    line = len(text) - (text.rfind("\n") + 1) + 2
    for number, suffix in enumerate(suffixes):
        if line + len(suffix) + 2 > _options.linewidth or (new_line and number == 0):
            text += ",\n" + " " * indent + suffix
            line = indent + len(suffix)
        else:
            text += ", " + suffix
            line += len(suffix) + 2
    return text
