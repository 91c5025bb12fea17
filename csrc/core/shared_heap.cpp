#include "core/shared_heap.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <vector>

#include "core/error.h"

namespace weft {
namespace {

constexpr uint64_t kHeapMagic = 0x3173706165687766;  // "fwheaps1"

// Every heap this process has open; never destroyed, because storages may outlive static objects.
std::vector<std::unique_ptr<SharedHeap>>& heaps() {
  static auto* const list = new std::vector<std::unique_ptr<SharedHeap>>;
  return *list;
}

SharedHeap* filling = nullptr;  // one of them, where new segments go

}  // namespace

// ---- the file ----

void SharedHeap::map_header(const char* op) {
  void* address = mmap(nullptr, sizeof(Header), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  WEFT_CHECK(address != MAP_FAILED, op, ": expected to map the header of a heap, got \"",
             std::strerror(errno), "\"");
  header_ = static_cast<Header*>(address);
}

SharedHeap::~SharedHeap() {
  if (header_ != nullptr) munmap(header_, sizeof(Header));
  if (fd_ >= 0) close(fd_);
}

SharedHeap& SharedHeap::open_new(const char* op) {
  prune();
  std::unique_ptr<SharedHeap> heap(new SharedHeap);
  heap->fd_ = detail::open_anonymous(op);
  heap->end_ = detail::round_to_page(sizeof(Header));
  detail::fill_file(op, heap->fd_, 0, heap->end_, nullptr);
  size_t size = 0;
  heap->key_ = detail::key_of_file(op, heap->fd_, &size);
  heap->map_header(op);
  Header& header = *heap->header_;
  header.magic = kHeapMagic;
  WEFT_CHECK(getentropy(header.identity, sizeof header.identity) == 0, op,
             ": expected random bytes of the system, got \"", std::strerror(errno), "\"");
  heaps().push_back(std::move(heap));
  return *heaps().back();
}

size_t SharedHeap::space_for(size_t nbytes) const noexcept {
  rlimit limit{};
  if (header_->used.load() == kSlots) return 0;
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return nbytes;
  return limit.rlim_cur > end_ ? limit.rlim_cur - end_ : 0;
}

std::unique_ptr<SharedSegment> SharedHeap::create(const char* op, size_t nbytes,
                                                  const void* contents) {
  if (filling == nullptr || filling->space_for(nbytes) < nbytes) {
    filling = nullptr;  // first, so that it can be closed
    filling = &open_new(op);
  }
  SharedHeap& heap = *filling;
  const size_t offset = heap.end_;
  std::unique_ptr<SharedSegment> segment(new SharedSegment);
  try {
    detail::fill_file(op, heap.fd_, offset, nbytes, contents);
    segment->map(op, heap.fd_, nbytes, offset, false);
  } catch (...) {
    fallocate(heap.fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
              static_cast<off_t>(detail::round_to_page(nbytes)));
    throw;
  }
  heap.end_ = offset + detail::round_to_page(nbytes);
  const uint32_t index = heap.header_->used.load();
  Slot& slot = heap.header_->slots[index];
  slot.offset = offset;
  slot.nbytes = nbytes;
  slot.users.store(1);
  heap.header_->used.store(index + 1);
  segment->key_ = {heap.key_.device, heap.key_.inode, offset};
  segment->heap_ = &heap;
  segment->slot_ = index;
  ++heap.segments_;
  return segment;
}

// ---- names ----

std::string SharedHeap::manager() const { return str("/proc/", getpid(), "/fd/", fd_); }

std::string SharedHeap::name_of(uint32_t slot) const {
  char text[64];
  std::snprintf(text, sizeof text, "/weft_%016" PRIx64 "%016" PRIx64 "_%" PRIu32,
                header_->identity[0], header_->identity[1], slot);
  return text;
}

std::unique_ptr<SharedHeap> SharedHeap::open_path(const std::string& path,
                                                  const uint64_t identity[2]) {
  constexpr const char* op = "open shared memory";
  std::unique_ptr<SharedHeap> heap(new SharedHeap);
  int pid = 0, number = 0, length = 0;
  const bool known = std::sscanf(path.c_str(), "/proc/%d/fd/%d%n", &pid, &number, &length) == 2 &&
                     static_cast<size_t>(length) == path.size();
  WEFT_CHECK(known, op, ": expected a manager /proc/<process>/fd/<number>, got ", path);
  heap->fd_ = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  const int error = errno;
  WEFT_CHECK(heap->fd_ >= 0 || (error != EMFILE && error != ENFILE), op,
             ": expected a free file descriptor, got none (ulimit -n); raise the limit");
  WEFT_CHECK(heap->fd_ >= 0 || error != ENOENT, op, ": expected process ", pid,
             " to hold the memory of its tensor, got one that has ended or let go; keep the sender "
             "alive until the tensor has arrived");
  WEFT_CHECK(heap->fd_ >= 0, op, ": expected access to the memory of process ", pid, ", got \"",
             std::strerror(error), "\"; set_sharing_strategy('file_descriptor') in the sender");
  size_t size = 0;
  heap->key_ = detail::key_of_file(op, heap->fd_, &size);
  bool same = size >= sizeof(Header);
  if (same) {
    heap->map_header(op);
    const Header& header = *heap->header_;
    same = header.magic == kHeapMagic && header.identity[0] == identity[0] &&
           header.identity[1] == identity[1];
  }
  WEFT_CHECK(same, op, ": expected process ", pid,
             " to hold the memory of its tensor, got another file; keep the sender alive until the "
             "tensor has arrived");
  return heap;
}

SharedHeap& SharedHeap::find(const std::string& manager, const std::string& name, uint32_t* slot) {
  uint64_t identity[2];
  int length = 0;
  const bool known = std::sscanf(name.c_str(), "/weft_%16" SCNx64 "%16" SCNx64 "_%" SCNu32 "%n",
                                 &identity[0], &identity[1], slot, &length) == 3 &&
                     static_cast<size_t>(length) == name.size();
  WEFT_CHECK(known, "open shared memory: expected a name /weft_<identity>_<slot>, got ", name);
  for (const auto& heap : heaps()) {
    const Header& header = *heap->header_;
    if (header.identity[0] == identity[0] && header.identity[1] == identity[1]) return *heap;
  }
  prune();
  heaps().push_back(open_path(manager, identity));
  return *heaps().back();
}

// ---- segments ----

SharedKey SharedHeap::key_of(const char* op, uint32_t index, size_t nbytes) const {
  WEFT_CHECK(index < header_->used.load() && index < kSlots, op, ": expected a slot below ",
             header_->used.load(), ", got ", index);
  const Slot& slot = header_->slots[index];
  WEFT_CHECK(slot.nbytes == nbytes, op, ": expected ", slot.nbytes, " bytes, got ", nbytes);
  return {key_.device, key_.inode, slot.offset};
}

std::unique_ptr<SharedSegment> SharedHeap::adopt(const char* op, uint32_t index, bool read_only) {
  Slot& slot = header_->slots[index];
  size_t size = 0;
  detail::key_of_file(op, fd_, &size);
  WEFT_CHECK(slot.offset + slot.nbytes <= size, op, ": expected a file of at least ",
             slot.offset + slot.nbytes, " bytes, got ", size);
  uint32_t users = slot.users.load();
  do {
    WEFT_CHECK(users != 0, op, ": expected a tensor that somebody still holds, got ",
               name_of(index), ", which all have freed");
  } while (!slot.users.compare_exchange_weak(users, users + 1));
  std::unique_ptr<SharedSegment> segment(new SharedSegment);
  segment->heap_ = this;
  segment->slot_ = index;
  ++segments_;
  segment->key_ = {key_.device, key_.inode, slot.offset};
  segment->map(op, fd_, slot.nbytes, slot.offset, read_only);
  return segment;
}

void SharedHeap::issue_handle(uint32_t index) noexcept {
  if (std::ranges::find(issued_, index) == issued_.end()) issued_.push_back(index);
  add_user(index);
  header_->slots[index].handles.fetch_add(1);
}

bool SharedHeap::awaited() noexcept {
  std::erase_if(issued_, [&](uint32_t slot) { return header_->slots[slot].handles.load() == 0; });
  return !issued_.empty();
}

void SharedHeap::use_handle(uint32_t index) noexcept {
  std::atomic<uint32_t>& handles = header_->slots[index].handles;
  uint32_t count = handles.load();
  do {
    if (count == 0) return;  // the same name came twice
  } while (!handles.compare_exchange_weak(count, count - 1));
  drop_user(index);
}

void SharedHeap::add_user(uint32_t index) noexcept { header_->slots[index].users.fetch_add(1); }

void SharedHeap::drop_user(uint32_t index) noexcept {
  Slot& slot = header_->slots[index];
  if (slot.users.fetch_sub(1) != 1) return;
  fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(slot.offset),
            static_cast<off_t>(detail::round_to_page(slot.nbytes)));
}

void SharedHeap::leave(uint32_t index) noexcept {
  drop_user(index);
  if (--segments_ == 0) prune();
}

// ---- all heaps ----

void SharedHeap::prune() {
  std::erase_if(heaps(), [](const std::unique_ptr<SharedHeap>& heap) {
    return heap.get() != filling && heap->segments_ == 0 && !heap->awaited();
  });
}

void SharedHeap::forked() {
  filling = nullptr;
  for (const auto& heap : heaps()) heap->issued_.clear();
}

bool SharedHeap::handles_left() {
  return std::ranges::any_of(heaps(), [](const auto& heap) { return heap->awaited(); });
}

size_t SharedHeap::open_count() { return heaps().size(); }

}  // namespace weft
