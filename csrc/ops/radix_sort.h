// Sorting long rows by the digits of their keys, the least significant first (Knuth, The Art of
// Computer Programming, volume 3, 5.2.5): as many sweeps as keys have digits, whatever their order.
#pragma once

#include <array>
#include <utility>

#include "core/thread_pool.h"
#include "ops/scratch.h"
#include "ops/sort_keys.h"

namespace weft::native {

// Emits (place, key, index) for indices [0, count) in the order of key_at(index), equal keys in the
// order of their indices. Threads share it when there is enough and they are free.
template <class Key, int kBits, class KeyAt, class Emit>
class RadixSort {
 public:
  RadixSort(int64_t count, KeyAt& key_at, Emit& emit)
      : count_(count),
        key_at_(key_at),
        emit_(emit),
        parts_(parts_of(count)),
        counts_(parts_ * kDigits * kBuckets),
        memory_(2 * count) {}

  void run() {
    count_digits();
    int last = kDigits - 1;
    while (last > 0 && is_same(last)) --last;
    Entry *from = nullptr, *to = memory_.data(), *next = to + count_;
    for (int digit = 0; digit < last; ++digit) {
      if (is_same(digit)) continue;
      if (from) count_again(from, digit);
      move(from, digit, [to](uint32_t place, Entry entry) { to[place] = entry; });
      from = to;
      std::swap(to, next);
    }
    if (from) count_again(from, last);
    move(from, last, [this](uint32_t place, Entry entry) {
      emit_(static_cast<int64_t>(place), key_of<Key>(entry), index_of<Key>(entry));
    });
  }

 private:
  using Entry = Packed<Key>;
  static constexpr int kDigits = (static_cast<int>(sizeof(Key)) * 8 + kBits - 1) / kBits;
  static constexpr int64_t kBuckets = int64_t{1} << kBits;
  static constexpr int64_t kPart = int64_t{1} << 16;  // entries that are worth a thread

  static int64_t parts_of(int64_t count) {
    if (in_parallel_region()) return 1;
    return std::clamp<int64_t>(count / kPart, 1, num_threads());
  }
  static int64_t bucket(Key key, int digit) {
    return static_cast<int64_t>(key >> (digit * kBits)) & (kBuckets - 1);
  }
  uint32_t* counts(int64_t part, int digit) {
    return counts_.data() + (part * kDigits + digit) * kBuckets;
  }
  Entry entry(const Entry* from, int64_t i) const { return from ? from[i] : pack(key_at_(i), i); }

  // body(part, begin, end) for each of the parts.
  template <class Body>
  void each_part(Body&& body) {
    parallel_for(parts_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        body(part, part * count_ / parts_, (part + 1) * count_ / parts_);
      }
    });
  }

  void count_digits() {
    each_part([&](int64_t part, int64_t begin, int64_t end) {
      std::fill_n(counts(part, 0), kDigits * kBuckets, 0u);
      std::array<uint32_t*, kDigits> of;
      for (int d = 0; d < kDigits; ++d) of[static_cast<size_t>(d)] = counts(part, d);
      for (int64_t i = begin; i < end; ++i) {
        const Key key = key_at_(i);
        for (int d = 0; d < kDigits; ++d) ++of[static_cast<size_t>(d)][bucket(key, d)];
      }
    });
  }

  // Of the parts as the sweep before left them; one part has what it had.
  void count_again(const Entry* from, int digit) {
    if (parts_ == 1) return;
    each_part([&](int64_t part, int64_t begin, int64_t end) {
      uint32_t* const of = counts(part, digit);
      std::fill_n(of, kBuckets, 0u);
      for (int64_t i = begin; i < end; ++i) ++of[bucket(key_of<Key>(from[i]), digit)];
    });
  }

  // Whether all keys have the same digit there.
  bool is_same(int digit) {
    const int64_t of_first = bucket(key_at_(0), digit);
    int64_t found = 0;
    for (int64_t part = 0; part < parts_; ++part) found += counts(part, digit)[of_first];
    return found == count_;
  }

  // put(place, entry) for all entries in the order of one digit; no `from`: those of the keys.
  template <class Put>
  void move(const Entry* from, int digit, Put&& put) {
    uint32_t place = 0;
    for (int64_t b = 0; b < kBuckets; ++b) {
      for (int64_t part = 0; part < parts_; ++part) {
        place += std::exchange(counts(part, digit)[b], place);
      }
    }
    each_part([&](int64_t part, int64_t begin, int64_t end) {
      uint32_t* const places = counts(part, digit);
      for (int64_t i = begin; i < end; ++i) {
        const Entry moved = entry(from, i);
        put(places[bucket(key_of<Key>(moved), digit)]++, moved);
      }
    });
  }

  int64_t count_;
  KeyAt& key_at_;
  Emit& emit_;
  int64_t parts_;
  Scratch<uint32_t> counts_;
  Scratch<Entry> memory_;
};

template <class Key, class KeyAt, class Emit>
void radix_sort(int64_t count, KeyAt&& key_at, Emit&& emit) {
  // Eleven bits: three sweeps for 32, and what they write to still fits in the caches. Counting
  // so many digits costs more than a sweep of few entries.
  constexpr int64_t kMany = 8192;
  if (count == 0) return;
  if (sizeof(Key) > 2 && count >= kMany) {
    RadixSort<Key, 11, KeyAt, Emit>(count, key_at, emit).run();
  } else {
    RadixSort<Key, 8, KeyAt, Emit>(count, key_at, emit).run();
  }
}

}  // namespace weft::native
