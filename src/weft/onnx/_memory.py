"""Tensors, lists and attributes that a program writes to, over symbols that never change.

A `Ref` is one of them. A view is a Ref with a base: it is read by running its operator again once
the base was written, and written by scattering into the base: the operator that made the view, run
on the numbers of the base's elements, says where they go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from weft.onnx._symbols import Symbol


class Memory:
    """What was written within the branches and loops that are open, innermost last."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.journals: list[dict[Ref, Any]] = []

    @contextmanager
    def trial(self) -> Iterator[dict[Ref, Any]]:
        """Within, writes are kept in the journal that this gives; behind it all is as before, and
        the journal holds the new contents of what was there before."""
        journal: dict[Ref, Any] = {}
        self.journals.append(journal)
        try:
            yield journal
        finally:
            self.journals.pop()
            for ref, before in list(journal.items()):
                if ref.depth > len(self.journals):
                    del journal[ref]
                else:
                    journal[ref] = ref.content
                ref.restore(before)


class Ref:
    """A tensor, list or attribute. `content` is a symbol, a Python list of what a program holds, or
    any other value of an attribute."""

    def __init__(
        self,
        memory: Memory,
        content: Any,
        base: Ref | None = None,
        replay: Callable[[Any], Any] | None = None,
    ) -> None:
        self.memory, self.content = memory, content
        self.base, self.replay = base, replay
        self.depth = len(memory.journals)
        self.version: int = 0 if base is None else base.root.version

    @property
    def root(self) -> Ref:
        """What owns the elements."""
        return self if self.base is None else self.base.root

    def read(self) -> Any:
        """What it holds now."""
        if self.base is not None and self.version != self.root.version:
            assert self.replay is not None
            self.content = self.replay(self.base.read())
            self.version = self.root.version
        return self.content

    def write(self, content: Any) -> None:
        """Lets it hold something else."""
        if self.base is None:
            for journal in self.memory.journals[-1:]:
                journal.setdefault(self, self.content)
            self.content = content
            self.version += 1
            return
        self.base.write(self._scattered(self.base.read(), content))
        self.content, self.version = content, self.root.version

    def restore(self, content: Any) -> None:
        """Takes a write back."""
        self.content = content
        self.version += 1

    def _scattered(self, base: Symbol, content: Symbol) -> Symbol:
        """The base with the view's elements replaced."""
        assert self.replay is not None
        return content if self.replay(base) is base else replaced(base, self.replay, content)


def replaced(base: Symbol, view: Callable[[Any], Any], content: Symbol) -> Symbol:
    """The base with the elements of one of its views replaced."""
    g = base.graph
    sizes, count = base.shape, base.numel()
    indices = view(g.reshape(g.symbol(g.call("arange", count)), sizes))
    content = g.expand(g.cast(content, base.dtype), indices.shape)
    flat = g.op("ScatterElements", g.flat(base), g.flat(indices), g.flat(content), axis=0)
    return g.reshape(flat, sizes)
