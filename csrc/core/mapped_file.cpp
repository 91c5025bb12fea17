#include "core/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <system_error>

#include "core/error.h"

namespace weft {
namespace {

std::string reason(int code) { return std::system_category().message(code); }

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  int value_;
};

int open_retrying(const std::string& path, int flags) {
  for (;;) {
    const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
    if (descriptor >= 0 || errno != EINTR) return descriptor;
  }
}

// Bytes of a file that can be mapped.
size_t size_of_file(const char* op, int descriptor, const std::string& path) {
  struct stat status{};
  WEFT_CHECK(fstat(descriptor, &status) == 0, op, ": expected a file, got '", path,
             "': ", reason(errno));
  WEFT_CHECK(S_ISREG(status.st_mode), op, ": expected a regular file, got '", path, "'");
  return static_cast<size_t>(status.st_size);
}

// Makes the file longer, with room on the disk, so that no later write finds it full.
void extend(const char* op, int descriptor, const std::string& path, size_t from, size_t to) {
  const auto start = static_cast<off_t>(from), end = static_cast<off_t>(to);
  int code = 0;
  do {
    code = posix_fallocate(descriptor, start, end - start);
  } while (code == EINTR);
  if (code == EOPNOTSUPP || code == EINVAL)  // a file system that cannot promise room
    code = ftruncate(descriptor, end) == 0 ? 0 : errno;
  if (code == 0) return;
  [[maybe_unused]] const int undone = ftruncate(descriptor, start);
  fail(ErrorKind::Runtime,
       str(op, ": expected room for ", to, " bytes in '", path, "', got: ", reason(code)));
}

}  // namespace

Ref<MappedFile> MappedFile::open(const char* op, const std::string& path, MapMode mode,
                                 int64_t nbytes) {
  WEFT_CHECK(path.find('\0') == path.npos, op, ": expected a path without null bytes");
  WEFT_CHECK(nbytes <= std::numeric_limits<off_t>::max(), op, ": expected fewer bytes, got ",
             nbytes);
  const bool shared = mode == MapMode::Shared;
  int opened = open_retrying(path, shared ? O_RDWR | O_CREAT : O_RDONLY);
  const bool refused = opened < 0 && (errno == EACCES || errno == EROFS || errno == EPERM);
  const bool read_only = shared && refused;
  if (read_only) opened = open_retrying(path, O_RDONLY);
  WEFT_CHECK(opened >= 0, op, ": expected a file that can be ",
             shared && !read_only ? "written" : "read", ", got '", path, "': ", reason(errno));
  const Descriptor file(opened);
  const size_t size = size_of_file(op, file.get(), path);
  const size_t wanted = nbytes < 0 ? size : static_cast<size_t>(nbytes);
  if (wanted > size) {
    WEFT_CHECK(shared, op, ": expected a file of at least ", wanted, " bytes, got '", path, "' of ",
               size);
    WEFT_CHECK(!read_only, op, ": expected a file of at least ", wanted,
               " bytes or one that can be written, got '", path, "' of ", size,
               ", which is read-only");
    extend(op, file.get(), path, size, wanted);
  }
  Ref<MappedFile> made(new MappedFile(path, mode, read_only));
  made->map(op, file.get(), wanted);
  return made;
}

Ref<MappedFile> MappedFile::of_descriptor(const char* op, int descriptor, const std::string& path) {
  Ref<MappedFile> made(new MappedFile(path, MapMode::Private, false));
  made->map(op, descriptor, size_of_file(op, descriptor, path));
  return made;
}

void MappedFile::map(const char* op, int descriptor, size_t nbytes) {
  if (nbytes == 0) return;  // the system maps no empty ranges
  const int protection = read_only_ ? PROT_READ : PROT_READ | PROT_WRITE;
  // Private pages need memory only once they are written to: reserve none for a file that may be
  // larger than memory.
  const int flags = mode_ == MapMode::Shared ? MAP_SHARED : MAP_PRIVATE | MAP_NORESERVE;
  void* memory = mmap(nullptr, nbytes, protection, flags, descriptor, 0);
  WEFT_CHECK(memory != MAP_FAILED, op, ": expected room to map ", nbytes, " bytes of '", path_,
             "', got: ", reason(errno));
  data_ = memory;
  nbytes_ = nbytes;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(data_, nbytes_);
}

namespace {

void release_mapping(void* context) {
  // The storage's reference.
  auto* file = static_cast<MappedFile*>(context);
  if (file->release()) destroy_ref(file);
}

}  // namespace

Ref<Storage> MappedFile::storage(const char* op, int64_t offset, int64_t count) {
  const auto size = static_cast<int64_t>(nbytes_);
  WEFT_CHECK(offset >= 0 && count >= 0 && count <= size && offset <= size - count, op,
             ": expected bytes within '", path_, "' of ", size, " bytes, got ", count, " at ",
             offset);
  uint8_t flags = kForeign;
  if (mode_ == MapMode::Shared) flags |= kShared;
  if (read_only_) flags |= kReadOnly;
  retain();
  return Storage::wrap(static_cast<char*>(data_) + offset, static_cast<size_t>(count),
                       release_mapping, this, flags);
}

const MappedFile* MappedFile::of(const Storage& storage) noexcept {
  return static_cast<const MappedFile*>(storage.context_of(release_mapping));
}

}  // namespace weft
