"""PyInstaller's hook for weft.

weft imports most of itself at first use, where PyInstaller does not look, and compiles Python from
its source: its own, and that of the application's modules that import weft. So all of it goes in,
and those modules with their source. `hooksconfig={"weft": {"sources": False}}` in the Analysis of
the .spec file leaves the application's sources out.
"""

from pathlib import Path

from PyInstaller.log import getLogger
from PyInstaller.utils.hooks import (
    collect_data_files,
    collect_dynamic_libs,
    collect_submodules,
    get_hook_config,
)

hiddenimports = collect_submodules("weft", filter=lambda name: name != "weft._freezing")
binaries = collect_dynamic_libs("scipy_openblas32", destdir=".")  # loaded at its first use
datas = collect_data_files("weft", includes=["compat/names.txt"])
module_collection_mode = "pyz+py"


def hook(hook_api):
    """Adds the sources of what imports weft: modules, and the scripts that are run."""
    if get_hook_config(hook_api, "weft", "sources") is False:
        return
    users = sorted(hook_api.module_graph.get_code_using("weft"))
    for name in users:
        if Path(name).is_absolute():  # a script goes by its path
            hook_api.add_datas([(name, ".")])
        else:
            hook_api.set_module_collection_mode(name, "pyz+py")
    getLogger(__name__).info("with their sources, for weft.jit: %s", ", ".join(users))
