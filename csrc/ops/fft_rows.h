// Groups of sequences, lane by lane, and the loops over them.
#pragma once

#include <cstdint>
#include <vector>

namespace weft::fft {

// A row is the entries of one index of kRow sequences, as many as fill a cache line and the widest
// register; a row of real parts and one of imaginary parts make an entry, and a group of sequences
// of n is n entries. So no loop mixes lanes: a sequence's result does not depend on its neighbours.
template <class T>
constexpr int64_t kRow = 64 / static_cast<int64_t>(sizeof(T));
template <class T>
constexpr int64_t kEntry = 2 * kRow<T>;

// A prime factor has a stage of its own up to here.
constexpr int64_t kMostRadix = 61;

// One factor of the length: blocks of radix * count entries become `radix` blocks of `count`.
template <class T>
struct Stage {
  int64_t radix, count;
  std::vector<T> turns;  // [count - 1, radix - 1, 2]: cosines and sines from the second entry on
  std::vector<T> roots;  // [radix, 2], for a radix that has no butterfly
};

// Runs all stages in place; result k is left at the entry whose digits are those of k reversed.
template <class T>
void run_stages(const std::vector<Stage<T>>& stages, T* rows);

// to[k] = from[order[k]] * factors[k] (cosine, sine), with real and imaginary parts of what is
// read exchanged if asked to. Without `order`, from[k].
template <class T>
void times_factors(int64_t count, const T* factors, const int32_t* order, const T* from, T* to,
                   bool exchange);

// rows[k] *= table[k * stride] and on, a factor for each lane: [cosines, sines].
template <class T>
void times_table(int64_t count, const T* cosines, const T* sines, int64_t stride, T* rows);

// Where the sequences of a group lie in memory. Their elements are numbers, or the two parts of
// complex ones: element t stands at lane[l] + t / 2 * step + t % 2 * part.
template <class T>
struct Lanes {
  enum class Access {
    Contiguous,        // each sequence's elements follow each other
    Interleaved,       // each element's lanes do
    InterleavedPairs,  // each complex number's lanes do
    Strided,           // neither
  };
  Access access;
  int64_t count;  // sequences; the other lanes are copies of the last (Contiguous) or not written
  int64_t step, part;
  T* lane[kRow<T>];

  T* at(int64_t l, int64_t t) const { return lane[l] + t / 2 * step + t % 2 * part; }
};

// How the elements of sequences are held by rows: element t of a whole one by the row at
// place(t / 2) of real (even t) or imaginary parts.
template <class T>
struct Rows {
  T* rows;
  const int32_t* order = nullptr;  // null: in order
  bool exchange = false;           // real and imaginary parts change places
  bool real = false;               // one number an entry: element t by the real part of place(t)

  T* entry(int64_t k) const { return rows + (order ? order[k] : k) * kEntry<T>; }
  // Where in an entry the real (0) and the imaginary parts (1) stand.
  int64_t part(int64_t which) const { return (exchange ? 1 - which : which) * kRow<T>; }
  T* at(int64_t t) const { return real ? entry(t) + part(0) : entry(t / 2) + part(t & 1); }
};

// The first `count` elements from memory to rows and back; what goes out is scaled. Meanwhile those
// of `next`, if it is not null and its elements follow each other, come nearer: these move memory
// that the next call needs, at 16 addresses at once, which no processor sees by itself.
template <class T>
void gather(const Lanes<T>& lanes, int64_t count, const Rows<T>& rows,
            const Lanes<T>* next = nullptr);
template <class T>
void scatter(const Lanes<T>& lanes, int64_t count, T scale, const Rows<T>& rows,
             const Lanes<T>* next = nullptr);

// A real sequence of 2 m numbers was transformed as a complex one of m, left at `order`: makes
// twice its m + 1 entries of that, the last at order[m]. turns: [m + 1, 2] of exp(-pi i k / m).
template <class T>
void split_half(int64_t m, const T* turns, const int32_t* order, T* rows);
// The reverse, of entries in order, up to the transform. Real and imaginary parts come out
// exchanged, for the inverse.
template <class T>
void merge_half(int64_t m, const T* turns, T* rows);

}  // namespace weft::fft
