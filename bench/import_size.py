"""Import time, modules and installed size."""

from bench.case import Group, Probe

group = Group("import_size")

_IMPORT = """
import time
start = time.perf_counter()
import {library}
print(time.perf_counter() - start)
"""

_MODULES = """
import sys
before = len(sys.modules)
import {library}
print(len(sys.modules) - before)
"""

_SIZE = """
import importlib.util, os
def size(name):
    spec = importlib.util.find_spec(name)
    folder = spec.submodule_search_locations[0] if spec else ""
    walk = os.walk(folder)
    return sum(os.lstat(os.path.join(at, f)).st_size for at, _, files in walk for f in files)
needs = ["scipy_openblas32"] if "{library}" == "weft" else []
print(sum(size(name) for name in ["{library}", *needs]) / 2**20)
"""

group.cases += [
    Probe("import", _IMPORT, "s", runs=3),
    Probe("modules imported", _MODULES, "modules"),
    Probe("installed size with BLAS", _SIZE, "MB"),
]
