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
from weft.jit.script import CompilationUnit as CompilationUnit
from weft.jit.script import ScriptFunction as ScriptFunction
from weft.jit.script import script as script

if TYPE_CHECKING:
    from weft.jit.aot.compile import aot_compile as aot_compile
    from weft.jit.archive.load import load as load
    from weft.jit.archive.registry import register_operator as register_operator
    from weft.jit.archive.writer import save as save
    from weft.jit.execution import stats as stats
    from weft.jit.frontend.source.errors import FrontendError as FrontendError
    from weft.jit.frontend.source.errors import NotSupportedError as NotSupportedError
    from weft.jit.frozen import freeze as freeze
    from weft.jit.frozen import optimize_for_inference as optimize_for_inference
    from weft.jit.frozen import run_frozen_optimizations as run_frozen_optimizations
    from weft.jit.futures import Future as Future
    from weft.jit.futures import _fork as _fork
    from weft.jit.futures import _wait as _wait
    from weft.jit.futures import fork as fork
    from weft.jit.futures import wait as wait
    from weft.jit.markers import Attribute as Attribute
    from weft.jit.markers import Final as Final
    from weft.jit.markers import _copy_to_script_wrapper as _copy_to_script_wrapper
    from weft.jit.markers import _overload as _overload
    from weft.jit.markers import _overload_method as _overload_method
    from weft.jit.markers import _unwrap_optional as _unwrap_optional
    from weft.jit.markers import annotate as annotate
    from weft.jit.markers import export as export
    from weft.jit.markers import ignore as ignore
    from weft.jit.markers import interface as interface
    from weft.jit.markers import is_scripting as is_scripting
    from weft.jit.markers import is_tracing as is_tracing
    from weft.jit.markers import isinstance as isinstance
    from weft.jit.markers import script_method as script_method
    from weft.jit.markers import unused as unused
    from weft.jit.planning import MemoryPlan as MemoryPlan
    from weft.jit.planning import memory_plan as memory_plan
    from weft.jit.script_module import RecursiveScriptModule as RecursiveScriptModule
    from weft.jit.script_module import ScriptModule as ScriptModule
    from weft.jit.settings import Error as Error
    from weft.jit.settings import _script_if_tracing as _script_if_tracing
    from weft.jit.settings import enable_onednn_fusion as enable_onednn_fusion
    from weft.jit.settings import export_opnames as export_opnames
    from weft.jit.settings import fuser as fuser
    from weft.jit.settings import onednn_fusion_enabled as onednn_fusion_enabled
    from weft.jit.settings import optimized_execution as optimized_execution
    from weft.jit.settings import script_if_tracing as script_if_tracing
    from weft.jit.settings import set_fusion_strategy as set_fusion_strategy
    from weft.jit.tracing.checks import TracingCheckError as TracingCheckError
    from weft.jit.tracing.modules import TopLevelTracedModule as TopLevelTracedModule
    from weft.jit.tracing.source_locations import TracerWarning as TracerWarning
    from weft.jit.tracing.trace import trace as trace
    from weft.jit.tracing.trace import trace_module as trace_module

# Modules, and tracing them: importing them imports weft.nn. And what many programs do without.
_MODULE_OF = {
    name: f"weft.jit.{module}"
    for module, names in {
        "aot.compile": "aot_compile",
        "archive.load": "load",
        "archive.registry": "register_operator",
        "archive.writer": "save",
        "execution": "stats",
        "frontend.source.errors": "FrontendError NotSupportedError",
        "frozen": "freeze optimize_for_inference run_frozen_optimizations",
        "futures": "Future _fork _wait fork wait",
        "markers": "Attribute Final _copy_to_script_wrapper _overload _overload_method "
        "_unwrap_optional annotate export ignore interface is_scripting is_tracing isinstance "
        "script_method unused",
        "planning": "MemoryPlan memory_plan",
        "script_module": "RecursiveScriptModule ScriptModule",
        "settings": "Error _script_if_tracing enable_onednn_fusion export_opnames fuser "
        "onednn_fusion_enabled optimized_execution script_if_tracing set_fusion_strategy",
        "tracing.checks": "TracingCheckError",
        "tracing.modules": "TopLevelTracedModule",
        "tracing.source_locations": "TracerWarning",
        "tracing.trace": "trace trace_module",
    }.items()
    for name in names.split()
}
if not TYPE_CHECKING:  # a checker knows what is public by `as`
    __all__ = sorted(("CompilationUnit", "ScriptFunction", "script", *_MODULE_OF))


# What torch.jit has and weft.jit has not, and what to use instead.
_ABSENT = {
    "last_executed_optimized_graph": "program.graph_for(*args) is the optimised graph of a call",
    "strict_fusion": "weft.jit.stats() tells what was fused",
}


def __getattr__(name: str) -> Any:
    if name in _ABSENT:
        raise AttributeError(f"weft.jit has no {name}: {_ABSENT[name]}", name=name)
    return _lazy.find("weft.jit", name, _MODULE_OF.get(name))
