"""FlopCounterMode: the floating point operations of products, for each module."""

from __future__ import annotations

import functools
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from weft._C import Tensor
from weft._runtime.public import weft
from weft.overrides import TorchFunctionMode
from weft.utils._flop_formulas import FORMULAS, Product
from weft.utils._pytree import tree_leaves, tree_map

#: formulas of the program's operators, by packets of `weft.ops`
flop_registry: dict[Any, Callable[..., int]] = {}


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Any], Any]:
    """A decorator: the function says how many operations an operator of `weft.ops` takes.

    targets: an operator or a list of them. It gets the shapes of the arguments, and `out_shape`;
    with get_raw the arguments and `out_val`. ValueError for what is no operator.

    >>> from weft.utils.flop_counter import register_flop_formula
    >>> @register_flop_formula(weft.ops.aten.dot)
    ... def count(a_shape, b_shape, *, out_shape=None, **kwargs): return 2 * a_shape[0]
    """
    listed = targets if isinstance(targets, (list, tuple)) else [targets]
    for each in listed:
        if not hasattr(each, "_qualname"):
            raise ValueError(
                f"register_flop_formula: expected operators such as weft.ops.aten.mm, got {each!r}"
            )

    def register(formula: Callable[..., int]) -> Callable[..., int]:
        made = formula if get_raw else _of_shapes(formula)
        flop_registry.update(dict.fromkeys(listed, made))
        return made

    return register


def _of_shapes(formula: Callable[..., int]) -> Callable[..., int]:
    """A formula of shapes as one of values."""

    @functools.wraps(formula)
    def call(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        args, kwargs, shape = tree_map(
            lambda each: each.shape if isinstance(each, Tensor) else each, (args, kwargs, out_val)
        )
        return formula(*args, out_shape=shape, **kwargs)

    call._get_raw = True  # type: ignore[attr-defined]
    return call


class FlopCounterMode(TorchFunctionMode):
    """Counts the floating point operations of matrix products, convolutions, attention and
    recurrent layers inside of its block, those of their gradients too, for each module.

    depth: how deep modules stand in the table, which is printed at the end unless `display` is
    False. custom_mapping: formulas by operators, as `register_flop_formula` takes them. mods has no
    effect.

    >>> from weft.utils.flop_counter import FlopCounterMode
    >>> model = weft.nn.Sequential(weft.nn.Linear(4, 8), weft.nn.ReLU())
    >>> with FlopCounterMode(display=False) as counter:
    ...     model(weft.ones(2, 4)).sum().backward()
    >>> counter.get_total_flops()
    256
    >>> {str(name): count for name, count in counter.get_flop_counts()["Sequential.0"].items()}
    {'aten.addmm': 128, 'aten.mm': 128}
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int | None = 2,
        display: bool = True,
        custom_mapping: dict[Any, Any] | None = None,
    ) -> None:
        super().__init__()
        if mods is not None:
            warnings.warn(
                "mods argument is not needed anymore, you can stop passing it", stacklevel=2
            )
        self.depth, self.display = depth, display
        custom = {
            key: each if getattr(each, "_get_raw", False) else _of_shapes(each)
            for key, each in (custom_mapping or {}).items()
        }
        self.flop_registry: dict[Any, Callable[..., int]] = {**flop_registry, **custom}
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self._modules = _ModuleNames()
        self._active = False

    # ---- what was counted ----

    def get_total_flops(self) -> int:
        """All operations."""
        return sum(self.flop_counts.get("Global", {}).values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """Operations by the name of a module, "Global" for all, and by operator."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """A table of modules down to a depth, and their operators."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        named = {name: counts for name, counts in self.flop_counts.items() if name != "Global"}
        covered = any(sum(counts.values()) >= total for counts in named.values())
        rows = [] if covered and total else list(self._rows("Global", 0))
        for name in sorted(named):
            level = name.count(".")
            if depth is None or level < depth:
                rows += self._rows(name, level + bool(rows and not covered))
        return _aligned([("Module", "FLOP", "% Total"), *rows])

    def _rows(self, name: str, level: int) -> Iterator[tuple[str, str, str]]:
        """A module and its operators."""
        counts = self.flop_counts.get(name, {})
        total = self.get_total_flops()
        for label, flops in ((name, sum(counts.values())), *counts.items()):
            shown = label if label is name else f" - {label}"
            share = f"{flops / total:.2%}" if total else "0%"
            yield " " * level + str(shown), _short(flops, total), share

    # ---- counting ----

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self._modules.start()
        self._active = True
        super().__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)
        self._active = False
        self._modules.stop()
        if self.display:
            print(self.get_table())

    def __torch_function__(
        self,
        func: Any,
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """The function's result; what it takes is counted."""
        kwargs = dict(kwargs or {})
        if func is Tensor.backward:  # functions of a program may multiply in it
            return self._inside(_backward, args, kwargs)
        packet = getattr(func, "overloadpacket", func)
        formula = self.flop_registry.get(packet)
        known = FORMULAS.get(getattr(packet, "__name__", ""))
        if formula is None and known is None and hasattr(func, "__wrapped__"):
            return self._inside(func.__wrapped__, args, kwargs)
        result = func(*args, **kwargs)
        if formula is not None:
            self._add(packet, formula(*args, out_val=result, **kwargs), self._modules.open())
            return result
        kwargs.pop("out", None)
        if known is not None and (made := known(result, *args, **kwargs)) is not None:
            self._count(made, result)
        return result

    def _inside(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Calls a function written in Python, the operators in which are counted."""
        with _Counting(self):
            return function(*args, **kwargs)

    def _count(self, product: Product, result: Any) -> None:
        """Counts a product now, and its gradients when that of the result is there."""
        names = self._modules.open()
        self._add(_key(product.name), product.flops, names)
        wanted = sum(isinstance(x, Tensor) and x.requires_grad for x in product.operands)
        outputs = [x for x in tree_leaves(result) if isinstance(x, Tensor) and x.requires_grad]
        if not wanted or not outputs:
            return

        def on_gradient(grad: Tensor | None) -> None:
            if self._active and grad is not None:
                self._add(_key(product.backward), wanted * product.flops, names)

        outputs[0].register_hook(on_gradient)

    def _add(self, key: Any, flops: int, names: Iterable[str]) -> None:
        for name in names:
            self.flop_counts[name][key] += flops


def _backward(
    tensor: Tensor, gradient: Any = None, retain_graph: Any = None, create_graph: bool = False,
    inputs: Any = None,
) -> None:  # fmt: skip
    """Tensor.backward, which modes see whole."""
    weft.autograd.backward(tensor, gradient, retain_graph, create_graph, inputs=inputs)


def _key(name: str) -> Any:
    """The operator under which a product is counted: its name where there is none, as of
    convolution_backward."""
    return getattr(weft.ops.aten, name, f"aten.{name}")


class _Counting(TorchFunctionMode):
    """A counter that is on once more, inside of what it answers for."""

    def __init__(self, counter: FlopCounterMode) -> None:
        super().__init__()
        self._counter = counter

    def __torch_function__(
        self, func: Any, types: tuple[type, ...], args: Any = (), kwargs: Any = None
    ) -> Any:
        return self._counter.__torch_function__(func, types, args, kwargs)


class _ModuleNames:
    """The dotted names of the modules that run, by hooks of all modules."""

    def __init__(self) -> None:
        self._known: dict[Any, str] = {}
        self._open: list[str] = []

    def open(self) -> list[str]:
        """The names of those that run now, each once, and "Global"."""
        return list(dict.fromkeys(("Global", *self._open)))

    def start(self) -> None:
        """From here on, modules are noted."""
        hooks = weft.nn.modules.module
        self._handles = (
            hooks.register_module_forward_pre_hook(self._enter),
            hooks.register_module_forward_hook(self._leave, always_call=True),
        )

    def stop(self) -> None:
        """To here."""
        for handle in self._handles:
            handle.remove()
        self._open.clear()

    def _enter(self, module: Any, args: Any) -> None:
        if module not in self._known:
            root = type(module).__name__
            for path, each in module.named_modules():
                self._known.setdefault(each, f"{root}.{path}" if path else root)
        self._open.append(self._known[module])

    def _leave(self, module: Any, args: Any, result: Any) -> None:
        name = self._known.get(module)
        while self._open and self._open.pop() != name:
            pass


# ---- the table ----


def _short(number: int, largest: int) -> str:
    """A number in the unit of the largest one."""
    place = max(0, min(4, (len(str(largest)) - 2) // 3))
    return f"{number / 1000**place:.3f}{('', 'K', 'M', 'B', 'T')[place]}"


def _aligned(rows: list[tuple[str, str, str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    rows.insert(1, (*("-" * width for width in widths),))  # type: ignore[arg-type]
    lines = (
        f"{a.ljust(widths[0])}  {b.rjust(widths[1])}  {c.rjust(widths[2])}" for a, b, c in rows
    )
    return "\n".join(lines)


__all__ = ["FlopCounterMode", "register_flop_formula"]
