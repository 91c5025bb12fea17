#include "ops/tile.h"

#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "core/thread_pool.h"
#include "ops/donation.h"
#include "ops/strided.h"
#include "ops/tile_drivers.h"
#include "ops/tile_operand.h"
#include "ops/tile_plan.h"

namespace weft::tile {
namespace {

Isa best_isa() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4")) return Isa::V4;
  if (__builtin_cpu_supports("x86-64-v3")) return Isa::V3;
  return Isa::V2;
#else
  return Isa::V4;
#endif
}

Isa choose_isa() {
  const Isa best = best_isa();
  const char* wish = std::getenv("WEFT_ISA");
  if (!wish) return best;
  const std::string_view name = wish;
  const Isa wanted = name == "v2" ? Isa::V2 : name == "v3" ? Isa::V3 : Isa::V4;
  return std::min(best, wanted);
}

const Isa g_isa = choose_isa();

// Strictly row-major: new results can take the layout over as it is.
bool is_plain(const Layout& layout) {
  int64_t expected = 1;
  for (size_t d = layout.sizes.size(); d-- > 0;) {
    if (layout.strides[d] != expected) return false;
    expected *= layout.sizes[d];
  }
  return true;
}

// Whether an operand of these sizes broadcasts to `all` by repeating as a whole.
bool repeats(const Layout& layout, const Dims& all) {
  const size_t ndim = layout.sizes.size();
  return ndim <= all.size() && (layout.numel() == 1 || same(layout.sizes, IntList(all).last(ndim)));
}

void end_of_stream() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

// Results from here on are stored past the caches: a quarter of the last one, so that it would not
// hold an operator's operands and the result for the next operator.
size_t non_temporal_bytes() {
#if defined(__x86_64__) && defined(_SC_LEVEL3_CACHE_SIZE)
  static const size_t bytes = [] {
    const int64_t cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return static_cast<size_t>(std::max<int64_t>(cache > 0 ? cache / 4 : 0, int64_t{8} << 20));
  }();
  return bytes;
#else
  return SIZE_MAX;
#endif
}

// The case that decides what a small operator costs: one step, inputs of one dtype, row-major, of
// one shape (small ones may repeat: a number, a bias), all on the CPU, results new or in place.
// Takes no decision that the full driver would take otherwise.
class FastPath {
 public:
  FastPath(const Program& program, const Call& call, std::span<Tensor> results)
      : program_(program), step_(program.steps[0]), call_(call), results_(results) {}

  bool run() {
    if (!accepts_inputs() || !accepts_attributes() || !accepts_results()) return false;
    kernel_ = step_.horizontal->get(dtype_);
    if (!kernel_) return false;
    if (dtype_ == compute_type(dtype_)) {
      for (size_t i = 0; i < call_.attributes.size(); ++i) {
        const DType dtype = slot_dtype(program_.attribute_types[i], dtype_);
        call_.attributes[i].store(dtype, scalars_[kFirstAttribute + i].bytes);
      }
    } else {
      store_attributes(program_, call_, {dtype_, compute_type(dtype_)}, scalars_);
    }
    if (repeated_) {
      set_period();
      Arena arena(static_cast<size_t>(std::popcount(repeated_)) * Arena::rounded(period_bytes()));
      bind(&arena);
      run_kernel();
    } else {
      bind(nullptr);
      run_kernel();
    }
    return true;
  }

 private:
  // Elements of a tile that repeats, about: it has to stay in the L1 cache while much streams by.
  static constexpr int64_t kPeriod = kTile;
  // What is longer costs threads their even parts.
  static constexpr int64_t kMostRepeated = 32768;

  bool is_mask(size_t input) const { return (program_.bool_inputs >> input) & 1u; }

  bool accepts_inputs() {
    if (program_.int_inputs || call_.dtype) return false;
    for (size_t i = 0; i < call_.inputs.size(); ++i) {
      const TensorImpl* input = call_.inputs[i]->impl();
      if (!input || !input->storage->on_cpu()) return false;
      if (is_mask(i)) continue;
      if (!full_) dtype_ = input->dtype;
      if (input->dtype != dtype_) return false;
      if (!full_ || input->layout.dim() > full_->layout.dim()) full_ = input;
    }
    if (!full_ || !is_plain(full_->layout)) return false;
    numel_ = full_->layout.numel();
    for (size_t i = 0; i < call_.inputs.size(); ++i) {
      const TensorImpl* other = call_.inputs[i]->impl();
      if (other != full_ && !accepts_beside(*other, i)) return false;
    }
    // Floats of 16 bits have kernels where these are short; they are not repeated.
    if (dtype_ != compute_type(dtype_) && repeated_) return false;
    return program_.promotion == Promotion::Common || category(dtype_) > DTypeCategory::Integral;
  }

  bool accepts_beside(const TensorImpl& other, size_t i) {
    if (is_mask(i) && other.dtype != DType::Bool) return false;
    if (other.layout.sizes == full_->layout.sizes) {
      return other.layout.strides == full_->layout.strides;
    }
    if (is_mask(i) || !is_plain(other.layout) || !repeats(other.layout, full_->layout.sizes)) {
      return false;
    }
    repeated_ |= 1u << i;
    const int64_t length = other.layout.numel();
    if (length == 1) return true;
    if (row_ == 1) row_ = length;
    return row_ == length && row_ <= kMostRepeated;
  }

  // How many elements a kernel takes at once where inputs repeat: whole rows.
  void set_period() {
    if (row_ == 0) return;
    const int64_t most = std::max(kPeriod / row_, int64_t{1}) * row_;
    period_ = std::min(numel_, most);
  }

  bool accepts_attributes() const {
    for (const Scalar& value : call_.attributes) {
      if (value.category() > category(dtype_)) return false;
      if (program_.no_masks && value.category() == DTypeCategory::Bool) return false;
    }
    return true;
  }

  // New results, or a given one laid out as the inputs are: the plain in-place and `out=` calls.
  bool accepts_results() const {
    for (const Slot& slot : program_.slots) {
      if (slot.kind == SlotKind::Input) {
        const DType actual = call_.inputs[slot.index]->dtype();
        if (slot_dtype(slot.type, dtype_) != actual) return false;
      }
      if (slot.kind != SlotKind::Output) continue;
      const TensorImpl* result = results_[slot.index].impl();
      if (!result) continue;
      if (!is_like_inputs(*result) || results_.size() > 1) return false;
      if (slot_dtype(slot.type, dtype_) != dtype_ || !inputs_apart(result)) return false;
    }
    return true;
  }
  bool is_like_inputs(const TensorImpl& tensor) const {
    return &tensor == full_ || (tensor.storage->on_cpu() && tensor.dtype == dtype_ &&
                                tensor.layout.sizes == full_->layout.sizes &&
                                tensor.layout.strides == full_->layout.strides);
  }
  // Every input lies exactly over the result or does not touch it.
  bool inputs_apart(const TensorImpl* result) const {
    const char* begin = static_cast<const char*>(result->storage->address()) +
                        result->layout.offset * static_cast<int64_t>(item_size(dtype_));
    for (const Tensor* input : call_.inputs) {
      const char* other = static_cast<const char*>(input->address());
      const auto span = input->numel() * static_cast<int64_t>(input->item_size());
      const bool exact = other == begin && input->numel() == numel_ && input->dtype() == dtype_;
      if (!exact && other < begin + full_bytes() && begin < other + span) return false;
    }
    return true;
  }

  size_t full_bytes() const { return static_cast<size_t>(numel_) * item_size(dtype_); }
  size_t period_bytes() const { return static_cast<size_t>(period_) * item_size(dtype_); }

  void bind(Arena* arena) {
    for (int i = 0; i < step_.operand_count; ++i) {
      const Slot& slot = program_.slots[step_.operands[i]];
      if (slot.kind == SlotKind::Input) {
        const Tensor& input = *call_.inputs[slot.index];
        const bool small = (repeated_ >> slot.index) & 1u;
        operands_[i] = small ? repeat(input, *arena) : input.address();
        items_[i] = small ? 0 : static_cast<uint8_t>(input.item_size());
        continue;
      }
      Tensor& result = results_[slot.index];
      const DType dtype = slot_dtype(slot.type, dtype_);
      if (result.defined()) {
        result.check_writable(program_.name);
      } else {
        result = make_plain(dtype);
      }
      operands_[i] = result.address();
      items_[i] = static_cast<uint8_t>(item_size(dtype));
    }
  }

  Tensor make_plain(DType dtype) const {
    if (numel_ >= least_donated()) {
      Tensor given = take_donation(program_, call_, full_->layout, dtype);
      if (given.defined()) return given;
    }
    Tensor result(Ref<TensorImpl>(TensorImpl::create()));
    TensorImpl& impl = *result.impl();
    impl.storage = Storage::allocate(static_cast<size_t>(numel_) * item_size(dtype));
    impl.layout.sizes = full_->layout.sizes;
    impl.layout.strides = full_->layout.strides;
    impl.dtype = dtype;
    return result;
  }

  // One period of an input that repeats.
  void* repeat(const Tensor& input, Arena& arena) const {
    const int64_t length = input.numel();
    auto* from = static_cast<char*>(input.address());
    if (length == period_) return from;
    const size_t item = item_size(dtype_);
    const bool number = length == 1;
    char* to = arena.take(period_bytes());
    strided::move<strided::Direction::Gather>(to, from, item, number ? 1 : period_ / length,
                                              number ? period_ : length, 0,
                                              number ? 0 : static_cast<int64_t>(item));
    return to;
  }

  // Whether results go past the caches, which they would fill with what is pushed out before
  // anyone reads it. Not over inputs: those are in the caches by then.
  bool streams() const {
    size_t nbytes = 0;
    for (int i = 0; i < step_.operand_count; ++i) {
      if (program_.slots[step_.operands[i]].kind != SlotKind::Output) continue;
      const auto at = reinterpret_cast<uintptr_t>(operands_[i]);
      if (at % 64 != 0 || (repeated_ && period_ * items_[i] % 64 != 0)) return false;
      for (const Tensor* input : call_.inputs) {
        if (input->address() == operands_[i]) return false;
      }
      nbytes += static_cast<size_t>(numel_) * items_[i];
    }
    return nbytes >= non_temporal_bytes();
  }

  void run_kernel() {
    if (numel_ > kGrain && streams()) flags_ = kNonTemporal;
    if (numel_ <= kGrain && !repeated_) [[likely]] {
      if (numel_ > 0) kernel_(operands_, numel_, scalars_);
      return;
    }
    if (!repeated_) {
      return sweep(kTile, [this](int64_t begin, int64_t end) { run_part(begin, end); });
    }
    if (numel_ == 0) return;
    const auto by_periods = [this](int64_t begin, int64_t end) {
      for (; begin < end; begin += period_) run_part(begin, std::min(begin + period_, end));
    };
    if (numel_ <= kGrain) return by_periods(0, numel_);
    sweep(period_, by_periods);
  }

  // Shares the elements among threads, which part at multiples of `unit`.
  template <class Body>
  void sweep(int64_t unit, Body&& body) const {
    parallel_sweep((numel_ + unit - 1) / unit, std::max<int64_t>(1, kPiece / unit),
                   [&](int64_t begin, int64_t end) {
                     body(begin * unit, std::min(end * unit, numel_));
                     if (flags_) end_of_stream();
                   });
  }

  void run_part(int64_t begin, int64_t end) const {
    void* operands[kMaxOperands];
    for (int i = 0; i < step_.operand_count; ++i) {
      operands[i] = static_cast<char*>(operands_[i]) + begin * items_[i];
    }
    kernel_(operands, (end - begin) | flags_, scalars_);
  }

  const Program& program_;
  const Step& step_;
  const Call& call_;
  std::span<Tensor> results_;
  const TensorImpl* full_ = nullptr;
  DType dtype_{};
  int64_t numel_ = 0;
  uint32_t repeated_ = 0;         // bit i: input i repeats
  int64_t row_ = 1, period_ = 0;  // elements of the rows that repeat; see set_period
  KernelFn kernel_ = nullptr;
  int64_t flags_ = 0;  // kNonTemporal or not
  void* operands_[kMaxOperands];
  uint8_t items_[kMaxOperands];  // bytes from one element to the next; 0 for what repeats
  ScalarSlot scalars_[kMaxScalars];
};

}  // namespace

Isa active_isa() { return g_isa; }

void run(const Program& program, const Call& call, std::span<Tensor> results) {
  if (program.row) {
    if (run_plain_rows(program, call, results)) return;
  } else if (program.steps.size() == 1 && FastPath(program, call, results).run()) {
    return;
  }
  const Device device = operands_device(call, results);
  if (device.type != DeviceType::CPU) return run_on_device(device, program, call, results);
  (program.row ? run_row : run_pointwise)(program, call, results);
}

}  // namespace weft::tile
