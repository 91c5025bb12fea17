"""torch._functorch.make_functional: modules as functions of their parameters, by the names that
torch.func.functional_call and stack_module_state replaced."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.func import functional_call
from weft.nn import Module

_Tensors = tuple[Tensor, ...]


class _Stateless(Module):
    """A module whose parameters and buffers are on the device meta: each call brings others."""

    def __init__(
        self, stateless_model: Module, params: list[list[str]], buffers: list[list[str]]
    ) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self._places = (params, buffers)  # the names of each tensor: several of one that is tied

    @classmethod
    def _create_from(
        cls, model: Module, disable_autograd_tracking: bool = False
    ) -> tuple[Any, _Tensors, _Tensors]:
        model = copy.deepcopy(model)
        params, buffers = list(model.parameters()), list(model.buffers())
        names = _names(model.named_parameters(remove_duplicate=False), params)
        places = _names(model.named_buffers(remove_duplicate=False), buffers)
        made = cls(copy.deepcopy(model).to("meta"), names, places)
        if disable_autograd_tracking:
            model.requires_grad_(False)
        return made, tuple(params), tuple(buffers)

    def _called(
        self, params: Iterable[Tensor], buffers: Iterable[Tensor], args: Any, kwargs: Any
    ) -> Any:
        state = {
            name: tensor
            for places, given in zip(self._places, (params, buffers))
            for names, tensor in zip(places, given)
            for name in names
        }
        return functional_call(self.stateless_model, state, args, kwargs)


def _names(named: Iterable[tuple[str, Tensor]], tensors: Sequence[Tensor]) -> list[list[str]]:
    pairs = list(named)
    return [[name for name, each in pairs if each is tensor] for tensor in tensors]


class FunctionalModuleWithBuffers(_Stateless):
    """A function of parameters, buffers and arguments."""

    def forward(
        self, params: Iterable[Tensor], buffers: Iterable[Tensor], *args: Any, **kwargs: Any
    ) -> Any:
        """The module's result with these parameters and buffers."""
        return self._called(params, buffers, args, kwargs)


class FunctionalModule(_Stateless):
    """A function of parameters and arguments."""

    def forward(self, params: Iterable[Tensor], *args: Any, **kwargs: Any) -> Any:
        """The module's result with these parameters."""
        return self._called(params, (), args, kwargs)


def make_functional(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModule, _Tensors]:
    """A function of parameters and arguments, and copies of the model's parameters, which require
    no grad with disable_autograd_tracking. RuntimeError for a model with buffers."""
    if next(model.buffers(), None) is not None:
        raise RuntimeError(
            "make_functional: expected a model without buffers, got one with; "
            "make_functional_with_buffers takes it"
        )
    return FunctionalModule._create_from(model, disable_autograd_tracking)[:2]


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, _Tensors, _Tensors]:
    """As make_functional, of a model that may have buffers: a function of both, and both."""
    return FunctionalModuleWithBuffers._create_from(model, disable_autograd_tracking)


def combine_state_for_ensemble(
    models: Sequence[Module],
) -> tuple[FunctionalModuleWithBuffers, _Tensors, _Tensors]:
    """A function of the models' class, and their parameters and buffers, each stacked.

    RuntimeError for no models, models of several classes, and those in training beside others.
    """
    if not models or len({(type(model), model.training) for model in models}) > 1:
        raise RuntimeError(
            "combine_state_for_ensemble: expected models of one class and in one mode, got "
            f"{sorted({type(model).__name__ for model in models})}"
        )
    made, params, buffers = zip(*map(make_functional_with_buffers, models))
    return made[0], _stacked(params), _stacked(buffers)


def _stacked(states: Sequence[_Tensors]) -> _Tensors:
    return tuple(_C._aten.stack(each).detach() for each in zip(*states))
