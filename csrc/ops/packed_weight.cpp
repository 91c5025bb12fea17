#include "ops/packed_weight.h"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

#include "core/fork.h"

namespace weft::native {
namespace {

std::atomic<size_t> bytes_kept{0}, most_bytes{size_t{1} << 30};
GlobalMutex mutex(ForkRank::Weights);  // of what storages refer to

// Counts them unless that would be too many.
bool count(size_t bytes) {
  if (bytes_kept.fetch_add(bytes) + bytes <= most_bytes.load()) return true;
  bytes_kept.fetch_sub(bytes);
  return false;
}

using Known = std::vector<Ref<PackedWeight>>;
constexpr size_t kMost = 8;  // of a storage

class KnownWeights final : public Derived {
 public:
  Known all;
};

// Those of the storage's bytes as they are; those of earlier bytes go to `old`. Under the lock.
Known& known_of(Storage& storage, uint32_t changes, Known& old) {
  if (!storage.derived()) storage.derived() = make_ref<KnownWeights>();
  Known& all = static_cast<KnownWeights*>(storage.derived().get())->all;
  if (!all.empty() && all.front()->key().changes != changes) {
    std::ranges::move(std::exchange(all, {}), std::back_inserter(old));
  }
  return all;
}

Known::iterator find(Known& known, const PackedWeight::Key& key) {
  return std::ranges::find_if(known, [&](const auto& each) { return each->key() == key; });
}

}  // namespace

size_t packed_weight_bytes() { return bytes_kept.load(); }
size_t packed_weight_limit() { return most_bytes.load(); }
void set_packed_weight_limit(size_t bytes) { most_bytes.store(bytes); }

PackedWeight::PackedWeight(Key key, size_t elements)
    : key_(std::move(key)), bytes_(elements * sizeof(float)) {
  if (bytes_ == 0) return;
  allocator_ = &cpu_allocator();
  data_ = static_cast<float*>(allocator_->allocate(bytes_));
}

PackedWeight::PackedWeight(Key key, float* data, size_t bytes, Ref<Storage> owner)
    : key_(std::move(key)), bytes_(bytes), data_(data), owner_(std::move(owner)) {}

PackedWeight::~PackedWeight() {
  if (counted_) bytes_kept.fetch_sub(bytes_);
  if (allocator_ != nullptr) allocator_->free(data_, bytes_);
}

std::vector<Ref<PackedWeight>> weights_kept_by(Storage& storage) {
  if (!storage.shows_changes()) return {};
  Known old, found;
  const std::lock_guard lock(mutex);
  for (const auto& each : known_of(storage, storage.changes(), old)) {
    if (each->data() != nullptr) found.push_back(each);
  }
  return found;
}

void keep_weight(Storage& storage, Ref<PackedWeight> packed) {
  Known old;
  const std::lock_guard lock(mutex);
  Known& known = known_of(storage, packed->key().changes, old);
  if (known.size() < kMost) known.push_back(std::move(packed));
}

Ref<PackedWeight> kept_weight(const Tensor& weight, PackedForm form, int64_t groups,
                              int64_t elements, FunctionRef<void(float*)> fill) {
  Storage& storage = *weight.storage();
  if (!storage.shows_changes()) return {};
  const PackedWeight::Key key{form, groups, weight.layout(), storage.changes()};
  Known old;  // gone after the lock
  {
    const std::lock_guard lock(mutex);
    Known& known = known_of(storage, key.changes, old);
    const auto seen = find(known, key);
    if (seen == known.end()) {
      if (known.size() == kMost) {
        old.push_back(std::move(known.front()));
        known.erase(known.begin());
      }
      known.push_back(make_ref<PackedWeight>(key, 0));
      return {};
    }
    const size_t bytes = static_cast<size_t>(elements) * sizeof(float);
    if ((*seen)->data() != nullptr && (*seen)->bytes() == bytes) return *seen;
  }
  auto packed = make_ref<PackedWeight>(key, static_cast<size_t>(elements));
  if (!count(packed->bytes_)) return {};
  packed->counted_ = true;
  fill(packed->data());
  const std::lock_guard lock(mutex);
  if (storage.changes() != key.changes) return {};
  Known& known = known_of(storage, key.changes, old);
  const auto seen = find(known, key);
  if (seen != known.end()) old.push_back(std::exchange(*seen, packed));
  return packed;
}

Ref<PackedWeight> packed_weight(const Tensor& weight, PackedForm form, int64_t groups,
                                int64_t elements, FunctionRef<void(float*)> fill) {
  if (auto kept = kept_weight(weight, form, groups, elements, fill)) return kept;
  const PackedWeight::Key key{form, groups, weight.layout(), 0};
  auto packed = make_ref<PackedWeight>(key, static_cast<size_t>(elements));
  fill(packed->data());
  return packed;
}

}  // namespace weft::native
