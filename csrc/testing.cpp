// The list of C++ tests and the program that runs them.
#include "testing.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <span>
#include <vector>

// Free blocks of a thread's cache are chained through memory that is poisoned meanwhile: the leak
// checker has to follow the chain there, or takes all but the first block for lost.
extern "C" const char* __lsan_default_options();
extern "C" const char* __lsan_default_options() { return "use_poisoned=1"; }
// Undefined behaviour is a trap.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "handle_sigill=1"; }

namespace weft::testing {
namespace {

struct Test {
  const char* name;
  const char* file;
  int line;
  void (*body)();
};

// Function-local: registrations run during static initialisation, in any order.
std::vector<Test>& tests() {
  static std::vector<Test> list;
  return list;
}

// Arguments are parts of names: of the tests that run, or behind a '-' of those that do not.
bool selected(const Test& test, int argc, char** argv) {
  bool wanted = std::all_of(argv + 1, argv + argc, [](const char* part) { return *part == '-'; });
  for (const char* part : std::span(argv + 1, argv + argc)) {
    if (*part == '-' && std::strstr(test.name, part + 1)) return false;
    wanted = wanted || std::strstr(test.name, part);
  }
  return wanted;
}

bool passes(const Test& test) {
  try {
    test.body();
    return true;
  } catch (const Failure& failure) {
    std::printf("FAILED %s\n  %s\n", test.name, failure.message.c_str());
  } catch (const std::exception& error) {
    std::printf("FAILED %s (%s:%d)\n  unexpected exception: %s\n", test.name, test.file, test.line,
                error.what());
  }
  return false;
}

int run_all(int argc, char** argv) {
  std::sort(tests().begin(), tests().end(), [](const Test& a, const Test& b) {
    const int order = std::strcmp(a.file, b.file);
    return order != 0 ? order < 0 : a.line < b.line;
  });
  int run = 0, failed = 0;
  for (const Test& test : tests()) {
    if (!selected(test, argc, argv)) continue;
    // Flushed first, so that a crash shows where it happened.
    std::printf("%-50s", test.name);
    std::fflush(stdout);
    const auto start = std::chrono::steady_clock::now();
    ++run;
    if (!passes(test)) {
      ++failed;
      continue;
    }
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    std::printf(" ok %8.1f ms\n", time.count());
  }
  std::printf("%d tests, %d failed\n", run, failed);
  return failed == 0 && run > 0 ? 0 : 1;
}

}  // namespace

Registration::Registration(const char* name, const char* file, int line, void (*body)()) {
  tests().push_back({name, file, line, body});
}

void fail_check(const char* file, int line, const std::string& message) {
  throw Failure{std::string(file) + ":" + std::to_string(line) + ": " + message};
}

}  // namespace weft::testing

int main(int argc, char** argv) { return weft::testing::run_all(argc, argv); }
