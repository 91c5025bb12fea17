// Segments: made, mapped, adopted, given back.
#include "core/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>

#include "core/error.h"
#include "core/shared_heap.h"

namespace weft {
namespace {

// Where files go instead of anonymous memory; the user's choice, or what is left where the system
// refuses memfd_create.
constexpr const char* kFolderVariable = "WEFT_SHARED_MEMORY_DIR";
constexpr const char* kFallbackFolder = "/dev/shm";
// Below this much, the check against the memory of the machine costs more than it is worth.
constexpr size_t kCheckedBytes = size_t{64} << 20;

uint64_t limit_of(__rlimit_resource which) {
  rlimit limit{};
  if (getrlimit(which, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return std::numeric_limits<uint64_t>::max();
  return limit.rlim_cur;
}

[[noreturn]] void fail_no_descriptor(const char* op, int error) {
  WEFT_CHECK(error != EMFILE, op, ": expected a free file descriptor, got none: this process has ",
             limit_of(RLIMIT_NOFILE),
             " (ulimit -n); raise the limit or set_sharing_strategy('file_system')");
  WEFT_CHECK(error != ENFILE, op, ": expected a free file descriptor, got none on this machine ",
             "(fs.file-max); set_sharing_strategy('file_system')");
  fail(ErrorKind::Runtime,
       str(op, ": expected a new file for shared memory, got \"", std::strerror(error), "\""));
}

// The folder of the file system that has no room, empty for anonymous memory.
std::string folder_text() {
  const char* folder = std::getenv(kFolderVariable);
  return folder != nullptr ? folder : "";
}

[[noreturn]] void fail_full(const char* op, int fd, size_t nbytes, int error) {
  const std::string folder = folder_text();
  struct statvfs usage{};
  if (error == ENOSPC && fstatvfs(fd, &usage) == 0 && usage.f_blocks > 0) {
    fail(ErrorKind::Runtime,
         str(op, ": expected room for ", nbytes, " bytes of shared memory, got ",
             usage.f_bavail * usage.f_frsize, " free of ", usage.f_blocks * usage.f_frsize, " in ",
             folder.empty() ? kFallbackFolder : folder.c_str(),
             "; enlarge that file system (docker: --shm-size) or unset ", kFolderVariable));
  }
  WEFT_CHECK(error != EFBIG, op, ": expected files of ", nbytes,
             " bytes to be allowed, got at most ", limit_of(RLIMIT_FSIZE),
             " (ulimit -f); raise the limit");
  WEFT_CHECK_AS(OutOfMemory, error != ENOSPC && error != ENOMEM, op, ": expected ", nbytes,
                " bytes of shared memory, got \"", std::strerror(error),
                "\"; free memory, or raise the memory limit of the container");
  fail(ErrorKind::Runtime, str(op, ": expected ", nbytes, " bytes of shared memory, got \"",
                               std::strerror(error), "\""));
}

uint64_t meminfo(const char* wanted) {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  uint64_t kilobytes = 0;
  while (file >> name >> kilobytes) {
    if (name == wanted) return kilobytes * 1024;
    std::getline(file, unit);
  }
  return 0;
}

// More than the machine has would not raise but have processes killed.
void check_machine(const char* op, size_t nbytes) {
  if (nbytes < kCheckedBytes) return;
  const uint64_t available = meminfo("MemAvailable:") + meminfo("SwapFree:");
  WEFT_CHECK_AS(OutOfMemory, available == 0 || nbytes <= available, op, ": expected at most ",
                available, " bytes of shared memory (what the machine has left), got ", nbytes);
}

int open_in(const char* op, const char* folder) {
  const int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0) return fd;
  if (errno == EMFILE || errno == ENFILE) fail_no_descriptor(op, errno);
  fail(ErrorKind::Runtime, str(op, ": expected a folder for shared memory in ", kFolderVariable,
                               ", got ", folder, ": \"", std::strerror(errno), "\""));
}

[[noreturn]] void fail_no_mapping(const char* op, size_t nbytes, int error) {
  std::ifstream file("/proc/sys/vm/max_map_count");
  uint64_t most = 0;
  file >> most;
  fail(ErrorKind::Runtime,
       str(op, ": expected to map ", nbytes, " bytes of shared memory, got \"",
           std::strerror(error), "\"; ", shared_segment_count(), " segments are mapped: see ",
           "vm.max_map_count (", most, ") and ulimit -v, or send fewer, larger tensors"));
}

void write_all(const char* op, int fd, size_t offset, size_t nbytes, const char* bytes) {
  constexpr size_t kMost = size_t{1} << 30;  // of one call
  for (size_t done = 0; done < nbytes;) {
    const size_t part = std::min(nbytes - done, kMost);
    const ssize_t written = pwrite(fd, bytes + done, part, static_cast<off_t>(offset + done));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail_full(op, fd, nbytes, written < 0 ? errno : ENOSPC);
    done += static_cast<size_t>(written);
  }
}

}  // namespace

namespace detail {

size_t round_to_page(size_t nbytes) noexcept {
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return (nbytes + page - 1) / page * page;
}

int open_anonymous(const char* op) {
  if (const char* folder = std::getenv(kFolderVariable)) return open_in(op, folder);
  const int fd = memfd_create("weft", MFD_CLOEXEC);
  if (fd >= 0) return fd;
  if (errno == ENOSYS || errno == EPERM || errno == EACCES) return open_in(op, kFallbackFolder);
  fail_no_descriptor(op, errno);
}

void fill_file(const char* op, int fd, size_t offset, size_t nbytes, const void* contents) {
  check_machine(op, nbytes);
  // Writing takes the pages and fills them in one pass, without clearing them first.
  if (contents != nullptr)
    return write_all(op, fd, offset, nbytes, static_cast<const char*>(contents));
  int error = 0;
  do {
    error = posix_fallocate(fd, static_cast<off_t>(offset), static_cast<off_t>(nbytes));
  } while (error == EINTR);
  if (error != 0) fail_full(op, fd, nbytes, error);
}

SharedKey key_of_file(const char* op, int fd, size_t* size) {
  struct stat status{};
  WEFT_CHECK(fstat(fd, &status) == 0, op, ": expected an open file descriptor, got ", fd, ": \"",
             std::strerror(errno), "\"");
  *size = static_cast<size_t>(status.st_size);
  return {status.st_dev, status.st_ino, 0};
}

bool descriptors_short(int fd, double share) {
  return static_cast<double>(fd) >= static_cast<double>(limit_of(RLIMIT_NOFILE)) * share;
}

}  // namespace detail

void SharedSegment::map(const char* op, int fd, size_t nbytes, size_t offset, bool read_only) {
  const int access = read_only ? PROT_READ : PROT_READ | PROT_WRITE;
  void* address = mmap(nullptr, nbytes, access, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (address == MAP_FAILED) fail_no_mapping(op, nbytes, errno);
  data_ = address;
  nbytes_ = nbytes;
}

std::unique_ptr<SharedSegment> SharedSegment::create(const char* op, size_t nbytes,
                                                     const void* contents,
                                                     SharingStrategy strategy) {
  WEFT_CHECK(nbytes <= static_cast<size_t>(std::numeric_limits<off_t>::max()) / 2, op,
             ": expected a size that fits in a file, got ", nbytes, " bytes");
  if (strategy == SharingStrategy::FileSystem) return SharedHeap::create(op, nbytes, contents);
  std::unique_ptr<SharedSegment> segment(new SharedSegment);
  segment->fd_ = detail::open_anonymous(op);
  if (detail::descriptors_short(segment->fd_, 0.5)) {
    segment->close_descriptor();
    return SharedHeap::create(op, nbytes, contents);
  }
  detail::fill_file(op, segment->fd_, 0, nbytes, contents);
  size_t size = 0;
  segment->key_ = detail::key_of_file(op, segment->fd_, &size);
  segment->map(op, segment->fd_, nbytes, 0, false);
  return segment;
}

std::unique_ptr<SharedSegment> SharedSegment::adopt(const char* op, int fd, size_t nbytes,
                                                    bool read_only) {
  std::unique_ptr<SharedSegment> segment(new SharedSegment);
  segment->fd_ = fd;
  size_t size = 0;
  segment->key_ = detail::key_of_file(op, fd, &size);
  WEFT_CHECK(nbytes > 0 && nbytes <= size, op, ": expected 1 to ", size,
             " bytes (the size of the file), got ", nbytes);
  segment->map(op, fd, nbytes, 0, read_only);
  // The mapping keeps the file; the descriptor only serves to send it on.
  if (detail::descriptors_short(fd, 0.8)) segment->close_descriptor();
  return segment;
}

std::unique_ptr<SharedSegment> SharedSegment::over(const char* op, int fd, size_t nbytes) {
  std::unique_ptr<SharedSegment> segment(new SharedSegment);
  segment->map(op, fd, nbytes, 0, false);
  return segment;
}

void SharedSegment::close_descriptor() noexcept {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

int new_shared_file(const char* op, size_t nbytes) {
  const int fd = detail::open_anonymous(op);
  try {
    detail::fill_file(op, fd, 0, nbytes, nullptr);
  } catch (...) {
    close(fd);
    throw;
  }
  return fd;
}

SharedSegment::~SharedSegment() {
  if (data_ != nullptr) munmap(data_, nbytes_);
  close_descriptor();
  if (heap_ != nullptr) heap_->leave(slot_);
}

}  // namespace weft
