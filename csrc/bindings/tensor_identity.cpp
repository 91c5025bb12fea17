// Who owns whom: making, keeping and freeing the wrappers of tensors.
//
// All functions here run with the GIL held, except release_from_cpp, which takes it. Without a GIL
// a thread may want a wrapper while another drops its last reference: SlotLock guards what a tensor
// knows of its wrapper, and a reference is taken only of a wrapper that has one. Weak references
// then end with the last reference in Python, as one that is found while the tensor dies in C++
// would come too late.
#include <chrono>
#include <new>
#include <thread>

#include "autograd/node.h"
#include "bindings/autograd.h"
#include "bindings/errors.h"
#include "bindings/tensor_object.h"
#include "bindings/trace.h"
#include "core/mutex.h"

namespace weft::py {
namespace {

// Guards impl->wrapper. Nobody else can reach a tensor of which the caller has the only reference.
class SlotLock {
 public:
#if WEFT_FREE_THREADED
  explicit SlotLock(const TensorImpl* impl) : mutex_(impl->use_count() == 1 ? nullptr : &of(impl)) {
    if (mutex_) mutex_->lock();
  }
  ~SlotLock() {
    if (mutex_) mutex_->unlock();
  }

 private:
  static Mutex& of(const TensorImpl* impl) {
    struct alignas(64) Line {  // of the cache
      Mutex mutex;
    };
    static constinit Line lines[256];
    return lines[reinterpret_cast<uintptr_t>(impl) / sizeof(TensorImpl) % std::size(lines)].mutex;
  }
  Mutex* mutex_;
#else
  explicit SlotLock(const TensorImpl*) {}
#endif
};

// Dead exact Tensors wait here for the next wrap; each keeps its reference to the type.
constexpr int kMaxFree = 128;
PyObject* free_list[kMaxFree];
int free_count = 0;

TensorObject* as_object(PyObject* object) { return reinterpret_cast<TensorObject*>(object); }

void track(PyObject* object) {
  if (!PyObject_GC_IsTracked(object)) PyObject_GC_Track(object);
}

PyObject* allocate_exact() {
  if (!kFreeThreaded && free_count > 0) {
    PyObject* object = free_list[--free_count];
    _Py_NewReference(object);
    return object;
  }
  TensorObject* made = PyObject_GC_New(TensorObject, tensor_type);
  if (!made) throw PythonError{};
  made->dict = nullptr;
  made->weakrefs = nullptr;
  return reinterpret_cast<PyObject*>(made);
}

// Whether C++ holds the tensor beside this wrapper, and the wrapper has something to lose.
bool worth_keeping(TensorObject* self) {
  PyObject* object = reinterpret_cast<PyObject*>(self);
  if (is_exact_tensor(object) && !self->dict && !self->weakrefs) return false;
  TensorImpl* impl = self->tensor.impl();
  return impl && !impl->wrapper.owned && impl->wrapper.object == object && impl->use_count() > 1 &&
         interpreter_alive();
}

// A wrapper without references either lives on, owned by its tensor (true), or is no longer its
// tensor's. One that lives on stops counting the tensor, which may die here, and the wrapper with
// it.
bool lives_on(TensorObject* self) {
  TensorImpl* impl = self->tensor.impl();
  if (!impl) return false;
  {
    const SlotLock lock(impl);
    if (impl->wrapper.object != self) return false;
    if (!worth_keeping(self)) {
      impl->wrapper = {};
      return false;
    }
    Py_SET_REFCNT(reinterpret_cast<PyObject*>(self), 1);
    impl->wrapper.owned = true;
  }
  if (impl->release()) destroy_ref(impl);
  return true;
}

// The node of the tensor's history, when tensor and node have no other owner, but for the node's
// Python object.
autograd::Node* own_node(TensorObject* self) {
  const TensorImpl* impl = self->tensor.impl();
  if (!impl || impl->wrapper.owned || impl->use_count() != 1 || !impl->autograd) return nullptr;
  autograd::Node* node = autograd::meta_of(self->tensor)->node.get();
  return node && node->use_count() == 1 + (node->python_wrapper ? 1 : 0) ? node : nullptr;
}

// The wrapper lost its tensor's last owner but was found through a weak reference: it gets the
// contents.
Tensor replacement_of(TensorImpl* released, PyObject* wrapper) {
  Ref<TensorImpl> made(TensorImpl::create());
  made->storage = std::move(released->storage);
  made->layout = std::move(released->layout);
  made->dtype = released->dtype;
  made->inference = released->inference;
  made->autograd = std::move(released->autograd);
  made->counts_apart = released->counts_apart;
  made->wrapper = {wrapper, false};
  Tensor result(std::move(made));
  autograd::data_changed(result);  // a leaf's node knows it
  return result;
}

// The core calls this for a dying tensor that owns its wrapper; on any thread.
void release_from_cpp(void* pointer) {
  if (!interpreter_alive()) return;  // the process ends: leak the wrapper
  TakeGil gil;
  auto* object = static_cast<PyObject*>(pointer);
  TensorObject* self = as_object(object);
  TensorImpl* released = self->tensor.impl();
  released->wrapper = {};
  // Not counted any more, so it is overwritten, not assigned.
  if (Py_REFCNT(object) > 1) {
    new (&self->tensor) Tensor(replacement_of(released, object));
  } else {
    new (&self->tensor) Tensor();
  }
  KeepException keep;
  Py_DECREF(object);
}

// A new reference to the wrapper of a tensor; null: it has none. Waits for a thread that drops the
// last reference, but not for ever: what that thread runs meanwhile, as a finalizer, may ask for
// the wrapper itself.
PyObject* known_wrapper(TensorImpl* impl) {
  for (int tries = 0;; ++tries) {
    {
      const SlotLock lock(impl);
      auto* object = static_cast<PyObject*>(impl->wrapper.object);
      if (!object) return nullptr;
      if (impl->wrapper.owned) {
        // Its reference goes to the caller; it counts the tensor again.
        impl->wrapper.owned = false;
        impl->retain();
        return object;
      }
      if (try_reference(object)) return object;
      if (tries == 1000) {
        impl->wrapper = {};
        return nullptr;
      }
    }
    const ReleaseGil release;
    std::this_thread::sleep_for(std::chrono::microseconds(tries));
  }
}

// Makes `object`, which nobody has seen, the wrapper of a tensor. False: it has got another one.
bool set_wrapper(TensorImpl* impl, PyObject* object) {
  findable(object);
  const SlotLock lock(impl);
  if (impl->wrapper.object) return false;
  impl->wrapper.object = object;
  return true;
}

}  // namespace

void init_identity() { release_wrapper = release_from_cpp; }

PyObject* wrap(Tensor tensor) {
  TensorImpl* impl = tensor.impl();
  if (!impl) return new_ref(Py_None);
  if (PyObject* known = known_wrapper(impl)) return known;
  PyObject* object = allocate_exact();
  new (&as_object(object)->tensor) Tensor(std::move(tensor));
  while (!set_wrapper(impl, object)) {
    PyObject* known = known_wrapper(impl);
    if (!known) continue;
    Py_DECREF(object);
    return known;
  }
  note_wrapper(object);
  return object;
}

PyTypeObject* wrapper_type(const Tensor& tensor) noexcept {
  const SlotLock lock(tensor.impl());
  auto* const object = static_cast<PyObject*>(tensor.impl()->wrapper.object);
  return object ? Py_TYPE(object) : nullptr;
}

PyObject* wrap_as(PyTypeObject* type, Tensor tensor) {
  if (type == tensor_type) return wrap(std::move(tensor));
  PyObject* object = type->tp_alloc(type, 0);
  if (!object) throw PythonError{};
  TensorImpl* impl = tensor.impl();
  new (&as_object(object)->tensor) Tensor(std::move(tensor));
  set_wrapper(impl, object);
  note_wrapper(object);
  return object;
}

PyObject* wrap_tuple(const TensorList& tensors) {
  Object tuple = Object::checked(PyTuple_New(static_cast<Py_ssize_t>(tensors.size())));
  for (size_t i = 0; i < tensors.size(); ++i) {
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), wrap(tensors[i]));
  }
  return tuple.release();
}

PyObject* wrap_list(const TensorList& tensors) {
  Object list = Object::checked(PyList_New(static_cast<Py_ssize_t>(tensors.size())));
  for (size_t i = 0; i < tensors.size(); ++i) {
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), wrap(tensors[i]));
  }
  return list.release();
}

void tensor_dealloc(PyObject* object) {
  TensorObject* self = as_object(object);
  if (kFreeThreaded && self->weakrefs) PyObject_ClearWeakRefs(object);
  if (lives_on(self)) return;
  PyObject_GC_UnTrack(object);
  if (self->weakrefs) PyObject_ClearWeakRefs(object);
  Py_CLEAR(self->dict);
  self->tensor.~Tensor();
  PyTypeObject* type = Py_TYPE(object);
  if (!kFreeThreaded && type == tensor_type && free_count < kMaxFree) {
    free_list[free_count++] = object;
    return;
  }
  type->tp_free(object);
  Py_DECREF(type);
}

// While C++ holds the tensor, what hangs on the wrapper is reachable from there: not showing the
// dict to the collector makes it, and all that is reachable from it, count as referenced from
// outside.
//
// The other way round, what hangs on the tensor's own node is the wrapper's as long as nobody else
// holds tensor or node: a hook that refers to its tensor is a cycle the collector can see.
int tensor_traverse(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(object));
  if (!worth_keeping(as_object(object))) Py_VISIT(as_object(object)->dict);
  autograd::Node* node = own_node(as_object(object));
  return node ? visit_node(*node, visit, arg) : 0;
}

int tensor_clear(PyObject* object) {
  Py_CLEAR(as_object(object)->dict);
  autograd::Node* node = own_node(as_object(object));
  if (node && !node->python_wrapper) clear_node(*Ref<autograd::Node>(node));
  return 0;
}

int tensor_setattro(PyObject* object, PyObject* name, PyObject* value) {
  int status = PyObject_GenericSetAttr(object, name, value);
  if (as_object(object)->dict) track(object);
  return status;
}

PyObject* tensor_get_dict(PyObject* object, void*) {
  PyObject* dict = PyObject_GenericGetDict(object, nullptr);
  if (dict) track(object);
  return dict;
}

}  // namespace weft::py
