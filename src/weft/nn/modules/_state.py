"""state_dict and load_state_dict: the names, order and messages are PyTorch's."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from weft._C import Tensor
from weft.autograd.grad_mode import no_grad
from weft.nn.modules._hooks import HookDict
from weft.nn.modules._registry import BUFFER, MODULE, PARAMETER, Registry
from weft.nn.parameter import Parameter, is_lazy
from weft.utils.hooks import RemovableHandle

_EXTRA = "_extra_state"


class _IncompatibleKeys(NamedTuple):
    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"_IncompatibleKeys(missing_keys={self.missing_keys!r}, "
            f"unexpected_keys={self.unexpected_keys!r})"
        )


class _PostHook:
    """A hook of register_state_dict_post_hook, which returns nothing."""

    def __init__(self, hook: Callable[..., Any]) -> None:
        self.hook = hook

    def __call__(self, *args: Any) -> None:
        replaced = self.hook(*args)
        if replaced is not None:
            raise RuntimeError(
                "register_state_dict_post_hook: expected a hook that returns None, got "
                f"{type(replaced).__name__}"
            )


class _WithModule(NamedTuple):
    """A hook that gets its module as well: not a partial, which would keep the module alive."""

    hook: Callable[..., Any]


class Stateful(Registry):
    """The part of Module that saves and restores its members; see Module."""

    _version = 1
    _state_dict_pre_hooks = HookDict(called=False)
    _state_dict_hooks = HookDict(called=False)
    _load_state_dict_pre_hooks = HookDict(called=False)
    _load_state_dict_post_hooks = HookDict(called=False)

    def get_extra_state(self) -> Any:
        """What a module saves beyond tensors; override together with set_extra_state."""
        raise NotImplementedError(f"{type(self).__name__}: expected get_extra_state, got none")

    def set_extra_state(self, state: Any) -> None:
        """Takes back what get_extra_state returned."""
        raise NotImplementedError(f"{type(self).__name__}: expected set_extra_state, got none")

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """All parameters and persistent buffers by dotted name.

        The tensors share memory with the module and are detached unless `keep_vars`. The
        attribute `_metadata` of the result has the version of each module's format.
        """
        if args:  # the old positional form: destination, prefix, keep_vars
            named = dict(zip(("destination", "prefix", "keep_vars"), args))
            destination = named.get("destination", destination)
            prefix, keep_vars = named.get("prefix", prefix), named.get("keep_vars", keep_vars)
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._state_hooks("_state_dict_pre_hooks"):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, child in self._own(MODULE):
            if child is not None:
                child.state_dict(
                    destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                )
        for hook in self._state_hooks("_state_dict_hooks"):
            replaced = hook(self, destination, prefix, metadata)
            destination = destination if replaced is None else replaced
        return destination

    def _state_hooks(self, kind: str) -> list[Any]:
        return list(self.__dict__.get(kind, {}).values())

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, prefix, keep_vars)` before state_dict reads this module."""
        return RemovableHandle.insert(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, state_dict, prefix, local_metadata)` after state_dict has read it.

        The hook may change the state_dict; RuntimeError from state_dict when it returns one.
        """
        return RemovableHandle.insert(self._state_dict_hooks, _PostHook(hook))

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """As register_state_dict_post_hook; what the hook returns replaces the state_dict."""
        return RemovableHandle.insert(self._state_dict_hooks, hook)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, tensor in self._own_state():
            destination[prefix + name] = tensor if keep_vars or is_lazy(tensor) else tensor.detach()
        if type(self).get_extra_state is not Stateful.get_extra_state:
            destination[prefix + _EXTRA] = self.get_extra_state()

    def _own_state(self) -> list[tuple[str, Tensor]]:
        skipped = self._non_persistent_buffers_set
        buffers = [(name, b) for name, b in self._own(BUFFER) if name not in skipped]
        return [(name, t) for name, t in self._own(PARAMETER) + buffers if t is not None]

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)`
        before this module reads its part of a state_dict."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        """As register_load_state_dict_pre_hook, without the module unless `with_module`."""
        entry = _WithModule(hook) if with_module else hook
        return RemovableHandle.insert(self._load_state_dict_pre_hooks, entry)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, incompatible_keys)` after load_state_dict has filled this module."""
        return RemovableHandle.insert(self._load_state_dict_post_hooks, hook)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copies the tensors of `state_dict` into this module and all below it.

        strict: missing or unexpected names raise RuntimeError; otherwise they are only returned.
        assign: takes the given tensors themselves instead of copying their values.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"load_state_dict: expected a dict, got {type(state_dict).__name__}")
        metadata = getattr(state_dict, "_metadata", None)
        state = OrderedDict(state_dict)
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []

        _load_tree(self, state, "", (metadata, assign, missing, unexpected, errors))
        if strict:
            if unexpected:
                errors.insert(0, f"Unexpected key(s) in state_dict: {_quoted(unexpected)}. ")
            if missing:
                errors.insert(0, f"Missing key(s) in state_dict: {_quoted(missing)}. ")
        if errors:
            listed = "\n\t".join(errors)
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{listed}"
            )
        return _IncompatibleKeys(missing, unexpected)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        for hook in self._state_hooks("_load_state_dict_pre_hooks"):
            call = functools.partial(hook.hook, self) if isinstance(hook, _WithModule) else hook
            call(
                state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                error_msgs,
            )  # fmt: skip
        assign = bool(local_metadata.get("assign_to_params_buffers"))
        for name, tensor in self._own_state():
            key = prefix + name
            if key not in state_dict:
                missing_keys.append(key)
                continue
            error = self._load_tensor(key, name, tensor, state_dict[key], assign)
            if error is not None:
                error_msgs.append(error)
        extra = prefix + _EXTRA
        if type(self).set_extra_state is not Stateful.set_extra_state:
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            else:
                missing_keys.append(extra)
        unexpected_keys.extend(self._unexpected(state_dict, prefix))

    def _unexpected(self, state_dict: Any, prefix: str) -> list[str]:
        """The keys under `prefix` that belong neither to this module nor to a child."""
        known = {name for name, _ in self._own_state()}
        known.update(name for name, child in self._own(MODULE) if child is not None)
        if type(self).set_extra_state is not Stateful.set_extra_state:
            known.add(_EXTRA)
        own = [key for key in state_dict if key.startswith(prefix)]
        children = {name for name, kind in self._kinds.items() if kind == MODULE}
        found = []
        for key in own:
            first, *rest = key[len(prefix) :].split(".", 1)
            if first not in known or (rest and first not in children):
                found.append(key)
        return found

    def _load_tensor(
        self, key: str, name: str, tensor: Tensor, given: Any, assign: bool
    ) -> str | None:
        """Fills one member; returns the message of what went wrong, or None."""
        if not isinstance(given, Tensor):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like '
                f"object from checkpoint but received {type(given)}"
            )
        if is_lazy(tensor) and is_lazy(given):
            return None
        if given.shape != tensor.shape:
            return (
                f"size mismatch for {key}: copying a param with shape {given.shape} from "
                f"checkpoint, the shape in current model is {tensor.shape}."
            )
        with no_grad():
            if not assign:
                return _copied(key, tensor, given)
            if isinstance(tensor, Parameter):
                if not isinstance(given, Parameter):
                    given = Parameter(given)
                given.requires_grad_(tensor.requires_grad)
            setattr(self, name, given)
        return None


def _load_tree(module: Any, state: dict[str, Any], prefix: str, options: tuple[Any, ...]) -> None:
    """Loads a module and those below it, each of which sees what is under its prefix."""
    metadata, assign, missing, unexpected, errors = options
    local = {} if metadata is None else dict(metadata.get(prefix[:-1], {}))
    local["assign_to_params_buffers"] = assign
    module._load_from_state_dict(state, prefix, local, True, missing, unexpected, errors)
    for name, child in module._own(MODULE):
        if child is not None:
            inner = f"{prefix}{name}."
            below = {key: value for key, value in state.items() if key.startswith(inner)}
            _load_tree(child, below, inner, options)
    keys = _IncompatibleKeys(missing, unexpected)
    for hook in module._state_hooks("_load_state_dict_post_hooks"):
        hook(module, keys)


def _copied(key: str, tensor: Tensor, given: Tensor) -> str | None:
    """Copies the values of one member; returns the message of what went wrong, or None."""
    if tensor.is_meta and not given.is_meta:
        warnings.warn(
            f"for {key}: copying to a meta tensor does nothing; did you mean assign=True, which "
            "takes the tensors of the state dict themselves?",
            stacklevel=2,
        )
    try:
        tensor.copy_(given)
    except Exception as error:
        return (
            f'While copying the parameter named "{key}", whose dimensions in the model are '
            f"{tensor.shape} and whose dimensions in the checkpoint are {given.shape}, an "
            f"exception occurred : {error.args}."
        )
    return None


def _quoted(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
