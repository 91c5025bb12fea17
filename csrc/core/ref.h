// Intrusive reference counting: one word in the object, one pointer in the handle.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace weft {

// Base of everything shared. Starts at zero references; the first Ref makes it one.
// A derived class may declare `static void destroy(T*)` to replace `delete` (free lists, pending
// lists).
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  // The first and the last reference need no locked instruction: nobody else can reach the object.
  void retain() const noexcept {
    if (refs_.load(std::memory_order_relaxed) == 0) {
      refs_.store(1, std::memory_order_relaxed);
    } else {
      refs_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  // True when this was the last reference: the caller must destroy the object.
  bool release() const noexcept {
    if (refs_.load(std::memory_order_acquire) == 1) {
      refs_.store(0, std::memory_order_relaxed);
      return true;
    }
    return (refs_.fetch_sub(1, std::memory_order_acq_rel) & kCount) == 1;
  }
  uint32_t use_count() const noexcept { return refs_.load(std::memory_order_acquire) & kCount; }

  // From now on somebody may find the object without holding a reference: the last reference goes
  // by a locked instruction, so that try_retain can tell. Call while holding one.
  void allow_try_retain() const noexcept { refs_.fetch_or(kWeak, std::memory_order_relaxed); }
  // One more reference, unless the last one is gone. The object's memory must still be there: its
  // destroy waits for whoever searches.
  bool try_retain() const noexcept {
    uint32_t seen = refs_.load(std::memory_order_relaxed);
    while ((seen & kCount) != 0) {
      if (refs_.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel)) return true;
    }
    return false;
  }

 protected:
  ~RefCounted() = default;

 private:
  static constexpr uint32_t kWeak = 1u << 31, kCount = kWeak - 1;
  mutable std::atomic<uint32_t> refs_{0};
};

template <class T>
void destroy_ref(T* object) {
  if constexpr (requires { T::destroy(object); }) {
    T::destroy(object);
  } else {
    delete object;
  }
}

template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  explicit Ref(T* object) noexcept : ptr_(object) {
    if (ptr_) ptr_->retain();
  }
  Ref(const Ref& other) noexcept : Ref(other.ptr_) {}
  Ref(Ref&& other) noexcept : ptr_(std::exchange(other.ptr_, nullptr)) {}
  template <class U>
    requires std::is_convertible_v<U*, T*>
  Ref(Ref<U> other) noexcept : ptr_(other.detach()) {}
  ~Ref() { reset(); }

  Ref& operator=(Ref other) noexcept {
    std::swap(ptr_, other.ptr_);
    return *this;
  }

  // Takes over a reference that the caller already owns.
  static Ref adopt(T* object) noexcept {
    Ref ref;
    ref.ptr_ = object;
    return ref;
  }
  // Gives the reference to the caller.
  T* detach() noexcept { return std::exchange(ptr_, nullptr); }
  void reset() noexcept {
    if (T* old = std::exchange(ptr_, nullptr); old && old->release()) destroy_ref(old);
  }

  T* get() const noexcept { return ptr_; }
  T* operator->() const noexcept { return ptr_; }
  T& operator*() const noexcept { return *ptr_; }
  explicit operator bool() const noexcept { return ptr_ != nullptr; }
  friend bool operator==(const Ref& a, const Ref& b) noexcept { return a.ptr_ == b.ptr_; }

 private:
  T* ptr_ = nullptr;
};

template <class T, class... Args>
Ref<T> make_ref(Args&&... args) {
  return Ref<T>(new T(std::forward<Args>(args)...));
}

}  // namespace weft
