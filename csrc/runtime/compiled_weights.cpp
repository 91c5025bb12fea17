// Packed weights in compiled files: a record that tells of each the storage, the form and the
// layout that it is packed of, and a record of its bytes.
//
// They are what kernels would make of the weights; a file without them, or with those of another
// format, has them packed by its first calls.
#include "ops/packed_weight.h"
#include "runtime/byte_reader.h"
#include "runtime/compiled_module.h"

namespace weft {
namespace {

using native::PackedForm;
using native::PackedWeight;

constexpr std::string_view kPacked = "weft/packed";
constexpr uint32_t kMostPackedDims = 64;

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

void put_key(std::string& out, const PackedWeight::Key& key) {
  put(out, static_cast<uint8_t>(key.form));
  put(out, key.groups);
  put(out, static_cast<uint32_t>(key.layout.sizes.size()));
  put(out, key.layout.offset);
  for (const int64_t size : key.layout.sizes) put(out, size);
  for (const int64_t stride : key.layout.strides) put(out, stride);
}

PackedWeight::Key read_key(ByteReader& in) {
  PackedWeight::Key key{};
  const uint8_t form = in.u8();
  in.check(form < static_cast<uint8_t>(PackedForm::Gates), "a form of weights", form);
  key.form = static_cast<PackedForm>(form);
  key.groups = in.i64();
  const uint32_t dims = in.u32();
  in.check(dims <= kMostPackedDims, "at most 64 dims", dims);
  key.layout.offset = in.i64();
  for (uint32_t i = 0; i < dims; ++i) key.layout.sizes.push_back(in.i64());
  for (uint32_t i = 0; i < dims; ++i) key.layout.strides.push_back(in.i64());
  return key;
}

void release(void* packed) { Ref<PackedWeight>::adopt(static_cast<PackedWeight*>(packed)); }

// The bytes of a packed weight, which live as long as the tensor.
Tensor bytes_of(Ref<PackedWeight> packed) {
  const size_t bytes = packed->bytes();
  float* const data = packed->data();
  Ref<Storage> storage = Storage::wrap(data, bytes, release, packed.detach(), kReadOnly);
  return Tensor(std::move(storage), Layout::contiguous(Dims{static_cast<int64_t>(bytes)}),
                DType::U8);
}

}  // namespace

void CompiledModule::read_packed_weights() {
  if (!archive_.has(kPacked)) return;
  ByteReader in(archive_.record(kPacked));
  if (in.u32() != native::kPackedFormat) return;
  const uint32_t count = in.count("a count of packed weights", 25);
  for (uint32_t i = 0; i < count; ++i) {
    Storage& storage = *storages_[in.index("a storage", storages_.size())];
    PackedWeight::Key key = read_key(in);
    key.changes = storage.changes();
    const ZipReader::Bytes bytes = archive_.record(str(kPacked, "/", i));
    const auto address = reinterpret_cast<uintptr_t>(bytes.data());
    if (bytes.empty() || address % Allocator::kAlignment != 0) continue;
    auto* const data = reinterpret_cast<float*>(address);
    native::keep_weight(storage, make_ref<PackedWeight>(std::move(key), data, bytes.size(), file_));
  }
  in.check(in.at_end(), "the end of the packed weights", in.at());
}

std::pair<std::string, std::vector<Tensor>> CompiledModule::packed_weights() const {
  std::string keys;
  std::vector<Tensor> found;
  for (size_t i = 0; i < storages_.size(); ++i) {
    for (const Ref<PackedWeight>& each : native::weights_kept_by(*storages_[i])) {
      if (each->key().form == PackedForm::Gates) continue;
      put(keys, static_cast<uint32_t>(i));
      put_key(keys, each->key());
      found.push_back(bytes_of(each));
    }
  }
  std::string record;
  put(record, native::kPackedFormat);
  put(record, static_cast<uint32_t>(found.size()));
  return {record + keys, std::move(found)};
}

}  // namespace weft
