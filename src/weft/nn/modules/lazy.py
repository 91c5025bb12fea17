"""LazyModuleMixin: modules that learn the shapes of their parameters from their first input."""

from __future__ import annotations

from typing import Any

from weft.autograd.grad_mode import no_grad
from weft.nn.modules.module import Module
from weft.nn.parameter import is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin(Module):
    """Base, before that of the layer, of modules whose parameters have no shapes at first.

    The class sets uninitialized parameters, and `initialize_parameters(*args, **kwargs)`, which the
    first call gets its arguments by, materializes them. Then the module becomes a
    `cls_to_become` (None: it keeps its class). Loading a state_dict gives the parameters their
    shapes, too.

    RuntimeError where parameters stay uninitialized.

    >>> class LazyScale(weft.nn.modules.lazy.LazyModuleMixin, weft.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = weft.nn.UninitializedParameter()
    ...     def initialize_parameters(self, x):
    ...         self.factor.materialize(x.shape[-1:])
    ...         weft.nn.init.ones_(self.factor)
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> LazyScale()(weft.tensor([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """

    cls_to_become: type | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(
            self._infer_parameters, with_kwargs=True
        )

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materializes the parameters for a call; each subclass defines its own."""
        raise NotImplementedError(
            f"{type(self).__name__}: expected initialize_parameters, got none"
        )

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or a buffer of this module itself has no shape yet."""
        return any(map(is_lazy, [*self._parameters.values(), *self._buffers.values()]))

    def _lazy_load_hook(self, state_dict: Any, prefix: str, *_: Any) -> None:
        """Gives parameters and buffers the shapes that they have in a state_dict."""
        with no_grad():
            for name, own in [*self._parameters.items(), *self._buffers.items()]:
                given = state_dict.get(prefix + name)
                if is_lazy(own) and given is not None and not is_lazy(given):
                    own.materialize(given.shape)

    def _infer_parameters(self, module: Any, args: Any, kwargs: Any = None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(
                f"{type(module).__name__}: expected initialize_parameters to materialize every "
                "parameter, got some that are not initialized"
            )
        for name in ("_initialize_hook", "_load_hook"):
            getattr(module, name).remove()
            delattr(module, name)
        if not module._has_hooks():
            del module._hooked
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self) -> Any:
        raise RuntimeError(
            f"{type(self).__name__}: expected initialized parameters, which a first call makes, to "
            "replicate"
        )
