#include "ops/openblas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <string>
#include <thread>

#include "core/error.h"

namespace weft::openblas {
namespace {

constexpr char kLibrary[] = "libscipy_openblas.so";

// Beside the folder of the package that this code was loaded from: a loader that was wrapped, as by
// sanitizers, does not look where libweft's own search path leads.
std::string installed() {
  Dl_info self;
  if (dladdr(reinterpret_cast<const void*>(&symbol), &self) == 0) return kLibrary;
  const std::string file = self.dli_fname;
  return file.substr(0, file.rfind('/') + 1) + "../../scipy_openblas32/lib/" + kLibrary;
}

// OpenBLAS starts a thread for each processor that the loading thread may run on, but for one. It
// is called from threads of ours and must have none of its own.
void keep_to_one_processor() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(std::max(sched_getcpu(), 0)), &one);
  pthread_setaffinity_np(pthread_self(), sizeof one, &one);  // refused: it starts them
}

void* load() {
  void* library = nullptr;
  std::string error;
  std::thread([&] {
    keep_to_one_processor();
    library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      error = dlerror();
      library = dlopen(installed().c_str(), RTLD_NOW | RTLD_LOCAL);
    }
  }).join();
  WEFT_CHECK(library, "openblas: expected ", kLibrary, " (package scipy-openblas32), got ", error);
  // Another part of the process may have loaded it before, with threads.
  if (void* const set = dlsym(library, "scipy_openblas_set_num_threads")) {
    reinterpret_cast<void (*)(int)>(set)(1);
  }
  return library;
}

}  // namespace

void* symbol(const char* name) {
  static void* const library = load();
  void* const found = dlsym(library, name);
  WEFT_CHECK(found, "openblas: expected a library with ", name, ", got one without");
  return found;
}

}  // namespace weft::openblas
