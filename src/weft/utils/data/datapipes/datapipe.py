"""IterDataPipe: a stream of samples whose steps are methods."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

from weft.utils.data.dataset import IterableDataset, T_co


class IterDataPipe(IterableDataset[T_co]):
    """A stream that other streams are made of: `pipe.map(f)` is `Mapper(pipe, f)`.

    A subclass defines __iter__, as that of an IterableDataset does; functional_datapipe gives it a
    method's name.

    >>> from weft.utils.data.datapipes.iter import IterableWrapper
    >>> pipe = IterableWrapper(range(5)).filter(lambda n: n != 2).map(lambda n: n * n)
    >>> list(pipe.batch(2))
    [[0, 1], [9, 16]]
    """

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}

    def __getattr__(self, name: str) -> Any:
        if name in IterDataPipe.functions:
            return functools.partial(IterDataPipe.functions[name], self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Makes a function of a stream a method of all."""
        IterDataPipe.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: type, enable_df_api_tracing: bool = False
    ) -> None:
        """Makes a class of streams a method of all. ValueError for a name that is taken."""
        if function_name in IterDataPipe.functions:
            raise ValueError(
                f"functional_datapipe: expected a name that is free, got {function_name!r}"
            )
        IterDataPipe.functions[function_name] = cls_to_register

    def __repr__(self) -> str:
        return type(self).__qualname__


class functional_datapipe:
    """Decorates a class of streams: streams have a method of that name, which makes one.

    >>> from weft.utils.data import IterDataPipe, functional_datapipe
    >>> from weft.utils.data.datapipes.iter import IterableWrapper
    >>> @functional_datapipe("doubled")
    ... class Doubled(IterDataPipe):
    ...     def __init__(self, source):
    ...         self.source = source
    ...     def __iter__(self):
    ...         return (2 * value for value in self.source)
    >>> list(IterableWrapper([1, 2]).doubled())
    [2, 4]
    """

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        if enable_df_api_tracing:
            raise NotImplementedError(
                f"functional_datapipe: expected no tracing of data frames for {name!r}, got it"
            )
        self.name = name

    def __call__(self, cls: type) -> type:
        IterDataPipe.register_datapipe_as_function(self.name, cls)
        return cls
