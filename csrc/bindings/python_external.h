// Python functions that programs call.
#pragma once

#include <memory>
#include <vector>

#include "bindings/jit.h"
#include "bindings/tensor_object.h"
#include "core/error.h"

namespace weft::py {

// A Python function that a program calls: takes the lock, converts, calls.
class PythonExternal final : public External {
 public:
  explicit PythonExternal(PyObject* callable) : callable_(new_ref(callable), drop_reference) {}
  Value call(std::span<const Value> args) override {
    TakeGil gil;
    try {
      std::vector<Object> held;
      std::vector<PyObject*> objects;
      for (const Value& arg : args) {
        held.push_back(Object::checked(from_value(Value(arg))));
        objects.push_back(held.back().get());
      }
      const Object result = Object::checked(unless_ended([&] {
        return PyObject_Vectorcall(callable_.get(), objects.data(), objects.size(), nullptr);
      }));
      Value value;
      WEFT_CHECK_TYPE(to_value(*type, result.get(), value),
                      "expected a Python function that returns a value of type ", type->str(),
                      ", got ", describe_object(result.get()));
      return value;
    } catch (const PythonError&) {
      throw PythonFailure::fetch();
    }
  }

  Ref<Type> type;  // of the result

 private:
  std::shared_ptr<PyObject> callable_;
};

}  // namespace weft::py
