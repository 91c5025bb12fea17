#include "autograd/pool.h"

#include <new>

#include "autograd/mode.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WEFT_POOL_OFF 1
#else
#define WEFT_POOL_OFF 0
#endif

namespace weft::autograd {
namespace {

constexpr size_t kStep = 64;
constexpr size_t kClasses = 8;

struct Block {
  Block* next;
};
struct Pool {
  Block* head[kClasses] = {};
  unsigned count[kClasses] = {};

  ~Pool() {
    for (Block* block : head) {
      while (block) {
        Block* next = block->next;
        ::operator delete(block);
        block = next;
      }
    }
  }
};

constinit thread_local Pool* pool WEFT_FAST_TLS = nullptr;
constinit thread_local bool closed WEFT_FAST_TLS = false;

// Frees the thread's pool when the thread ends; blocks freed later go to the system.
struct Owner {
  ~Owner() {
    delete pool;
    pool = nullptr;
    closed = true;
  }
};
thread_local Owner owner;

Pool* open_pool() {
  if (closed) return nullptr;
  [[maybe_unused]] volatile Owner* registered = &owner;  // runs the destructor at thread end
  return pool = new (std::nothrow) Pool();
}

constexpr size_t class_of(size_t size) { return (size - 1) / kStep; }

}  // namespace

void* pool_allocate(size_t size) {
  const size_t cls = class_of(size);
  if (WEFT_POOL_OFF || cls >= kClasses) return ::operator new(size);
  if (Pool* mine = pool) {
    if (Block* block = mine->head[cls]) {
      mine->head[cls] = block->next;
      --mine->count[cls];
      return block;
    }
  }
  return ::operator new((cls + 1) * kStep);
}

void pool_free(void* block, size_t size) noexcept {
  const size_t cls = class_of(size);
  if (!WEFT_POOL_OFF && cls < kClasses) {
    Pool* mine = pool ? pool : open_pool();
    if (mine && mine->count[cls] < kPoolKeep) {
      mine->head[cls] = new (block) Block{mine->head[cls]};
      ++mine->count[cls];
      return;
    }
  }
  ::operator delete(block);
}

}  // namespace weft::autograd
