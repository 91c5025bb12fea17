"""Classes derived from ScriptModule, whose marked methods are compiled when an object is made."""

import copy
import dis
import importlib
import pkgutil
import subprocess
import sys
from types import FunctionType

import pytest

import weft
from weft import jit, nn
from weft.jit.frontend.types.module_types import _stored_by


class Scale(jit.ScriptModule):
    __constants__ = ("n",)

    def __init__(self, n=3):
        super().__init__()
        self.n = n
        self.linear = nn.Linear(2, 2)
        self.weight = nn.Parameter(weft.ones(2))

    @jit.script_method
    def forward(self, x):
        return self.shifted(x) * self.n

    @jit.script_method
    def shifted(self, x):
        return x + self.weight

    def in_python(self):
        return {self.n}


class Outer(Scale):
    def __init__(self):
        super().__init__(2)
        self.inner = Scale()

    @jit.script_method
    def both(self, x):
        return self.inner(x) + self.forward(x)


class Defined(jit.ScriptModule):
    def __init__(self, sign="*"):
        super().__init__()
        self.by = nn.Parameter(weft.tensor([2.0]))
        self.define(f"""
            def forward(self, x):
                return x {sign} self.by
        """)


class InPython(jit.ScriptModule):
    def forward(self, x):
        return {float(x)}


def test_marked_methods_are_programs_and_others_are_python():
    m = Scale()
    assert m(weft.ones(2)).tolist() == [6, 6] and m.shifted(weft.ones(2)).tolist() == [2, 2]
    assert "self.weight" in m.shifted.code and "shifted" in m.code and "mul" in str(m.graph)
    assert m.shifted.schema.name == "shifted"
    assert m.in_python() == {3}
    assert InPython()(weft.ones(1)) == {1.0}
    with pytest.raises(RuntimeError, match="n: expected an attribute that may change"):
        m.n = 4


def test_such_an_object_is_of_its_class_and_a_compiled_module():
    m = Outer()
    assert isinstance(m, Outer) and isinstance(m, jit.ScriptModule) and type(m).__name__ == "Outer"
    assert type(m) is type(Outer()) and type(m)().both(weft.ones(2)).tolist() == [10, 10]
    assert jit.script(m) is m
    assert repr(m).startswith("Outer(\n  (linear): RecursiveScriptModule(original_name=Linear)")
    assert repr(Scale()).startswith("Scale(\n")
    names = ["weight", "linear.weight", "linear.bias"]
    assert list(m.state_dict()) == [*names, *(f"inner.{name}" for name in names)]


def test_it_lives_as_other_modules_do():
    m = Scale()
    weft.optim.SGD(m.parameters(), 1.0).zero_grad()
    m(weft.ones(2)).sum().backward()
    assert m.weight.grad.tolist() == [3, 3]
    twin = copy.deepcopy(m)
    with weft.no_grad():
        twin.weight.zero_()
    assert twin(weft.ones(2)).tolist() == [3, 3] and m(weft.ones(2)).tolist() == [6, 6]
    assert twin.in_python() == {3}
    assert m.to(weft.float64)(weft.ones(2)).dtype == weft.float64
    assert m.eval().training is False
    m.remark = "kept"
    assert m.remark == "kept"

    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = m

        def forward(self, x):
            return self.scale(x)

    assert jit.script(Holder())(weft.ones(2)).tolist() == Holder()(weft.ones(2)).tolist() == [6, 6]


def test_methods_may_come_as_text():
    m = Defined()
    assert m(weft.ones(1)).item() == 2 and "self.by" in m.code
    assert Defined("-")(weft.ones(1)).item() == -1 and m(weft.ones(1)).item() == 2
    m.define("def twice(self, x):\n    return self.forward(self.forward(x))")
    assert m.twice(weft.ones(1)).item() == 4
    with pytest.raises(RuntimeError, match="define: expected a new method, got another twice"):
        m.define("def twice(self, x):\n    return x")


def test_a_program_that_does_not_compile_is_refused_when_the_object_is_made():
    class Wrong(jit.ScriptModule):
        @jit.script_method
        def forward(self, x):
            return {x}

    with pytest.raises(RuntimeError, match="sets"):
        Wrong()


def test_no_public_name_is_hidden_by_a_submodule():
    files = {each.name for each in pkgutil.iter_modules(jit.__path__)}
    for name in files:
        importlib.import_module(f"weft.jit.{name}")
    hidden = [name for name in jit.__all__ if isinstance(getattr(jit, name), type(sys))]
    assert hidden == []
    assert not files & set(jit._MODULE_OF)


def test_script_method_stays_a_decorator_after_the_first_class():
    text = "import weft; weft.jit.ScriptModule; assert callable(weft.jit.script_method)"
    subprocess.run([sys.executable, "-c", text], check=True)


def test_attributes_that_layers_set_are_those_that_dis_finds():
    """Their bytecode is read without dis, which takes ten times as long."""
    classes = [each for each in vars(nn.modules).values() if isinstance(each, type)]
    functions = [f for each in classes for f in vars(each).values() if isinstance(f, FunctionType)]
    assert len(functions) > 200
    for function in functions:
        found = {i.argval for i in dis.get_instructions(function) if i.opname == "STORE_ATTR"}
        assert set(_stored_by(function.__code__)) == found, function
