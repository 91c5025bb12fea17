"""weft.jit: programs from Python source, that run without Python.

script(f)     compiles a function, a module or a class from its source
trace(f, x)   runs a function or a module and compiles what ran
freeze(m)     makes what a compiled module holds constants of its program
load(f)       compiles an archive, which PyTorch may have saved
save(m, f)    writes an archive, which PyTorch loads too
aot_compile(m, f)
              writes a compiled file, which C and C++ programs run without Python
register_operator(name, f)
              gives an operator that archives call a function
ignore, unused, export, annotate, isinstance, interface, Final, Attribute
              what programs are written with
"""

from typing import TYPE_CHECKING, Any

from weft._runtime import lazy as _lazy
from weft.jit.script import CompilationUnit, ScriptFunction, script

if TYPE_CHECKING:
    from weft.jit.aot.compile import aot_compile
    from weft.jit.archive.load import load
    from weft.jit.archive.registry import register_operator
    from weft.jit.archive.writer import save
    from weft.jit.execution import stats
    from weft.jit.frontend.source.errors import FrontendError, NotSupportedError
    from weft.jit.frozen import freeze, optimize_for_inference, run_frozen_optimizations
    from weft.jit.futures import Future, _fork, _wait, fork, wait
    from weft.jit.markers import (
        Attribute,
        Final,
        _copy_to_script_wrapper,
        _overload,
        _overload_method,
        _unwrap_optional,
        annotate,
        export,
        ignore,
        interface,
        is_scripting,
        is_tracing,
        isinstance,
        script_method,
        unused,
    )
    from weft.jit.planning import MemoryPlan, memory_plan
    from weft.jit.script_module import RecursiveScriptModule, ScriptModule
    from weft.jit.settings import (
        Error,
        _script_if_tracing,
        enable_onednn_fusion,
        export_opnames,
        fuser,
        onednn_fusion_enabled,
        optimized_execution,
        script_if_tracing,
        set_fusion_strategy,
    )
    from weft.jit.tracing.checks import TracingCheckError
    from weft.jit.tracing.modules import TopLevelTracedModule
    from weft.jit.tracing.source_locations import TracerWarning
    from weft.jit.tracing.trace import trace, trace_module

# Modules, and tracing them: importing them imports weft.nn. And what many programs do without.
_MODULE_OF = {
    name: f"weft.jit.{module}"
    for module, names in {
        "aot.compile": ("aot_compile",),
        "archive.load": ("load",),
        "archive.registry": ("register_operator",),
        "archive.writer": ("save",),
        "execution": ("stats",),
        "frontend.source.errors": ("FrontendError", "NotSupportedError"),
        "frozen": ("freeze", "optimize_for_inference", "run_frozen_optimizations"),
        "futures": ("Future", "_fork", "_wait", "fork", "wait"),
        "markers": (
            "Attribute",
            "Final",
            "_copy_to_script_wrapper",
            "_overload",
            "_overload_method",
            "_unwrap_optional",
            "annotate",
            "export",
            "ignore",
            "interface",
            "is_scripting",
            "is_tracing",
            "isinstance",
            "script_method",
            "unused",
        ),
        "planning": ("MemoryPlan", "memory_plan"),
        "script_module": ("RecursiveScriptModule", "ScriptModule"),
        "settings": (
            "Error",
            "_script_if_tracing",
            "enable_onednn_fusion",
            "export_opnames",
            "fuser",
            "onednn_fusion_enabled",
            "optimized_execution",
            "script_if_tracing",
            "set_fusion_strategy",
        ),
        "tracing.checks": ("TracingCheckError",),
        "tracing.modules": ("TopLevelTracedModule",),
        "tracing.source_locations": ("TracerWarning",),
        "tracing.trace": ("trace", "trace_module"),
    }.items()
    for name in names
}


# What torch.jit has and weft.jit has not, and what to use instead.
_ABSENT = {
    "last_executed_optimized_graph": "program.graph_for(*args) is the optimised graph of a call",
    "strict_fusion": "weft.jit.stats() tells what was fused",
}


def __getattr__(name: str) -> Any:
    if name in _ABSENT:
        raise AttributeError(f"weft.jit has no {name}: {_ABSENT[name]}", name=name)
    return _lazy.find("weft.jit", name, _MODULE_OF.get(name))


__all__ = [
    "Attribute",
    "CompilationUnit",
    "Error",
    "Final",
    "FrontendError",
    "Future",
    "MemoryPlan",
    "NotSupportedError",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "TopLevelTracedModule",
    "TracerWarning",
    "TracingCheckError",
    "_copy_to_script_wrapper",
    "_fork",
    "_overload",
    "_overload_method",
    "_script_if_tracing",
    "_unwrap_optional",
    "_wait",
    "annotate",
    "aot_compile",
    "enable_onednn_fusion",
    "export",
    "export_opnames",
    "fork",
    "freeze",
    "fuser",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "memory_plan",
    "onednn_fusion_enabled",
    "optimize_for_inference",
    "optimized_execution",
    "register_operator",
    "run_frozen_optimizations",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "set_fusion_strategy",
    "stats",
    "trace",
    "trace_module",
    "unused",
    "wait",
]
