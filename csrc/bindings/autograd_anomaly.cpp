// Anomaly mode and saved-tensor hooks: where autograd calls back into the program.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <vector>

#include "autograd/anomaly.h"
#include "autograd/saved_hooks.h"
#include "bindings/autograd.h"
#include "bindings/caster.h"
#include "bindings/errors.h"
#include "bindings/tensor_object.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

// ---- anomaly mode ----

std::string text_of(PyObject* lines) {
  const Object empty = Object::checked(PyUnicode_FromString(""));
  const Object joined = Object::checked(PyUnicode_Join(empty.get(), lines));
  return std::string(utf8(joined.get()));
}

// "" when Python has nothing to say: anomaly mode must not fail what it watches.
std::string program_lines() {
  if (!interpreter_alive()) return {};
  TakeGil gil;
  KeepException keep;
  try {
    const Object module = Object::checked(PyImport_ImportModule("traceback"));
    const Object lines =
        Object::checked(PyObject_CallMethod(module.get(), "format_stack", nullptr));
    return text_of(lines.get());
  } catch (const PythonError&) {
    PyErr_Clear();
    return {};
  }
}

void warn(const std::string& message) {
  if (!interpreter_alive()) return;
  TakeGil gil;
  KeepException keep;
  if (PyErr_WarnEx(PyExc_UserWarning, message.c_str(), 1) < 0) PyErr_Clear();
}

void bind_anomaly(nb::module_& module) {
  autograd::anomaly.program_lines = program_lines;
  autograd::anomaly.warn = warn;
  module.def("is_anomaly_enabled", [] { return autograd::anomaly_enabled(); });
  module.def("is_anomaly_check_nan_enabled", [] { return autograd::anomaly.check_nan.load(); });
  module.def("set_anomaly_enabled", [](bool enabled, bool check_nan) {
    autograd::anomaly.enabled = enabled;
    autograd::anomaly.check_nan = check_nan;
  });
}

// ---- saved-tensor hooks ----

struct HookPair {
  Shared pack, unpack;
};
thread_local std::vector<HookPair> hook_pairs;  // the innermost last

class PythonPacked final : public autograd::PackedValue {
 public:
  PythonPacked(Shared unpack, Shared value)
      : unpack_(std::move(unpack)), value_(std::move(value)) {}
  Tensor unpack() override {
    TakeGil gil;
    const Object result = Object::checked(PyObject_CallOneArg(unpack_.get(), value_.get()));
    WEFT_CHECK_TYPE(is_tensor(result.get()),
                    "saved_tensors_hooks: expected an unpack hook to return a Tensor, got ",
                    short_type_name(result.get()));
    return unwrap(result.get());
  }

 private:
  Shared unpack_, value_;
};

std::unique_ptr<autograd::PackedValue> pack(const Tensor& tensor) {
  TakeGil gil;
  const HookPair hooks = hook_pairs.back();  // the hook may change the stack
  const Object argument = Object::steal(wrap(tensor));
  const Object value = Object::checked(PyObject_CallOneArg(hooks.pack.get(), argument.get()));
  return std::make_unique<PythonPacked>(hooks.unpack, share(value.get()));
}

void bind_saved_hooks(nb::module_& module) {
  autograd::pack_saved = pack;
  module.def("push_saved_hooks", [](nb::handle pack_hook, nb::handle unpack_hook) {
    hook_pairs.push_back({share(pack_hook.ptr()), share(unpack_hook.ptr())});
    autograd::saved_hooks_active = true;
  });
  module.def("pop_saved_hooks", [] {
    WEFT_CHECK(!hook_pairs.empty(), "saved_tensors_hooks: expected hooks to remove, got none");
    hook_pairs.pop_back();
    autograd::saved_hooks_active = !hook_pairs.empty();
  });
}

}  // namespace

void bind_anomaly_and_saved_hooks(nb::module_& module) {
  bind_anomaly(module);
  bind_saved_hooks(module);
}

}  // namespace weft::py
