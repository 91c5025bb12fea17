// Builtins that ask or change what lies around a program.
#include <chrono>

#include "autograd/mode.h"
#include "builtin_bodies.h"
#include "core/error.h"
#include "core/generator.h"
#include "core/warning.h"
#include "runtime/builtins_support.h"
#include "runtime/future.h"
#include "runtime/interpreter_ops.h"
#include "runtime/object.h"

namespace weft::builtins {

void seed_generator(int64_t seed) {
  Generator& generator = *default_generator();
  std::lock_guard lock(generator);
  generator.manual_seed(static_cast<uint64_t>(seed));
}

Value generator_make(const Value& device) {
  WEFT_CHECK(device.is_none() || device.to_device().type == DeviceType::CPU,
             "Generator: expected the device cpu, got ", device.to_device());
  return Value(make_ref<Generator>());
}
Value generator_manual_seed(const Value& generator, int64_t seed) {
  const Ref<Generator> held = generator.to_generator();
  std::lock_guard lock(*held);
  held->manual_seed(static_cast<uint64_t>(seed));
  return generator;
}
int64_t generator_seed(const Value& generator) {
  const Ref<Generator> held = generator.to_generator();
  std::lock_guard lock(*held);
  return static_cast<int64_t>(held->seed());
}
int64_t generator_initial_seed(const Value& generator) {
  const Ref<Generator> held = generator.to_generator();
  std::lock_guard lock(*held);
  return static_cast<int64_t>(held->initial_seed());
}

void set_recording(bool enabled) { autograd::set_grad_enabled(enabled); }

Value autocast_now() {
  const int set = autograd::mode.autocast;
  return set == 0 ? Value() : Value(static_cast<DType>(set - 1));
}

void warn_user(const std::string& message, int64_t) { warn(message); }

void write_text(const std::string& text) { interpreter::print_text(text); }

std::string enum_name(const Value& member) {
  const auto* object = member.object<EnumObject>();
  return object->def->members[object->index];
}

int64_t object_id(const Value& value) {
  return value.is_none() ? 0 : reinterpret_cast<int64_t>(value.object<ValueObject>());
}

Value unwrap_optional(const Value& value) {
  WEFT_CHECK(!value.is_none(), "unwrap_optional: expected a value, got None");
  return value;
}

Value future_wait(const Value& future) { return future.object<FutureObject>()->wait(); }

double time_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}
double time_counter() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace weft::builtins
