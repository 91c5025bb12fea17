// Modules: loaded, called, listed.
#include <algorithm>
#include <cstring>

#include "capi/handles.h"
#include "runtime/print.h"

namespace weft::capi {
namespace {

void put_module(weft_module** out, Ref<CompiledModule> module) {
  auto made = std::make_unique<weft_module>();
  made->methods = module->methods();
  made->parameters = module->parameters();
  made->buffers = module->buffers();
  made->module = std::move(module);
  *out = made.release();
}

void put_named(const char* op, const CompiledModule::NamedTensors& tensors, size_t index,
               const char** name, weft_tensor** out) {
  WEFT_CHECK_INDEX(index < tensors.size(), op, ": expected an index below ", tensors.size(),
                   ", got ", index);
  if (name) *name = tensors[index].first.c_str();
  if (out) put(out, tensors[index].second);
}

// What lies at a path of names. The state has places of constants of classes, but not their values:
// the list of these is made where a place is empty.
Value attribute_at(const CompiledModule& module, std::string_view path) {
  const char* op = "weft_module_attribute";
  WEFT_CHECK_TYPE(module.has_state(), op, ": expected a module, got a file of functions");
  Value found = module.state();
  for (std::string_view rest = path; !rest.empty();) {
    const size_t dot = std::min(rest.find('.'), rest.size());
    found = Value(attribute(op, found, rest.substr(0, dot)));
    rest.remove_prefix(std::min(dot + 1, rest.size()));
  }
  if (!found.is_none()) return found;
  for (auto& [name, value] : module.constants()) {
    if (name == path) return value;
  }
  return found;
}

}  // namespace
}  // namespace weft::capi

using namespace weft;
using capi::guarded;
using capi::handle;

weft_status weft_module_load(const char* path, weft_module** out) {
  return guarded([&] {
    WEFT_CHECK_VALUE(path, "weft_module_load: expected a path, got NULL");
    capi::put_module(out, CompiledModule::load(path));
  });
}

weft_status weft_module_load_memory(const void* data, size_t bytes, weft_module** out) {
  return guarded([&] {
    WEFT_CHECK_VALUE(data || bytes == 0, "weft_module_load_memory: expected memory, got NULL");
    const Ref<Storage> copy = Storage::allocate(bytes);
    if (bytes > 0) std::memcpy(copy->data(), data, bytes);
    capi::put_module(out, CompiledModule::read(copy));
  });
}

void weft_module_release(weft_module* module) { delete module; }

size_t weft_module_method_count(const weft_module* module) {
  return module ? module->methods.size() : 0;
}

const char* weft_module_method_name(const weft_module* module, size_t index) {
  return index < weft_module_method_count(module) ? module->methods[index].c_str() : nullptr;
}

weft_status weft_module_call(const weft_module* module, const char* method,
                             const weft_value* const* args, size_t count, weft_value** out) {
  return guarded([&] {
    const char* op = "weft_module_call";
    WEFT_CHECK_VALUE(method, op, ": expected the name of a method, got NULL");
    std::vector<Value> values;
    for (size_t i = 0; i < count; ++i) values.push_back(handle(op, args[i]).value);
    capi::put(out, handle(op, module).module->call(method, std::move(values)));
  });
}

weft_status weft_module_forward(const weft_module* module, const weft_tensor* const* inputs,
                                size_t count, weft_tensor** out) {
  return guarded([&] {
    const char* op = "weft_module_forward";
    std::vector<Value> values;
    for (size_t i = 0; i < count; ++i) values.emplace_back(handle(op, inputs[i]).tensor);
    Value result = handle(op, module).module->call("forward", std::move(values));
    WEFT_CHECK_TYPE(result.tag() == ValueTag::Tensor, op,
                    ": expected forward to give a tensor, got ", type_name(result),
                    "; use weft_module_call");
    capi::put(out, result.take_tensor());
  });
}

weft_status weft_module_train(weft_module* module, int mode) {
  return guarded([&] { handle("weft_module_train", module).module->train(mode != 0); });
}

size_t weft_module_parameter_count(const weft_module* module) {
  return module ? module->parameters.size() : 0;
}

weft_status weft_module_parameter(const weft_module* module, size_t index, const char** name,
                                  weft_tensor** out) {
  return guarded([&] {
    const char* op = "weft_module_parameter";
    capi::put_named(op, handle(op, module).parameters, index, name, out);
  });
}

size_t weft_module_buffer_count(const weft_module* module) {
  return module ? module->buffers.size() : 0;
}

weft_status weft_module_buffer(const weft_module* module, size_t index, const char** name,
                               weft_tensor** out) {
  return guarded([&] {
    const char* op = "weft_module_buffer";
    capi::put_named(op, handle(op, module).buffers, index, name, out);
  });
}

weft_status weft_module_attribute(const weft_module* module, const char* path, weft_value** out) {
  return guarded([&] {
    const char* op = "weft_module_attribute";
    WEFT_CHECK_VALUE(path, op, ": expected a name, got NULL");
    capi::put(out, capi::attribute_at(*handle(op, module).module, path));
  });
}

const char* weft_module_method_argument(const weft_module* module, const char* method,
                                        size_t index) {
  thread_local std::string text;
  if (!module || !method || !module->module->has(method)) return nullptr;
  const Function& function = module->module->signature(method);
  const size_t place = index + (module->module->has_state() ? 1 : 0);
  if (place >= function.params.size()) return nullptr;
  const Param& param = function.params[place];
  text = str(*param.name, ": ", param.type->str());
  return text.c_str();
}

weft_status weft_module_record(const weft_module* module, const char* name, const void** data,
                               size_t* bytes) {
  return guarded([&] {
    const char* op = "weft_module_record";
    WEFT_CHECK_VALUE(name, op, ": expected a name, got NULL");
    const CompiledModule& compiled = *handle(op, module).module;
    WEFT_CHECK_AS(Key, compiled.has_record(name), op, ": expected a record of the file, got '",
                  name, "'");
    const ZipReader::Bytes found = compiled.record(name);
    *data = found.data();
    *bytes = found.size();
  });
}
