// Machine code by llvmlite's library, called directly: nothing of its Python is imported, and all
// of it runs without the interpreter lock.
//
// The functions are those that llvmlite's own Python calls; weft.jit.native.llvm says for which
// versions of it their signatures were checked.
#include <dlfcn.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <memory>

#include "bindings/jit.h"
#include "bindings/jit_gil_yield.h"
#include "core/error.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

struct Library {
  explicit Library(void* handle) : handle(handle) {}

  template <typename F>
  void find(F*& function, const char* name) {
    function = reinterpret_cast<F*>(dlsym(handle, name));
    WEFT_CHECK(function, "llvmlite: expected the function ", name, ", got a library without it");
  }

  void* handle;
  int (*initialize_target)();
  int (*initialize_printer)();
  void* (*create_context)();
  void (*dispose_context)(void*);
  void* (*parse)(void* context, const char* text, char** message);
  void (*dispose_module)(void*);
  void* (*find_target)(const char* triple, char** message);
  void* (*create_machine)(void* target, const char* triple, const char* cpu, const char* features,
                          int opt, const char* relocation, const char* code_model, int print,
                          int jit, const char* abi);
  void (*dispose_machine)(void*);
  void* (*emit)(void* machine, void* module, int object, char** message);
  const char* (*buffer_start)(void*);
  size_t (*buffer_size)(void*);
  void (*dispose_buffer)(void*);
  void (*dispose_string)(char*);
};

// The library, ready; it stays for good. Called with the interpreter lock, which keeps Python's way
// to the same functions out while the target is set up.
const Library& library(const std::string& path) {
  static const Library* known = nullptr;
  if (known) return *known;
  void* handle = nullptr;
  {
    nb::gil_scoped_release release;
    const GilUnwanted keep;
    handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  WEFT_CHECK(handle, "llvmlite: expected a library, got ", path);
  auto made = std::make_unique<Library>(handle);
  made->find(made->initialize_target, "LLVMPY_InitializeNativeTarget");
  made->find(made->initialize_printer, "LLVMPY_InitializeNativeAsmPrinter");
  made->find(made->create_context, "LLVMPY_ContextCreate");
  made->find(made->dispose_context, "LLVMPY_ContextDispose");
  made->find(made->parse, "LLVMPY_ParseAssembly");
  made->find(made->dispose_module, "LLVMPY_DisposeModule");
  made->find(made->find_target, "LLVMPY_GetTargetFromTriple");
  made->find(made->create_machine, "LLVMPY_CreateTargetMachine");
  made->find(made->dispose_machine, "LLVMPY_DisposeTargetMachine");
  made->find(made->emit, "LLVMPY_TargetMachineEmitToMemory");
  made->find(made->buffer_start, "LLVMPY_GetBufferStart");
  made->find(made->buffer_size, "LLVMPY_GetBufferSize");
  made->find(made->dispose_buffer, "LLVMPY_DisposeMemoryBuffer");
  made->find(made->dispose_string, "LLVMPY_DisposeString");
  if (!known) {  // another thread may have been here while the library was loaded
    made->initialize_target();
    made->initialize_printer();
    known = made.release();
  }
  return *known;
}

// A message that LLVM hands over; empty where there is none.
struct Message {
  explicit Message(const Library& llvm) : llvm(llvm) {}
  ~Message() {
    if (text) llvm.dispose_string(text);
  }
  std::string shown() const { return text ? text : "no message"; }

  const Library& llvm;
  char* text = nullptr;
};

using Owned = std::unique_ptr<void, void (*)(void*)>;

std::string compile(const Library& llvm, const std::string& text, const std::string& triple,
                    const std::string& cpu, const std::string& features) {
  const Owned context(llvm.create_context(), llvm.dispose_context);
  Message message(llvm);
  void* parsed = llvm.parse(context.get(), text.c_str(), &message.text);
  WEFT_CHECK(parsed, "llvmlite: expected a module of LLVM, got ", message.shown());
  const Owned module(parsed, llvm.dispose_module);
  void* target = llvm.find_target(triple.c_str(), &message.text);
  WEFT_CHECK(target, "llvmlite: expected a target for ", triple, ", got ", message.shown());
  constexpr int kOptimize = 2;
  const Owned machine(llvm.create_machine(target, triple.c_str(), cpu.c_str(), features.c_str(),
                                          kOptimize, "pic", "default", 0, 0, ""),
                      llvm.dispose_machine);
  WEFT_CHECK(machine, "llvmlite: expected a code generator for ", cpu, ", got none");
  void* emitted = llvm.emit(machine.get(), module.get(), 1, &message.text);
  WEFT_CHECK(emitted, "llvmlite: expected an object, got ", message.shown());
  const Owned buffer(emitted, llvm.dispose_buffer);
  return {llvm.buffer_start(buffer.get()), llvm.buffer_size(buffer.get())};
}

nb::bytes llvm_object(const std::string& path, const std::string& text, const std::string& triple,
                      const std::string& cpu, const std::string& features) {
  const Library& llvm = library(path);
  std::string object;
  {
    nb::gil_scoped_release release;
    const GilUnwanted keep;
    object = compile(llvm, text, triple, cpu, features);
  }
  return nb::bytes(object.data(), object.size());
}

}  // namespace

void bind_llvm(nb::module_& module) {
  module.def("_llvm_object", &llvm_object, nb::arg("library"), nb::arg("text"), nb::arg("triple"),
             nb::arg("cpu"), nb::arg("features"),
             "The object file of a module's text, made by llvmlite's library at that path.");
}

}  // namespace weft::py
