"""Styles that leave a module as it is, and say how its inputs and outputs lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.distributed.device_mesh import DeviceMesh
from weft.distributed.tensor.parallel.style import ParallelStyle, placed
from weft.distributed.tensor.placement_types import Placement
from weft.nn.modules.module import Module

Several = Placement | Sequence[Placement | None] | None


def _listed(given: Several) -> tuple[Placement | None, ...]:
    return (given,) if given is None or isinstance(given, Placement) else tuple(given)


def _paired(what: str, layouts: Several, desired: Several) -> list[tuple[Any, Any]]:
    """(as it lies, as it shall lie) for each of several tensors. ValueError for other numbers."""
    pairs = _listed(layouts), _listed(desired)
    if len(pairs[0]) != len(pairs[1]):
        raise ValueError(f"{what}: expected as many layouts as desired ones, got {pairs}")
    return list(zip(*pairs))


def _prepared(value: Any, mesh: DeviceMesh, pair: tuple[Any, Any], is_local: bool) -> Any:
    """A tensor as it shall lie; what has no layout stays as it is."""
    layout, desired = pair
    if layout is None:
        return value
    made = placed(value, mesh, [layout], [layout if desired is None else desired])
    return made.to_local() if is_local else made


class PrepareModuleInput(ParallelStyle):
    """The tensors that a module takes lie as `input_layouts`, and become DTensors (for
    use_local_output plain tensors of this process's part) that lie as `desired_input_layouts`; by
    name, for those of `input_kwarg_layouts`. None leaves an input as it is. ValueError where
    numbers of layouts differ."""

    def __init__(
        self,
        *,
        input_layouts: Several = None,
        desired_input_layouts: Several = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_output: bool = False,
    ) -> None:
        has = input_layouts is not None
        self.pairs = (
            _paired("PrepareModuleInput", input_layouts, desired_input_layouts) if has else []
        )
        named, desired = input_kwarg_layouts or {}, desired_input_kwarg_layouts or {}
        if named.keys() != desired.keys():
            raise ValueError(
                f"PrepareModuleInput: expected the same names, got {[*named]} and {[*desired]}"
            )
        self.named = {name: (layout, desired[name]) for name, layout in named.items()}
        self.use_local_output = use_local_output

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        def prepare(_: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if self.pairs and len(args) != len(self.pairs):
                raise ValueError(
                    f"PrepareModuleInput: expected {len(self.pairs)} inputs, got {len(args)}"
                )
            local = self.use_local_output
            made = [_prepared(x, device_mesh, p, local) for x, p in zip(args, self.pairs)]
            named = {
                name: _prepared(x, device_mesh, self.named.get(name, (None, None)), local)
                for name, x in kwargs.items()
            }
            return (tuple(made) if self.pairs else args), named

        module.register_forward_pre_hook(prepare, with_kwargs=True)
        return module


class PrepareModuleOutput(ParallelStyle):
    """The tensors that a module gives lie as `output_layouts`, and become DTensors that lie as
    `desired_output_layouts`; for use_local_output plain tensors of this process's part. ValueError
    where numbers of layouts differ."""

    def __init__(
        self,
        *,
        output_layouts: Several,
        desired_output_layouts: Several,
        use_local_output: bool = True,
    ) -> None:
        self.pairs = _paired("PrepareModuleOutput", output_layouts, desired_output_layouts)
        self.use_local_output = use_local_output

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        def prepare(_: Module, args: Any, output: Any) -> Any:
            outputs = output if isinstance(output, (tuple, list)) else (output,)
            if len(outputs) != len(self.pairs):
                raise ValueError(
                    f"PrepareModuleOutput: expected {len(self.pairs)} outputs, got {len(outputs)}"
                )
            local = self.use_local_output
            made = [_prepared(x, device_mesh, p, local) for x, p in zip(outputs, self.pairs)]
            return tuple(made) if isinstance(output, (tuple, list)) else made[0]

        module.register_forward_hook(prepare)
        return module


class PrepareModuleInputOutput(ParallelStyle):
    """PrepareModuleInput and PrepareModuleOutput of one module."""

    def __init__(
        self,
        *,
        input_layouts: Several = None,
        desired_input_layouts: Several = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_input: bool = False,
        output_layouts: Several,
        desired_output_layouts: Several,
        use_local_output: bool = True,
    ) -> None:
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts,
            desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        self.prepare_module_input._apply(module, device_mesh)
        return self.prepare_module_output._apply(module, device_mesh)
