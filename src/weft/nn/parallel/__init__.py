"""Modules over several devices or processes, of which there is one: they call what they hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from weft.distributed.groups import ProcessGroup, member
from weft.nn.modules.module import Module

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]


class DataParallel(Module):
    """Splits batches over devices. Without any, calls `module`, which is in the state's names.

    >>> list(weft.nn.parallel.DataParallel(weft.nn.Linear(1, 1)).state_dict())
    ['module.weight', 'module.bias']
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        self.module = module
        self.dim = dim
        self.device_ids: list[Any] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """module(*inputs, **module_kwargs): DataParallel as a function."""
    args = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    return module(*args, **(module_kwargs or {}))


class DistributedDataParallel(Module):
    """Averages gradients over the processes of a group, of which there is one: calls `module`.

    ValueError before init_process_group; RuntimeError where no parameter requires a gradient.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: ProcessGroup | None = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        **options: Any,
    ) -> None:
        super().__init__()
        self.process_group = member("DistributedDataParallel", process_group)
        if not any(parameter.requires_grad for parameter in module.parameters()):
            raise RuntimeError(
                "DistributedDataParallel: expected a parameter that requires a gradient, got none"
            )
        self.module = module
        self.dim = dim
        self.device_ids = None
        self.output_device = output_device
        self.broadcast_buffers = broadcast_buffers is not False
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.require_backward_grad_sync = True

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Gradients of backward in this context are not averaged yet."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    @contextmanager
    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, **_: Any
    ) -> Iterator[None]:
        """Lets processes have different numbers of batches."""
        yield

    def register_comm_hook(self, state: object, hook: Callable[[object, Any], Any]) -> None:
        """Keeps what would be called for each bucket of gradients: one process sends none."""
        if not callable(hook):
            raise TypeError(f"register_comm_hook: expected a callable, got {type(hook).__name__}")

    def set_static_graph(self) -> None:
        """Says that each step uses the same parameters."""
        self.static_graph = True
