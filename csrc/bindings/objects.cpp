// dtype, device, layout, memory format and Generator: the small objects that Python sees.
#include "bindings/objects.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "bindings/caster.h"
#include "bindings/trace.h"
#include "core/error.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

struct DTypeObject {
  DType dtype;
};
struct LayoutObject {
  const char* name;
};
struct MemoryFormatObject {
  int64_t code;
  const char* name;
};
struct GeneratorObject {
  Ref<Generator> generator;
};

PyObject* dtype_objects[kDTypeCount];
PyTypeObject* dtype_type = nullptr;
PyTypeObject* device_type = nullptr;
PyTypeObject* layout_type = nullptr;
PyTypeObject* memory_format_type = nullptr;
PyTypeObject* generator_type = nullptr;
PyObject* cpu_object = nullptr;
PyObject* strided = nullptr;

// Shown to users as weft.dtype, not weft._C.dtype.
template <class T>
PyTypeObject* publish(nb::class_<T>& type) {
  type.attr("__module__") = "weft";
  return reinterpret_cast<PyTypeObject*>(type.ptr());
}

void bind_dtype(nb::module_& module) {
  nb::class_<DTypeObject> type(module, "dtype", "The element type of a tensor.");
  type.def("__repr__",
           [](const DTypeObject& self) { return str("torch.", dtype_name(self.dtype)); })
      // Pickled by name: weft.float32.
      .def("__reduce__",
           [](const DTypeObject& self) { return std::string(dtype_name(self.dtype)); })
      .def("__copy__", [](nb::handle self) { return nb::borrow(self); })
      .def("__deepcopy__", [](nb::handle self, nb::handle) { return nb::borrow(self); })
      .def("to_real", [](const DTypeObject& self) { return real_of(self.dtype); })
      .def("to_complex",
           [](const DTypeObject& self) {
             WEFT_CHECK(has_complex(self.dtype),
                        "to_complex: expected a floating or complex dtype "
                        "of 2 bytes or more, got ",
                        self.dtype);
             return complex_of(self.dtype);
           })
      .def_prop_ro("_number", [](const DTypeObject& self) { return info_of(self.dtype).number; })
      .def_prop_ro(
          "_safetensors",
          [](const DTypeObject& self) { return std::string(info_of(self.dtype).safetensors); })
      .def_prop_ro("itemsize", [](const DTypeObject& self) { return item_size(self.dtype); })
      .def_prop_ro("is_floating_point",
                   [](const DTypeObject& self) { return is_floating(self.dtype); })
      .def_prop_ro("is_complex", [](const DTypeObject& self) { return is_complex(self.dtype); })
      .def_prop_ro("is_signed", [](const DTypeObject& self) {
        DType d = self.dtype;
        return !(d == DType::Bool || d == DType::U8 || d == DType::U16 || d == DType::U32 ||
                 d == DType::U64);
      });
  dtype_type = publish(type);
  nb::list every;
  for (int i = 0; i < kDTypeCount; ++i) {
    auto dtype = static_cast<DType>(i);
    dtype_objects[i] = nb::cast(DTypeObject{dtype}).release().ptr();
    make_immortal(dtype_objects[i]);
    module.attr(std::string(dtype_name(dtype)).c_str()) = nb::handle(dtype_objects[i]);
    every.append(nb::handle(dtype_objects[i]));
  }
  module.attr("_dtypes") = nb::tuple(every);
  constexpr std::pair<const char*, DType> kShortNames[] = {
      {"half", DType::F16},   {"float", DType::F32},    {"double", DType::F64},
      {"short", DType::I16},  {"int", DType::I32},      {"long", DType::I64},
      {"cfloat", DType::C64}, {"cdouble", DType::C128}, {"chalf", DType::C32},
  };
  for (auto [name, dtype] : kShortNames) module.attr(name) = nb::handle(dtype_object(dtype));
}

Device make_device(nb::object what, nb::object index) {
  Device device;
  WEFT_CHECK_TYPE(to_device(what.ptr(), &device), "device: expected a device or a str, got ",
                  short_type_name(what.ptr()));
  if (!index.is_none()) {
    int64_t number;
    WEFT_CHECK_TYPE(to_int(index.ptr(), &number), "device: expected index of type int, got ",
                    short_type_name(index.ptr()));
    WEFT_CHECK(number >= 0 && number < 128, "device: expected index in [0, 127], got ", number);
    device.index = static_cast<int8_t>(number);
  }
  return device;
}

std::string device_kind(Device device) {
  std::string text = Device{device.type, -1}.str();
  return text;
}

void bind_device(nb::module_& module) {
  nb::class_<Device> type(module, "device", "Where a tensor lives: device(\"cpu\").");
  type.def(
          "__init__",
          [](Device* self, nb::object what, nb::object index) {
            new (self) Device(make_device(what, index));
          },
          nb::arg("type"), nb::arg("index") = nb::none())
      .def("__repr__",
           [](nb::handle self) {
             Device device = *nb::inst_ptr<Device>(self);
             std::string text = str("device(type='", device_kind(device), "'");
             if (device.index >= 0) text += str(", index=", int{device.index});
             return text + ")";
           })
      .def("__str__", [](nb::handle self) { return nb::inst_ptr<Device>(self)->str(); })
      .def(
          "__eq__",
          [](nb::handle self, nb::handle other) {
            if (Py_TYPE(other.ptr()) != device_type) return false;
            return *nb::inst_ptr<Device>(self) == *nb::inst_ptr<Device>(other);
          },
          nb::arg("other").none())
      .def("__hash__",
           [](nb::handle self) {
             Device device = *nb::inst_ptr<Device>(self);
             return static_cast<int64_t>(device.type) * 1000 + device.index + 1;
           })
      .def("__reduce__",
           [](nb::handle self) {
             return nb::make_tuple(self.type(), nb::make_tuple(nb::inst_ptr<Device>(self)->str()));
           })
      .def_prop_ro("type", [](nb::handle self) { return device_kind(*nb::inst_ptr<Device>(self)); })
      .def_prop_ro("index", [](nb::handle self) -> nb::object {
        int8_t index = nb::inst_ptr<Device>(self)->index;
        return index < 0 ? nb::none() : nb::cast(int{index});
      });
  device_type = publish(type);
  cpu_object = nb::inst_alloc(type).release().ptr();
  new (nb::inst_ptr<Device>(cpu_object)) Device();
  nb::inst_mark_ready(cpu_object);
  make_immortal(cpu_object);
}

void bind_layouts(nb::module_& module) {
  nb::class_<LayoutObject> layout(module, "layout");
  layout.def("__repr__", [](const LayoutObject& self) { return str("torch.", self.name); })
      .def("__reduce__", [](const LayoutObject& self) { return std::string(self.name); });
  layout_type = publish(layout);
  for (const char* name : {"strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr",
                           "sparse_bsc", "jagged"}) {
    module.attr(name) = nb::cast(LayoutObject{name});
  }
  strided = nb::object(module.attr("strided")).release().ptr();

  nb::class_<MemoryFormatObject> format(module, "memory_format");
  format.def("__repr__", [](const MemoryFormatObject& self) { return str("torch.", self.name); })
      .def("__reduce__", [](const MemoryFormatObject& self) { return std::string(self.name); });
  memory_format_type = publish(format);
  nb::list formats;  // by their numbers
  for (const char* name : kMemoryFormats) {
    formats.append(MemoryFormatObject{static_cast<int64_t>(nb::len(formats)), name});
    module.attr(name) = formats[nb::len(formats) - 1];
  }
  module.attr("_memory_formats") = nb::tuple(formats);
}

// ---- Generator ----

// PyTorch takes seeds from [-2**63, 2**64) and adds 2**64 to negative ones.
uint64_t seed_of(nb::handle seed) {
  Object index = Object::steal(PyNumber_Index(seed.ptr()));
  if (!index) {
    PyErr_Clear();
    fail(ErrorKind::Type, str("manual_seed: expected an int, got ", short_type_name(seed.ptr())));
  }
  int overflow = 0;
  int64_t value = PyLong_AsLongLongAndOverflow(index.get(), &overflow);
  if (overflow == 0) return static_cast<uint64_t>(value);
  uint64_t large = overflow > 0 ? PyLong_AsUnsignedLongLong(index.get()) : 0;
  if (overflow < 0 || PyErr_Occurred()) {
    PyErr_Clear();
    Object text = Object::checked(PyObject_Str(index.get()));
    fail(ErrorKind::Value,
         str("manual_seed: expected a seed in [-2**63, 2**64 - 1], got ", utf8(text.get())));
  }
  return large;
}

Tensor state_of(Generator& generator) {
  std::lock_guard lock(generator);
  auto bytes = generator.state();
  Tensor state = Tensor::empty(Dims{static_cast<int64_t>(bytes.size())}, DType::U8);
  std::memcpy(state.data(), bytes.data(), bytes.size());
  return state;
}

void set_state(Generator& generator, const Tensor& state) {
  WEFT_CHECK_TYPE(state.dtype() == DType::U8 && state.is_contiguous(),
                  "set_state: expected a contiguous uint8 tensor, got ", state.dtype());
  std::lock_guard lock(generator);
  generator.set_state({state.data_as<const std::byte>(), static_cast<size_t>(state.numel())});
}

void manual_seed(Generator& generator, nb::handle seed) {
  uint64_t value = seed_of(seed);
  std::lock_guard lock(generator);
  generator.manual_seed(value);
}

void bind_generator(nb::module_& module) {
  nb::class_<GeneratorObject> type(module, "Generator", "A stream of random numbers (mt19937).");
  type.def(
          "__init__",
          [](GeneratorObject* self, nb::object device) {
            const Device place = check_available("Generator", make_device(device, nb::none()));
            WEFT_CHECK(place.type == DeviceType::CPU, "Generator: expected device cpu, got ",
                       place);
            new (self) GeneratorObject{make_ref<Generator>()};
          },
          nb::arg("device") = "cpu")
      .def(
          "manual_seed",
          [](nb::object self, nb::handle seed) {
            manual_seed(*nb::cast<GeneratorObject&>(self).generator, seed);
            return self;
          },
          nb::arg("seed"), "Sets the seed; gives the generator back.")
      .def(
          "seed",
          [](GeneratorObject& self) {
            std::lock_guard lock(*self.generator);
            return self.generator->seed();
          },
          "Seeds from the system's entropy; gives the seed.")
      .def("initial_seed", [](GeneratorObject& self) { return self.generator->initial_seed(); })
      .def(
          "get_state", [](GeneratorObject& self) { return state_of(*self.generator); },
          "The state as a uint8 tensor.")
      .def(
          "set_state",
          [](nb::object self, const Tensor& state) {
            set_state(*nb::cast<GeneratorObject&>(self).generator, state);
            return self;
          },
          nb::arg("new_state"))
      .def_prop_ro("device", [](GeneratorObject&) { return Device(); });
  generator_type = publish(type);
  nb::object standard = nb::cast(GeneratorObject{default_generator()});
  module.attr("default_generator") = standard;
  module.def(
      "manual_seed",
      [standard](nb::handle seed) {
        if (tracing()) {
          Object::checked(trace_override("weft.manual_seed", {seed.ptr(), nullptr, 0}));
        } else {
          manual_seed(*default_generator(), seed);
        }
        return standard;
      },
      nb::arg("seed"), "Seeds the default generator and gives it back.");
  module.def("initial_seed", [] { return default_generator()->initial_seed(); });
  module.def("seed", [] {
    std::lock_guard lock(*default_generator());
    return default_generator()->seed();
  });
  module.def("get_rng_state", [] { return state_of(*default_generator()); });
  module.def(
      "set_rng_state", [](const Tensor& state) { set_state(*default_generator(), state); },
      nb::arg("new_state"));
}

}  // namespace

PyObject* dtype_object(DType dtype) { return dtype_objects[static_cast<int>(dtype)]; }
PyObject* strided_object() { return strided; }

bool to_dtype(PyObject* object, DType* dtype) {
  if (Py_TYPE(object) == dtype_type) {
    *dtype = nb::inst_ptr<DTypeObject>(object)->dtype;
  } else if (object == reinterpret_cast<PyObject*>(&PyFloat_Type)) {
    *dtype = DType::F64;
  } else if (object == reinterpret_cast<PyObject*>(&PyLong_Type)) {
    *dtype = DType::I64;
  } else if (object == reinterpret_cast<PyObject*>(&PyBool_Type)) {
    *dtype = DType::Bool;
  } else if (object == reinterpret_cast<PyObject*>(&PyComplex_Type)) {
    *dtype = DType::C128;
  } else {
    return false;
  }
  return true;
}

PyObject* wrap_device(Device device) {
  if (device == Device{}) return new_ref(cpu_object);
  nb::object object = nb::inst_alloc(nb::handle(reinterpret_cast<PyObject*>(device_type)));
  new (nb::inst_ptr<Device>(object)) Device(device);
  nb::inst_mark_ready(object);
  return object.release().ptr();
}

bool to_device(PyObject* object, Device* device) {
  if (Py_TYPE(object) == device_type) {
    *device = *nb::inst_ptr<Device>(object);
  } else if (PyUnicode_Check(object)) {
    *device = Device::parse(utf8(object));
  } else {
    return false;
  }
  return true;
}

bool to_generator(PyObject* object, Ref<Generator>* generator) {
  if (Py_TYPE(object) != generator_type) return false;
  *generator = nb::inst_ptr<GeneratorObject>(object)->generator;
  return true;
}

bool to_layout(PyObject* object, int64_t* layout) {
  *layout = 0;
  if (Py_TYPE(object) != layout_type) return false;
  WEFT_CHECK_AS(NotImplemented, object == strided, "layout: expected torch.strided, got torch.",
                nb::inst_ptr<LayoutObject>(object)->name);
  return true;
}

bool to_memory_format(PyObject* object, int64_t* format) {
  if (Py_TYPE(object) != memory_format_type) return false;
  *format = nb::inst_ptr<MemoryFormatObject>(object)->code;
  return true;
}

void bind_objects(nb::module_& module) {
  bind_dtype(module);
  bind_device(module);
  bind_layouts(module);
  bind_generator(module);
}

}  // namespace weft::py
