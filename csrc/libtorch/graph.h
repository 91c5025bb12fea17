// torch::jit's ways to make programs: compilation units, graphs and tracing. Here `weft compile`
// makes them, so that hosts which offer these compile, and say so when they are asked for them.
#pragma once

#include "foreign.h"
#include "module_file.h"

namespace torch::jit {
inline namespace over_weft {

#define WEFT_TORCH_NO_PROGRAM(what) \
  TORCH_CHECK_NOT_IMPLEMENTED(false, what ": expected a program that `weft compile` has made")

struct Value {
  Value* setType(const c10::TypePtr&) { return this; }
};
struct Graph {
  template <class... Given>
  Value* insertInput(Given&&...) {
    WEFT_TORCH_NO_PROGRAM("Graph::insertInput");
  }
  template <class... Given>
  Value* addInput(Given&&...) {
    WEFT_TORCH_NO_PROGRAM("Graph::addInput");
  }
  template <class... Given>
  size_t registerOutput(Given&&...) {
    WEFT_TORCH_NO_PROGRAM("Graph::registerOutput");
  }
  std::shared_ptr<Graph> copy() const { WEFT_TORCH_NO_PROGRAM("Graph::copy"); }
  std::string toString(bool = true) const { WEFT_TORCH_NO_PROGRAM("Graph::toString"); }
};
inline std::shared_ptr<Graph> Function::graph() const { WEFT_TORCH_NO_PROGRAM("graph"); }
inline std::shared_ptr<Graph> toGraphFunction(const Function&) {
  WEFT_TORCH_NO_PROGRAM("toGraphFunction");
}

struct CompilationUnit {
  CompilationUnit() = default;
  explicit CompilationUnit(const std::string&) { WEFT_TORCH_NO_PROGRAM("CompilationUnit"); }
  template <class... Given>
  Function* create_function(Given&&...) {
    WEFT_TORCH_NO_PROGRAM("create_function");
  }
  Function* find_function(const c10::QualifiedName&) const { return nullptr; }
  Function& get_function(const c10::QualifiedName& name) const {
    TORCH_CHECK(false, "get_function: expected a function of the unit, got '", name.name(), "'");
  }
  std::vector<Function*> get_functions() const { return {}; }
  template <class... Given>
  void define(Given&&...) {
    WEFT_TORCH_NO_PROGRAM("define");
  }
};
inline std::shared_ptr<CompilationUnit> compile(const std::string&) {
  WEFT_TORCH_NO_PROGRAM("compile");
}
template <class... Given>
void FixupTraceScopeBlocks(Given&&...) {}
template <class... Given>
void NormalizeOps(Given&&...) {}

namespace tracer {

struct TracingState {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  template <class... Given>
  void setValue(Given&&...) {}
  template <class... Given>
  Value* getOutput(Given&&...) {
    WEFT_TORCH_NO_PROGRAM("getOutput");
  }
};
inline bool isTracing() { return false; }
inline std::shared_ptr<TracingState> getTracingState() { return nullptr; }
inline void setTracingState(const std::shared_ptr<TracingState>& state) {
  if (state) WEFT_TORCH_NO_PROGRAM("setTracingState");
}
inline void abandon() {}
template <class... Given>
std::pair<std::shared_ptr<TracingState>, Stack> trace(Given&&...) {
  WEFT_TORCH_NO_PROGRAM("trace");
}

}  // namespace tracer

namespace fuser::cuda {
inline bool isEnabled() { return false; }
inline bool setEnabled(bool) { return false; }
}  // namespace fuser::cuda

// An operator of the library by its schema.
class Operator {
 public:
  explicit Operator(std::string name) : schema_(std::move(name), {}) {}
  const c10::FunctionSchema& schema() const { return schema_; }

 private:
  c10::FunctionSchema schema_;
};
inline std::vector<std::shared_ptr<Operator>> getAllOperators() {
  std::vector<std::shared_ptr<Operator>> found;
  for (size_t i = 0; const char* text = weft_operator_schema_at(i); ++i) {
    const std::string schema = text;
    found.push_back(
        std::make_shared<Operator>("aten::" + schema.substr(0, schema.find_first_of(".("))));
  }
  return found;
}
inline std::vector<std::shared_ptr<Operator>> getAllOperatorsFor(c10::Symbol name) {
  std::vector<std::shared_ptr<Operator>> found;
  for (auto& each : getAllOperators()) {
    if (each->schema().name() == name.toQualString()) found.push_back(std::move(each));
  }
  return found;
}

}  // namespace over_weft
}  // namespace torch::jit

namespace c10 {
inline namespace over_weft {

inline torch::jit::Function& Type::getMethod(const std::string& name) const {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "getMethod: expected Module::get_method for a method '", name,
                              "', which calls those of the file");
}
inline void Type::addMethod(torch::jit::Function*) const { WEFT_TORCH_NO_PROGRAM("addMethod"); }
inline std::shared_ptr<torch::jit::CompilationUnit> ivalue::Object::compilation_unit() const {
  return std::make_shared<torch::jit::CompilationUnit>();
}

}  // namespace over_weft
}  // namespace c10
#undef WEFT_TORCH_NO_PROGRAM
