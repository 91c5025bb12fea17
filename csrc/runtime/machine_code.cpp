#include "runtime/machine_code.h"

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "runtime/byte_reader.h"
#include "runtime/fused.h"

namespace weft::machine_code {
namespace {

struct Image {
  uint32_t isa;
  std::string bytes;
};

// The group as text, and what of FusedKey the code is made for.
using Key = std::tuple<std::string, std::string, uint64_t, uint64_t>;

std::mutex table_mutex;
std::map<Key, Image>& table() {
  static auto* const images = new std::map<Key, Image>;  // outlives every thread
  return *images;
}
std::atomic<bool> is_allowed{true};

// FNV-1a: tells damaged code, not hostile code.
uint64_t digest_of(std::string_view bytes) {
  uint64_t digest = 0xcbf29ce484222325;
  for (const char byte : bytes) {
    digest = (digest ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  }
  return digest;
}

void install(Ref<FusedGroup> group, const FusedKey& key) {
  const Key wanted{group->text(), str(key.compute), key.masks, key.ints};
  try {
    const std::lock_guard lock(table_mutex);
    const auto found = table().find(wanted);
    if (found != table().end()) group->install(key, NativeCode::load(found->second.bytes));
  } catch (const Error&) {
    // The group runs on as it is: the code calls what this system has not, or may not be mapped.
  }
}

}  // namespace

void add(std::span<const std::byte> record) {
  if (!is_allowed.load()) return;
  ByteReader in(record);
  const auto own = static_cast<uint32_t>(tile::active_isa());
  const uint32_t count = in.count("a count of images", 40);
  for (uint32_t i = 0; i < count; ++i) {
    const std::string_view text = in.text(), compute = in.text();
    const auto masks = in.read<uint64_t>(), ints = in.read<uint64_t>();
    const uint32_t isa = in.u32();
    const auto digest = in.read<uint64_t>();
    const std::string_view bytes = in.text();
    in.check(digest_of(bytes) == digest, "the code that the digest is of", i);
    if (isa > own) continue;
    const std::lock_guard lock(table_mutex);
    Image& known = table()[Key{text, compute, masks, ints}];
    if (known.bytes.empty() || known.isa < isa) known = {isa, std::string(bytes)};
  }
  in.check(in.at_end(), "the end of the images", in.at());
  FusedGroup::set_hook_if_none(install, 1);
}

void set_allowed(bool allowed) noexcept { is_allowed = allowed; }

}  // namespace weft::machine_code
