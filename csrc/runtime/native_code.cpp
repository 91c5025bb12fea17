#include "runtime/native_code.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "core/error.h"

namespace weft {
namespace {

constexpr std::string_view kImageMagic = "WFTNATIV";
constexpr uint32_t kVersion = 1;

// Reads an image from front to back; running out of bytes is the image's fault.
class Reader {
 public:
  explicit Reader(std::string_view image) : rest_(image) {}

  std::string_view take(size_t count) {
    WEFT_CHECK(count <= rest_.size(), "native code: expected ", count, " more bytes, got ",
               rest_.size());
    const std::string_view part = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return part;
  }
  uint32_t number() {
    uint32_t value;
    std::memcpy(&value, take(sizeof(value)).data(), sizeof(value));
    return value;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

struct Import {
  uint32_t cell;
  void* address;
};

// A function of libweft's, which Python loads apart from the others, or of the C library.
void* find_function(const std::string& name) {
  static Dl_info self;
  static void* const own = dladdr(reinterpret_cast<void*>(&find_function), &self)
                               ? dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD)
                               : nullptr;
  if (void* found = dlsym(own ? own : RTLD_DEFAULT, name.c_str())) return found;
  static void* const math = dlopen("libm.so.6", RTLD_LAZY | RTLD_LOCAL);
  return math ? dlsym(math, name.c_str()) : nullptr;
}

}  // namespace

std::shared_ptr<const NativeCode> NativeCode::load(std::string_view image) {
  Reader reader(image);
  WEFT_CHECK(reader.take(kImageMagic.size()) == kImageMagic,
             "native code: expected an image, got other data");
  const uint32_t version = reader.number();
  WEFT_CHECK(version == kVersion, "native code: expected version ", kVersion, ", got ", version);
  const uint32_t isa = reader.number();
  const auto own = static_cast<uint32_t>(tile::active_isa());
  WEFT_CHECK(isa <= own, "native code: expected instruction set ", own, " at most, got ", isa);
  const uint32_t entry = reader.number(), size = reader.number(), count = reader.number();
  std::vector<Import> imports;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t cell = reader.number(), length = reader.number();
    const std::string name(reader.take(length));
    WEFT_CHECK(size >= 8 && cell <= size - 8, "native code: expected a cell below ", size, ", got ",
               cell);
    void* address = find_function(name);
    WEFT_CHECK(address, "native code: expected a known function, got '", name, "'");
    imports.push_back({cell, address});
  }
  WEFT_CHECK(reader.rest().size() == size && entry < size, "native code: expected ", size,
             " bytes of code with an entry in it, got ", reader.rest().size(), " and entry ",
             entry);

  std::shared_ptr<NativeCode> code(new NativeCode);
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  code->nbytes_ = (size + page - 1) / page * page;
  void* memory =
      mmap(nullptr, code->nbytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  WEFT_CHECK(memory != MAP_FAILED, "native code: expected ", code->nbytes_,
             " bytes of memory, got none");
  code->memory_ = memory;
  std::memcpy(memory, reader.rest().data(), size);
  for (const Import& one : imports) {
    std::memcpy(static_cast<char*>(memory) + one.cell, &one.address, sizeof(one.address));
  }
  WEFT_CHECK(mprotect(memory, code->nbytes_, PROT_READ | PROT_EXEC) == 0,
             "native code: expected the system to allow new code, got a refusal");
  code->entry_ = reinterpret_cast<tile::KernelFn>(static_cast<char*>(memory) + entry);
  __builtin___clear_cache(static_cast<char*>(memory), static_cast<char*>(memory) + size);
  return code;
}

NativeCode::~NativeCode() {
  if (memory_) munmap(memory_, nbytes_);
}

}  // namespace weft
