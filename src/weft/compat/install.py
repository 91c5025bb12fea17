"""weft under the name torch: an import hook, and the names of PyTorch in weft's modules."""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.metadata
import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from weft import _C
from weft._runtime.public import weft
from weft.compat import names
from weft.compat.absent import is_mention, placeholder
from weft.compat.overlay.torch_version import __version__
from weft.library._overloads import set_absent

_OVERLAY = "weft.compat.overlay"
# Dtypes that every PyTorch has: programs ask for them by getattr and have no other way.
_UNPROBED = frozenset(("qint8", "qint32", "quint8", "quint2x4", "quint4x2"))

# What pickles of PyTorch name in modules that are weft's own.
_PICKLED = (
    "torch.storage._load_from_bytes",
    "torch.serialization._get_layout",
    "torch._tensor._rebuild_from_type_v2",
)


def source_of(name: str) -> str | None:
    """The module of weft behind a module of torch, None where weft has none.

    >>> source_of("torch.nn.functional"), source_of("torch.version")
    ('weft.nn.functional', 'weft.compat.overlay.version')
    """
    inner = name.removeprefix("torch")
    for root in (_OVERLAY, "weft"):
        if _spec(root + inner) is not None:
            return root + inner
    return None


def _spec(name: str) -> ModuleSpec | None:
    """As importlib.util.find_spec, but imports no packages on the way: those of torch are imported
    by their own names, so that theirs are added to them."""
    package = name.rpartition(".")[0]
    if package in ("", "weft"):
        return importlib.util.find_spec(name)
    above = _spec(package)
    if above is None or above.submodule_search_locations is None:
        return None
    locations = list(above.submodule_search_locations)
    found = (each.find_spec(name, locations) for each in sys.meta_path)
    return next((spec for spec in found if spec is not None), None)


_FUNCTORCH = ("functorch", "functorch.experimental", "functorch.experimental.control_flow")


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds torch.nn as weft.nn: the same module, so that classes and settings are the same.

    Modules of PyTorch that weft lacks are found as empty ones, whose names are placeholders.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: Any = None
    ) -> ModuleSpec | None:
        if fullname in _FUNCTORCH:
            file = Path(__file__).with_name("functorch.py")
            return importlib.util.spec_from_file_location(
                fullname, file, submodule_search_locations=[]
            )
        if not fullname.startswith("torch."):
            return None
        if not names.is_module(fullname) and source_of(fullname) is None:
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        source = source_of(spec.name)
        if source is None:
            module = ModuleType(spec.name, f"{spec.name}: names that weft has not yet.")
            module.__path__ = []
        else:
            module = importlib.import_module(source)
        spec.loader_state = module.__spec__
        _add_names(module, spec.name)
        self._keep_namesakes(module, spec.name)
        return module

    def _keep_namesakes(self, package: ModuleType, name: str) -> None:
        """Imports modules with the name of a function of their package (autograd.gradcheck)
        beforehand: a later import would put the module in the function's place."""
        for child in names.children(name):
            inner = f"{name}.{child}"
            value = vars(package).get(child)
            if value is None or isinstance(value, ModuleType) or inner in sys.modules:
                continue
            spec = ModuleSpec(inner, self, is_package=True)
            sys.modules[inner] = module = self.create_module(spec)
            module.__spec__ = module.__spec__ or spec

    def exec_module(self, module: ModuleType) -> None:
        spec: Any = module.__spec__  # that of the second name, which importing has set
        if spec.loader_state is not None:
            module.__spec__ = spec.loader_state

    def find_distributions(
        self, context: importlib.metadata.DistributionFinder.Context
    ) -> Iterator[importlib.metadata.Distribution]:
        """PyTorch as an installed package: libraries look for its version."""
        if context.name in (None, "torch"):
            yield _Distribution()


class _Distribution(importlib.metadata.Distribution):
    """The metadata of the PyTorch that weft answers for."""

    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: torch\nVersion: {__version__!s}\n"

    def locate_file(self, path: Any) -> Any:
        return Path(weft.__path__[0]) / path


def _add_names(module: ModuleType, name: str) -> None:
    """Lets a module answer for all names that PyTorch has in the module of that name."""
    before: Callable[[str], Any] | None = vars(module).get("__getattr__")
    if getattr(before, "__torch_name__", None) == name:
        return

    def __getattr__(wanted: str) -> Any:
        try:
            return _found(name, wanted, before)
        except LookupError:
            if wanted in names.names(name) and (is_mention() or wanted in _UNPROBED):
                return placeholder(names.names(name)[wanted])
            raise AttributeError(f"module {name!r} has no attribute {wanted!r}") from None

    __getattr__.__torch_name__ = name  # type: ignore[attr-defined]
    __getattr__.__before__ = before  # type: ignore[attr-defined]
    vars(module)["__getattr__"] = __getattr__
    for child in names.children(name):  # those that weft imported itself are its attributes
        inner = vars(module).get(child)
        if isinstance(inner, ModuleType) and inner.__name__ == f"{module.__name__}.{child}":
            _add_names(inner, f"{name}.{child}")


def _found(module: str, wanted: str, before: Callable[[str], Any] | None) -> Any:
    """What a name stands for beyond the variables of its module. LookupError: nothing."""
    if before is not None:
        try:
            value = before(wanted)
        except AttributeError:
            pass
        else:
            if not (isinstance(value, ModuleType) and names.is_module(f"{module}.{wanted}")):
                return value
    if wanted in names.names(module):
        owner, name = _owner(names.names(module)[wanted])
        if owner is not None:
            return _own(owner, name)
    inner = f"{module}.{wanted}"
    home = "torch._utils" if inner in _PICKLED else inner
    if names.is_module(home) or (not wanted.startswith("__") and _is_source(home)):
        found = importlib.import_module(home)
        return found if home is inner else getattr(found, wanted)
    raise LookupError(wanted)


@functools.cache
def _owner(home: str) -> tuple[ModuleType | None, str]:
    """A module of weft at one of the places where PyTorch has the same object, and its name there.

    >>> _owner("torch.nn.Linear")[0].__name__
    'weft.nn'
    """
    for place in (home, *names.locations(home)):
        module, _, name = place.rpartition(".")
        source = source_of(module)
        if source is None:
            continue
        found = importlib.import_module(source)
        if module != "torch":
            _add_names(found, module)  # its package has it as an attribute from now on
        if is_own(found, name):
            return found, name
    return None, ""


def is_own(module: ModuleType, name: str) -> bool:
    """Whether weft itself defines the name in a module, perhaps at its first use."""
    try:
        _own(module, name)
    except AttributeError:
        return False
    return True


def _own(module: ModuleType, name: str) -> Any:
    """The value of a name of weft, without what _add_names lets the module answer."""
    if name in vars(module):
        return vars(module)[name]
    lazy = vars(module).get("__getattr__")
    lazy = getattr(lazy, "__before__", lazy)
    if lazy is None:
        raise AttributeError(name)
    return lazy(name)


def _is_source(name: str) -> bool:
    """Whether weft has a module of its own for this private or newer one of torch."""
    return (source_of(name) or "").startswith(_OVERLAY)


def _root() -> ModuleType:
    """The module torch: weft's names, and the version of PyTorch instead of weft's."""
    root = ModuleType("torch", weft.__doc__)
    own = {name: value for name, value in vars(weft).items() if not name.startswith("__")}
    # Modules of torch are imported by their own names, so that theirs are added to them.
    vars(root).update({k: v for k, v in own.items() if not isinstance(v, ModuleType)})
    root.__dict__.update(
        torch=root,  # as in PyTorch
        __version__=__version__,
        __all__=weft.__all__,
        __file__=weft.__file__,
        __path__=list(weft.__path__),
        __getattr__=_from_weft,
    )
    return root


def _from_weft(wanted: str) -> Any:
    """A name that weft imports when it is first used. Kept, as weft keeps it."""
    value = getattr(weft, wanted)
    if isinstance(value, ModuleType):
        return importlib.import_module(f"torch.{wanted}")
    setattr(sys.modules["torch"], wanted, value)
    return value


def _absent_operator(place: str) -> Any:
    """A placeholder for an operator of PyTorch, "torch.ops.aten.convolution", where a library
    mentions it: tables of operators are made when their module is imported."""
    return placeholder(place) if place.startswith("torch.ops.aten.") and is_mention(3) else None


def _rename_initialisers() -> None:
    """Lets `func.__module__` say torch.nn.init, by which modes know what they leave out."""
    for value in vars(weft.nn.init).values():
        if isinstance(value, _C._Overridable):
            value.__module__ = "torch.nn.init"


def _rename_types(modules: Iterable[ModuleType]) -> None:
    """Lets `type(x).__module__` begin with torch, by which some libraries know tensors."""
    for module in modules:
        for value in list(vars(module).values()):
            if isinstance(value, type) and value.__module__ == module.__name__:
                value.__module__ = "torch" + module.__name__.removeprefix("weft")


def install_as_torch() -> None:
    """Makes `import torch`, here and in every library, mean weft for the rest of the process.

    Each public module of PyTorch 2.13 can be imported. A name in it is weft's, or a placeholder
    that raises NotImplementedError when it is used. `torch.__version__` is PyTorch's, and
    `type(x).__module__` of tensors, parameters, dtypes and devices begins with "torch". Pickles of
    this process name torch, too: what reads them needs this call as well. A second call does
    nothing.

    RuntimeError when PyTorch itself is imported already.

    >>> weft.install_as_torch()  # doctest: +SKIP
    >>> import torch.nn.functional as F  # doctest: +SKIP
    """
    known = sys.modules.get("torch")
    if known is not None and vars(known).get("__version__") is __version__:
        return
    stub = Path(__file__).parent / "path" / "torch.py"
    if known is not None and getattr(known, "__file__", None) != str(stub):
        raise RuntimeError("install_as_torch: expected torch not to be imported yet, got PyTorch")
    finder, root = _Finder(), _root()
    _add_names(root, "torch")
    root.__spec__ = ModuleSpec("torch", finder, origin=weft.__file__, is_package=True)
    sys.modules["torch"] = root
    sys.meta_path.insert(0, finder)
    _rename_types((weft, weft.nn.parameter))
    _rename_initialisers()
    set_absent(_absent_operator)
