// torch/extension.h: tensors as arguments and results of modules that pybind11 makes. A tensor of
// Python is the same tensor in C++, with its history.
#pragma once

#include "nn.h"

// Libraries of operators include torch/extension.h as well, and need no pybind11.
#if __has_include(<pybind11/pybind11.h>) && __has_include(<Python.h>)

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

namespace pybind11 {
namespace detail {

template <>
struct type_caster<at::Tensor> {
  PYBIND11_TYPE_CASTER(at::Tensor, const_name("torch.Tensor"));

  bool load(handle source, bool) {
    const module_ weft = module_::import("weft");
    if (!isinstance(source, weft.attr("Tensor"))) return false;
    const object capsule = weft.attr("_C").attr("_to_handle")(source);
    weft_tensor* shared = nullptr;
    c10::detail::check(weft_tensor_share(
        static_cast<weft_tensor*>(PyCapsule_GetPointer(capsule.ptr(), "weft_tensor")), &shared));
    value = at::Tensor(shared);
    return true;
  }
  static handle cast(const at::Tensor& tensor, return_value_policy, handle) {
    if (!tensor.defined()) return none().release();
    weft_tensor* shared = nullptr;
    c10::detail::check(weft_tensor_share(tensor.get(), &shared));
    const capsule held(shared, "weft_tensor", [](PyObject* each) {
      weft_tensor_release(static_cast<weft_tensor*>(PyCapsule_GetPointer(each, "weft_tensor")));
    });
    return module_::import("weft").attr("_C").attr("_from_handle")(held).release();
  }
};

template <>
struct type_caster<at::ScalarType> {
  PYBIND11_TYPE_CASTER(at::ScalarType, const_name("torch.dtype"));

  bool load(handle source, bool) {
    if (!isinstance(source, module_::import("weft").attr("dtype"))) return false;
    value = static_cast<at::ScalarType>(source.attr("_number").cast<int>());
    return true;
  }
  static handle cast(at::ScalarType type, return_value_policy, handle) {
    for (const handle each : module_::import("weft").attr("_C").attr("_dtypes")) {
      if (each.attr("_number").cast<int>() == static_cast<int>(type)) return each.inc_ref();
    }
    throw type_error(std::string("expected a dtype that weft has, got ") + at::toString(type));
  }
};

template <>
struct type_caster<at::Device> {
  PYBIND11_TYPE_CASTER(at::Device, const_name("torch.device"));
  type_caster() : value(at::kCPU) {}

  bool load(handle source, bool) {
    if (!isinstance(source, module_::import("weft").attr("device")) && !isinstance<str>(source)) {
      return false;
    }
    value = at::Device(str(source).cast<std::string>());
    return true;
  }
  static handle cast(const at::Device& device, return_value_policy, handle) {
    return module_::import("weft").attr("device")(device.str()).release();
  }
};

// Numbers of Python; a list of them where a function takes a view of one.
template <>
struct type_caster<at::Scalar> {
  PYBIND11_TYPE_CASTER(at::Scalar, const_name("float"));

  bool load(handle source, bool) {
    if (isinstance<bool_>(source)) {
      value = source.cast<bool>();
    } else if (isinstance<int_>(source)) {
      value = source.cast<int64_t>();
    } else if (isinstance<float_>(source)) {
      value = source.cast<double>();
    } else {
      return false;
    }
    return true;
  }
  static handle cast(const at::Scalar& scalar, return_value_policy, handle) {
    if (scalar.isBoolean()) return bool_(scalar.toBool()).release();
    if (scalar.isFloatingPoint()) return float_(scalar.toDouble()).release();
    return int_(scalar.toLong()).release();
  }
};

template <>
struct type_caster<at::IntArrayRef> {
  PYBIND11_TYPE_CASTER(at::IntArrayRef, const_name("List[int]"));

  bool load(handle source, bool convert) {
    make_caster<std::vector<int64_t>> list;
    if (!list.load(source, convert)) return false;
    numbers_ = cast_op<std::vector<int64_t>>(std::move(list));
    value = numbers_;
    return true;
  }
  static handle cast(at::IntArrayRef numbers, return_value_policy policy, handle parent) {
    return make_caster<std::vector<int64_t>>::cast(numbers.vec(), policy, parent);
  }

 private:
  std::vector<int64_t> numbers_;
};

}  // namespace detail
}  // namespace pybind11

namespace c10 {
inline namespace over_weft {
namespace detail {

// Errors are those of Python that weft raises.
inline void translate(std::exception_ptr failure) {
  try {
    if (failure) std::rethrow_exception(failure);
  } catch (const IndexError& error) {
    PyErr_SetString(PyExc_IndexError, error.what());
  } catch (const ValueError& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const TypeError& error) {
    PyErr_SetString(PyExc_TypeError, error.what());
  } catch (const NotImplementedError& error) {
    PyErr_SetString(PyExc_NotImplementedError, error.what());
  } catch (const Error& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

}  // namespace detail
}  // namespace over_weft
}  // namespace c10

namespace py = pybind11;

#ifdef TORCH_EXTENSION_NAME
namespace {
// Before the module is made: its functions translate errors, too.
[[maybe_unused]] const bool weft_translates = [] {
  pybind11::register_local_exception_translator(c10::detail::translate);
  return true;
}();
}  // namespace
#endif

#endif  // pybind11
