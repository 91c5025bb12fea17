// Functions of OpenBLAS. The library is loaded when the first is called: most programs need none,
// and a process that links it starts later and with threads that wait in a busy loop.
#pragma once

namespace weft::openblas {

// The address of a function. RuntimeError where there is no library, or none with that function.
void* symbol(const char* name);

template <class F>
F* function(const char* name) {
  return reinterpret_cast<F*>(symbol(name));
}

}  // namespace weft::openblas

// The function as a pointer that is looked up once: WEFT_OPENBLAS(scipy_cblas_sgemm)(...).
#define WEFT_OPENBLAS(name)                                                    \
  ([]() -> decltype(&name) {                                                   \
    static const auto found = weft::openblas::function<decltype(name)>(#name); \
    return found;                                                              \
  }())
