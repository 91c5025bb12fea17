"""Classes derived from ScriptModule: their objects are compiled when __init__ has returned."""

from __future__ import annotations

from typing import Any

import weft


class ScriptMeta(type):
    """The class of ScriptModule. A call of a derived class makes the module as __init__ says, then
    compiles the methods that @script_method marks and the texts given to define()."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        from weft.jit.script_module import RecursiveScriptModule, compile_in_place

        written = cls.__dict__.get("_written", cls)  # of a compiled object, its class in the source
        made = super(ScriptMeta, written).__call__(*args, **kwargs)
        if written is ScriptModule or issubclass(written, RecursiveScriptModule):
            return made
        return compile_in_place(made)


class ScriptModule(weft.nn.Module, metaclass=ScriptMeta):
    """Base of compiled modules, and of classes whose methods marked @script_method are compiled.

    >>> class Scale(ScriptModule):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.by = weft.nn.Parameter(weft.tensor([2.0]))
    ...         self.define("def forward(self, x):\\n    return x * self.by")
    >>> Scale()(weft.ones(1)).item()
    2.0
    """

    def define(self, src: str) -> None:
        """Compiles methods from a text, `def name(self, x: Tensor) -> Tensor: ...`, once the object
        is made."""
        self.__dict__.setdefault("_defined", []).append(src)
