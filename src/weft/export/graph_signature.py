"""What the inputs and outputs of an exported graph stand for."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any


@dataclass
class TensorArgument:
    """A tensor, by the name of its node."""

    name: str


@dataclass
class TokenArgument:
    """An effect, by the name of its node."""

    name: str


@dataclass
class SymIntArgument:
    """An int that depends on sizes, by the name of its node."""

    name: str


@dataclass
class SymFloatArgument:
    """A float that depends on sizes, by the name of its node."""

    name: str


@dataclass
class SymBoolArgument:
    """A bool that depends on sizes, by the name of its node."""

    name: str


@dataclass
class CustomObjArgument:
    """An object of a class that a program registered."""

    name: str
    class_fqn: str
    fake_val: Any = None


@dataclass
class ConstantArgument:
    """A value that is the same in every call."""

    name: str
    value: int | float | bool | str | None


ArgumentSpec = (
    TensorArgument
    | SymIntArgument
    | SymFloatArgument
    | SymBoolArgument
    | ConstantArgument
    | CustomObjArgument
    | TokenArgument
)


class InputKind(enum.Enum):
    """Where an input comes from."""

    USER_INPUT = enum.auto()
    PARAMETER = enum.auto()
    BUFFER = enum.auto()
    CONSTANT_TENSOR = enum.auto()
    CUSTOM_OBJ = enum.auto()
    TOKEN = enum.auto()


class OutputKind(enum.Enum):
    """Where an output goes."""

    USER_OUTPUT = enum.auto()
    LOSS_OUTPUT = enum.auto()
    BUFFER_MUTATION = enum.auto()
    PARAMETER_MUTATION = enum.auto()
    GRADIENT_TO_PARAMETER = enum.auto()
    GRADIENT_TO_USER_INPUT = enum.auto()
    USER_INPUT_MUTATION = enum.auto()
    TOKEN = enum.auto()


def _text(arg: ArgumentSpec, kind: enum.Enum, target: str | None) -> str:
    name = arg.name or repr(arg.value if isinstance(arg, ConstantArgument) else "")
    return f"{name}: {kind.name}" + ("" if target is None else f" target={target!r}")


@dataclass
class InputSpec:
    """One input. `target`: the name in the module of what the program holds."""

    kind: InputKind
    arg: ArgumentSpec
    target: str | None
    persistent: bool | None = None

    def __str__(self) -> str:
        text = _text(self.arg, self.kind, self.target)
        return text if self.persistent is None else f"{text} persistent={self.persistent}"


@dataclass
class OutputSpec:
    """One output. `target`: the name of what it replaces."""

    kind: OutputKind
    arg: ArgumentSpec
    target: str | None

    def __str__(self) -> str:
        return _text(self.arg, self.kind, self.target)


@dataclass
class ExportGraphSignature:
    """The inputs of a graph in order (parameters, buffers, constants, then those of a call) and its
    outputs (values of buffers that the program changes, then results)."""

    input_specs: list[InputSpec] = field(default_factory=list)
    output_specs: list[OutputSpec] = field(default_factory=list)

    def _targets(self, *kinds: InputKind) -> tuple[str, ...]:
        return tuple(each.target or "" for each in self.input_specs if each.kind in kinds)

    def _inputs(self, kind: InputKind) -> Mapping[str, str]:
        found = (each for each in self.input_specs if each.kind is kind)
        return MappingProxyType({each.arg.name: each.target or "" for each in found})

    def _outputs(self, kind: OutputKind) -> Mapping[str, str]:
        found = (each for each in self.output_specs if each.kind is kind)
        return MappingProxyType({each.arg.name: each.target or "" for each in found})

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of parameters in the module."""
        return self._targets(InputKind.PARAMETER)

    @property
    def buffers(self) -> tuple[str, ...]:
        """Names of buffers in the module."""
        return self._targets(InputKind.BUFFER)

    @property
    def non_persistent_buffers(self) -> tuple[str, ...]:
        """Names of buffers that are not in the state dict."""
        found = (each for each in self.input_specs if each.persistent is False)
        return tuple(each.target or "" for each in found)

    @property
    def lifted_tensor_constants(self) -> tuple[str, ...]:
        """Names of tensors that are constants of the program."""
        return self._targets(InputKind.CONSTANT_TENSOR)

    @property
    def user_inputs(self) -> tuple[Any, ...]:
        """The inputs of a call: names, and values of constants."""
        found = (each.arg for each in self.input_specs if each.kind is InputKind.USER_INPUT)
        return _names(found)

    @property
    def user_outputs(self) -> tuple[Any, ...]:
        """The results: names, and values of constants."""
        found = (each.arg for each in self.output_specs if each.kind is OutputKind.USER_OUTPUT)
        return _names(found)

    @property
    def inputs_to_parameters(self) -> Mapping[str, str]:
        """The parameter of each input that is one."""
        return self._inputs(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> Mapping[str, str]:
        """The buffer of each input that is one."""
        return self._inputs(InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self) -> Mapping[str, str]:
        """The constant of each input that is one."""
        return self._inputs(InputKind.CONSTANT_TENSOR)

    @property
    def buffers_to_mutate(self) -> Mapping[str, str]:
        """The buffer that each such output replaces."""
        return self._outputs(OutputKind.BUFFER_MUTATION)

    @property
    def parameters_to_mutate(self) -> Mapping[str, str]:
        """The parameter that each such output replaces."""
        return self._outputs(OutputKind.PARAMETER_MUTATION)

    @property
    def user_inputs_to_mutate(self) -> Mapping[str, str]:
        """The input of the call that each such output replaces."""
        return self._outputs(OutputKind.USER_INPUT_MUTATION)

    def replace_all_uses(self, old: str, new: str) -> None:
        """Renames a node wherever it stands."""
        specs: list[InputSpec | OutputSpec] = [*self.input_specs, *self.output_specs]
        for each in specs:
            if each.arg.name == old:
                each.arg.name = new

    def __str__(self) -> str:
        inputs, outputs = ("\n".join(map(str, s)) for s in (self.input_specs, self.output_specs))
        return f"\n# inputs\n{inputs}\n\n# outputs\n{outputs}\n"


def _names(args: Iterable[ArgumentSpec]) -> tuple[Any, ...]:
    return tuple(each.value if isinstance(each, ConstantArgument) else each.name for each in args)
