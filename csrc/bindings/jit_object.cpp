// Instances of a program's classes, the classes, and futures, as Python objects.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/caster.h"
#include "bindings/jit.h"
#include "core/error.h"
#include "runtime/dict.h"
#include "runtime/future.h"
#include "runtime/list.h"
#include "runtime/print.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

const ProgramClass& class_of(const JitObject& self) {
  return *static_cast<const ProgramClass*>(self.object->def.get());
}

size_t slot_named(const ProgramClass& def, const std::string& name) {
  const int slot = def.find_slot(name);
  if (slot < 0) {
    const std::string text =
        weft::str("'", unqualified(def.name), "' object has no attribute '", name, "'");
    PyErr_SetObject(PyExc_AttributeError, Object::steal(from_text(text)).get());
    throw PythonError{};
  }
  return static_cast<size_t>(slot);
}

nb::object get_attribute(const JitObject& self, const std::string& name) {
  const size_t slot = slot_named(class_of(self), name);
  return nb::steal(from_value(Value(self.object->slots[slot])));
}

void set_attribute(const JitObject& self, const std::string& name, nb::handle object) {
  const ProgramClass& def = class_of(self);
  const size_t slot = slot_named(def, name);
  Value value;
  WEFT_CHECK_TYPE(to_value(*def.types[slot], object.ptr(), value), unqualified(def.name), ".", name,
                  ": expected a value of type ", def.types[slot]->str(), ", got ",
                  describe_object(object.ptr()));
  self.object->slots[slot] = std::move(value);
}

// The list or dict of a program with the contents of Python's.
Value container_of(nb::handle object) {
  Value value;
  WEFT_CHECK_TYPE(to_any_value(object.ptr(), value), "script: expected a list or dict of values ",
                  "that a program can hold, got ", describe_object(object.ptr()));
  if (value.tag() == ValueTag::List && list_len(value) == 0) return Value(TensorList{});
  return value;
}

// Gives a container the contents of another of its kind.
void replace_contents(const JitContainer& self, nb::handle object) {
  const Value other = container_of(object);
  const bool is_empty = is_list(other.tag()) && list_len(other) == 0;
  if (self.value.tag() == ValueTag::Dict && other.tag() == ValueTag::Dict) {
    DictObject& dict = *self.value.object<DictObject>();
    dict.clear();
    other.object<DictObject>()->for_each(
        [&](const Value& key, const Value& value) { dict.set(key, value); });
    return;
  }
  WEFT_CHECK_TYPE(is_empty || other.tag() == self.value.tag(), "expected the contents of a ",
                  type_name(self.value), ", got those of a ", type_name(other));
  visit_list(self.value, [&](auto& list) {
    using List = std::remove_reference_t<decltype(list)>;
    if (is_empty) {
      list.items.clear();
    } else {
      list.items = other.object<List>()->items;
    }
  });
}

nb::object wait(const JitFuture& self) {
  Value result;
  try {
    ReleaseGil release;
    result = self.future.object<FutureObject>()->wait();
  } catch (...) {
    translate_program_exception();
    throw PythonError{};
  }
  return nb::steal(from_value(std::move(result)));
}

}  // namespace

Ref<ClassObject> class_object(PyObject* object) {
  JitObject* known = nullptr;
  if (nb::try_cast(nb::handle(object), known) && known) return known->object;
  // A wrapper of one. Only classes written in Python can be.
  if (!(Py_TYPE(object)->tp_flags & Py_TPFLAGS_HEAPTYPE)) return nullptr;
  static PyObject* name = PyUnicode_InternFromString("_jit_object");
  const Object inner = Object::steal(PyObject_GetAttr(object, name));
  if (!inner) {
    PyErr_Clear();
    return nullptr;
  }
  if (nb::try_cast(nb::handle(inner.get()), known) && known) return known->object;
  return nullptr;
}

const Value* shared_container(PyObject* object) {
  if (!(Py_TYPE(object)->tp_flags & Py_TPFLAGS_HEAPTYPE)) return nullptr;
  static PyObject* name = PyUnicode_InternFromString("_jit_container");
  const Object inner = Object::steal(PyObject_GetAttr(object, name));
  if (!inner) PyErr_Clear();
  JitContainer* known = nullptr;
  const bool found = inner && nb::try_cast(nb::handle(inner.get()), known) && known;
  return found ? &known->value : nullptr;  // the wrapper holds it
}

// A class registered from Python makes its own wrapper.
PyObject* wrap_object(Ref<ClassObject> object) {
  PyObject* known = registered_type(object->def->name);
  Object made = Object::checked(nb::cast(JitObject{std::move(object)}).release().ptr());
  if (!known) return made.release();
  return Object::checked(PyObject_CallMethod(known, "_from_jit", "O", made.get())).release();
}

PyObject* wrap_class(Ref<ProgramClass> def) {
  return Object::checked(nb::cast(JitClass{std::move(def)}).release().ptr()).release();
}

PyObject* wrap_future(Value future) {
  return Object::checked(nb::cast(JitFuture{std::move(future)}).release().ptr()).release();
}

void bind_jit_objects(nb::module_& module) {
  nb::class_<JitObject>(module, "JitObject",
                        "An instance of a compiled class, shared by reference.")
      .def("__getattr__", get_attribute)
      .def("__setattr__", set_attribute, nb::arg("name"), nb::arg("value").none())
      .def(
          "__eq__",
          [](const JitObject& self, nb::handle other) {
            JitObject* object = nullptr;
            return nb::try_cast(other, object) && object && object->object == self.object;
          },
          nb::arg("other").none())
      .def("__hash__",
           [](const JitObject& self) { return reinterpret_cast<intptr_t>(self.object.get()) >> 4; })
      .def("__dir__", [](const JitObject& self) { return class_of(self).attributes; })
      .def("__repr__",
           [](const JitObject& self) {
             return weft::str("<JitObject of ", class_of(self).name, ">");
           })
      .def_prop_ro("_class", [](const JitObject& self) {
        return nb::steal(wrap_class(Ref<ProgramClass>(const_cast<ProgramClass*>(&class_of(self)))));
      });
  nb::class_<JitClass>(module, "JitClass", "A compiled class.")
      .def(
          "new",
          [](const JitClass& self) {
            return JitObject{make_ref<ClassObject>(Ref<ClassDef>(self.def))};
          },
          "A new instance; its attributes are not set.")
      .def_prop_ro("name", [](const JitClass& self) { return self.def->name; })
      .def_prop_ro("attributes", [](const JitClass& self) { return self.def->attributes; })
      .def_prop_ro("attribute_types",
                   [](const JitClass& self) {
                     std::vector<std::string> texts;
                     for (const Ref<Type>& type : self.def->types) texts.push_back(type->str());
                     return texts;
                   })
      .def(
          "__eq__",
          [](const JitClass& self, nb::handle other) {
            JitClass* known = nullptr;
            return nb::try_cast(other, known) && known && known->def == self.def;
          },
          nb::arg("other").none())
      .def("__hash__",
           [](const JitClass& self) { return reinterpret_cast<intptr_t>(self.def.get()) >> 4; });
  nb::class_<JitContainer>(module, "JitContainer", "A list or dict, shared by reference.")
      .def("__init__", [](JitContainer* self,
                          nb::handle object) { new (self) JitContainer{container_of(object)}; })
      .def(
          "read", [](const JitContainer& self) { return nb::steal(from_value(Value(self.value))); },
          "A copy of the contents.")
      .def("write", replace_contents, "Replaces the contents.");
  nb::class_<JitFuture>(module, "JitFuture", "The result of a forked call.")
      .def("wait", wait, "Blocks until there is a result; raises what the call raised.")
      .def("value", wait)
      .def("done",
           [](const JitFuture& self) { return self.future.object<FutureObject>()->done(); });
  module.attr("_jit_types") = nb::borrow(jit_types());
}

}  // namespace weft::py
