"""What programs ask of the namespace: versions, devices, dtypes."""

from __future__ import annotations

import sys
from typing import Any

from weft._C import Tensor
from weft._runtime.public import weft
from weft.array_api._dtypes import KINDS, isdtype

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


class Info:
    """The inspection functions of the standard."""

    def capabilities(self) -> dict[str, Any]:
        """What depends on elements works; arrays have up to 64 dimensions."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """Where new arrays are."""
        return weft.get_default_device()

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The dtypes of new arrays, by kind."""
        real = weft.get_default_dtype()
        return {
            "real floating": real,
            "complex floating": weft.complex128 if real == weft.float64 else weft.complex64,
            "integral": weft.int64,
            "indexing": weft.int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The dtypes of a kind, as isdtype has it, by name; None: all."""
        found = KINDS["bool"] + KINDS["numeric"]
        return {
            str(dtype).removeprefix("torch."): dtype
            for dtype in found
            if kind is None or isdtype(dtype, kind)
        }

    def devices(self) -> tuple[Any, ...]:
        """All devices."""
        return (weft.device("cpu"),)


def __array_namespace_info__() -> Info:
    """What the namespace can do.

    >>> weft.__array_namespace_info__().default_dtypes()["integral"]
    torch.int64
    """
    return Info()


def __array_namespace__(self: Tensor, /, *, api_version: str | None = None) -> Any:
    """The functions of the Array API standard. ValueError for a version that is not supported.

    >>> weft.ones(2).__array_namespace__().__name__
    'weft.array_api'
    """
    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(
            f"__array_namespace__: expected a version among {', '.join(VERSIONS)}, got "
            f"{api_version!r}"
        )
    return sys.modules[__name__.rpartition(".")[0]]


def to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """The array on a device: itself, if it is there. ValueError for a stream."""
    if stream is not None:
        raise ValueError(f"to_device: expected stream=None, got {stream!r}")
    return self.to(device)


# The methods of tensors, which are older than this module, learn what they take.
for _function in (__array_namespace__, to_device):
    getattr(Tensor, _function.__name__).__wrapped__ = _function
