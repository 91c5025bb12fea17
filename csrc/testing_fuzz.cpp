// weft_fuzz: damaged files for the readers of libweft, made and read in this process.
//
//   weft_fuzz [--count N] [--first N] [--seed N] [FILE...]
//
// A case is a compiled file or the header of a safetensors file with some edits: one that this
// program writes, or a FILE (of `weft compile`; tools/fuzz_archives.py --seeds writes some). It is
// refused with a status, or loaded and run. A crash, a report of a sanitizer or more than kSeconds
// end the run with the number of the case; --first NUMBER --count 1 repeats it. Machine code in
// files is not taken in: it is trusted like a shared library.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <random>

#include "capi/compiled_testing.h"
#include "capi/safetensors_header.h"
#include "capi/weft.h"
#include "runtime/zip_reader.h"

// Children of a fork leave pools of their parent's threads behind: weft_tests looks for leaks.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "detect_leaks=0:handle_sigill=1:allocator_may_return_null=1:max_allocation_size_mb=1024";
}

namespace weft::testing {
namespace {

using Random = std::mt19937_64;
using Clock = std::chrono::steady_clock;
using Records = std::map<std::string, std::string>;

constexpr unsigned kSeconds = 20;               // for a case, after which it is no end
constexpr double kRunSeconds = 0.2;             // after which a program is cancelled
constexpr size_t kMostBytes = size_t{1} << 26;  // of a tensor
constexpr uint64_t kBatch = 2000;               // cases of a process
constexpr std::string_view kHeader =
    R"({"w\u00e9\ud83d\ude00":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
    R"("__metadata__":{"format":"pt"},"b":{"data_offsets":[24,24],"shape":[],"dtype":"I64"}})";

struct Options {
  uint64_t count = 20'000, first = 0, seed = 0;
  std::vector<std::string> files;
};

// ---- edits ----

size_t below(Random& random, size_t limit) { return limit == 0 ? 0 : random() % limit; }

uint64_t number_near(Random& random, uint64_t old) {
  constexpr uint64_t kLimits[] = {0,      1,          0x7F,       0x80,      0xFF,
                                  0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, ~0ull >> 1};
  if (random() % 2) return old + random() % 9 - 4;
  return random() % 4 ? kLimits[below(random, std::size(kLimits))] : random();
}

void overwrite_number(std::string& data, Random& random) {
  const size_t width = size_t{1} << random() % 4;
  if (data.size() < width) return;
  const size_t at = below(random, data.size() - width + 1);
  uint64_t value = 0;
  std::memcpy(&value, data.data() + at, width);
  value = number_near(random, value);
  std::memcpy(data.data() + at, &value, width);
}

// Bytes of one place in another: over what is there, or between.
void copy_part(std::string& data, Random& random) {
  const size_t from = below(random, data.size()), size = 1 + below(random, 1 << random() % 7);
  const std::string part = data.substr(from, size);
  const size_t at = below(random, data.size());
  data.replace(at, random() % 2 ? std::min(part.size(), data.size() - at) : 0, part);
}

void edit(std::string& data, Random& random) {
  if (data.empty()) return;
  switch (random() % 8) {
    case 0:
      data[below(random, data.size())] ^= static_cast<char>(1 << random() % 8);
      break;
    case 1:
      data[below(random, data.size())] = static_cast<char>(random());
      break;
    case 2:
      data.erase(below(random, data.size()), 1 + below(random, 1 << random() % 7));
      break;
    case 3:
      if (random() % 8 == 0) data.resize(below(random, data.size()));
      break;
    case 4:
      copy_part(data, random);
      break;
    default:
      overwrite_number(data, random);
  }
}

void edit_some(std::string& data, Random& random) {
  for (size_t left = 1 + below(random, 4); left > 0; --left) edit(data, random);
}

// ---- what is edited ----

struct Sample {
  std::string whole;
  Records records;
};

Records records_of(const std::string& whole) {
  const ZipReader archive(std::as_bytes(std::span(whole.data(), whole.size())));
  Records found;
  std::vector<std::string> names = {"weft/version", "weft/inference", "weft/gradients",
                                    "weft/tensors", "weft/x86-64",    "weft/packed"};
  for (const char* each : {"data/", "weft/packed/"}) {
    for (int i = 0; archive.has(str(each, i)); ++i) names.push_back(str(each, i));
  }
  for (const std::string& name : names) {
    if (!archive.has(name)) continue;
    const ZipReader::Bytes bytes = archive.record(name);
    found[name].assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return found;
}

std::vector<Sample> samples_of(const Options& options) {
  std::vector<std::string> files = {image(), image("1", true)};
  for (const std::string& path : options.files) {
    std::ifstream in(path, std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  std::vector<Sample> samples;
  for (const std::string& whole : files) samples.push_back({whole, records_of(whole)});
  return samples;
}

std::string archive_of(const Records& records, bool is_wide) {
  Zip zip(is_wide);
  for (const auto& [name, data] : records) zip.add(name, data);
  return zip.bytes();
}

// A file with edits anywhere, or in one record of an archive that is whole otherwise.
std::string damaged(const Sample& sample, Random& random) {
  if (random() % 4 == 0) {
    std::string whole = sample.whole;
    edit_some(whole, random);
    return whole;
  }
  Records records = sample.records;
  edit_some(std::next(records.begin(), below(random, records.size()))->second, random);
  return archive_of(records, random() % 8 == 0);
}

// ---- one case ----

struct Deadline {
  Clock::time_point end;
};

int is_over(void* deadline) { return Clock::now() > static_cast<Deadline*>(deadline)->end; }

void* allocate(size_t bytes, void*) {
  return bytes > kMostBytes ? nullptr : std::aligned_alloc(64, (bytes + 63) / 64 * 64);
}

weft_tensor* ones(std::vector<int64_t> sizes) {
  weft_tensor* made = nullptr;
  weft_tensor_empty(WEFT_FLOAT32, static_cast<int>(sizes.size()), sizes.data(), &made);
  float* data = static_cast<float*>(weft_tensor_data(made));
  std::fill(data, data + weft_tensor_numel(made), 1.0f);
  return made;
}

void run(weft_module* module) {
  weft_tensor *x = ones({2, 3}), *y = nullptr;
  for (const int records : {0, 1}) {
    weft_tensor_set_requires_grad(x, records);
    if (weft_module_forward(module, &x, 1, &y) != WEFT_OK) continue;
    if (records) weft_tensor_backward(y, nullptr, 0);
    weft_tensor_release(y);
  }
  weft_tensor_release(x);
}

// Whether the file was loaded.
bool load_and_run(const std::string& file, Deadline& deadline) {
  deadline.end = Clock::now() + std::chrono::milliseconds(static_cast<int>(kRunSeconds * 1000));
  weft_module* module = nullptr;
  if (weft_module_load_memory(file.data(), file.size(), &module) != WEFT_OK) return false;
  weft_module_train(module, 1);
  run(module);
  weft_module_release(module);
  return true;
}

bool read_header(Random& random) {
  std::string text(kHeader);
  edit_some(text, random);
  try {
    capi::read_state_header(text);
    return true;
  } catch (const Error&) {
    return false;
  }
}

bool run_case(const std::vector<Sample>& samples, uint64_t seed, uint64_t number,
              Deadline& deadline) {
  Random random(seed << 40 ^ number);
  if (number % 8 == 0) return read_header(random);
  return load_and_run(damaged(samples[below(random, samples.size())], random), deadline);
}

// ---- all cases ----

// What the processes of the cases tell the one that waits for them.
struct Progress {
  uint64_t number, loaded;
};

[[noreturn]] void run_batch(const std::vector<Sample>& samples, const Options& options,
                            uint64_t end, Progress& progress) {
  Deadline deadline;
  weft_set_num_threads(1);
  weft_allow_machine_code(0);
  weft_set_allocator(allocate, [](void* block, size_t, void*) { std::free(block); }, nullptr);
  weft_set_cancellation(is_over, &deadline);
  for (; progress.number < end; ++progress.number) {
    alarm(kSeconds);
    progress.loaded += run_case(samples, options.seed, progress.number, deadline);
  }
  alarm(0);
  weft_set_cancellation(nullptr, nullptr);
  std::exit(0);
}

// Whether all cases ended well.
bool run_all(const Options& options) {
  const std::vector<Sample> samples = samples_of(options);
  void* shared =
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto& progress = *new (shared) Progress{options.first, 0};
  const uint64_t end = options.first + options.count;
  const Clock::time_point start = Clock::now();
  while (progress.number < end) {
    const uint64_t batch_end = std::min(progress.number + kBatch, end);
    const pid_t child = fork();
    if (child == 0) run_batch(samples, options, batch_end, progress);
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) {
      std::printf(
          "case %llu of seed %llu: %s %d\n", static_cast<unsigned long long>(progress.number),
          static_cast<unsigned long long>(options.seed), WIFSIGNALED(status) ? "signal" : "status",
          WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
      return false;
    }
  }
  const std::chrono::duration<double> seconds = Clock::now() - start;
  std::printf("%llu cases in %.0f s, %.0f a second: %llu loaded, the others refused\n",
              static_cast<unsigned long long>(options.count), seconds.count(),
              static_cast<double>(options.count) / seconds.count(),
              static_cast<unsigned long long>(progress.loaded));
  return true;
}

Options options_of(int argc, char** argv) {
  Options options;
  const std::map<std::string, uint64_t*> numbers = {
      {"--count", &options.count}, {"--first", &options.first}, {"--seed", &options.seed}};
  for (int i = 1; i < argc; ++i) {
    const auto found = numbers.find(argv[i]);
    if (found == numbers.end()) {
      options.files.emplace_back(argv[i]);
    } else if (++i < argc) {
      *found->second = std::strtoull(argv[i], nullptr, 10);
    }
  }
  return options;
}

}  // namespace
}  // namespace weft::testing

int main(int argc, char** argv) {
  return weft::testing::run_all(weft::testing::options_of(argc, argv)) ? 0 : 1;
}
