#include "runtime/zip_reader.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace weft {
namespace {

constexpr uint32_t kEnd = 0x06054b50, kLocator64 = 0x07064b50, kEnd64 = 0x06064b50;
constexpr uint32_t kEntry = 0x02014b50, kLocal = 0x04034b50;
constexpr uint64_t kEndBytes = 22, kLocator64Bytes = 20, kEntryBytes = 46, kLocalBytes = 30;
constexpr uint32_t kIn64 = 0xFFFFFFFF;  // the number is in the zip64 field

[[noreturn]] void fail_archive(const char* expected) {
  fail(ErrorKind::Runtime,
       str("load: expected ", expected, ", got a damaged file or one of another kind"));
}

}  // namespace

ZipReader::ZipReader(Bytes bytes) : bytes_(bytes) { read_directory(find_directory()); }

ZipReader::Bytes ZipReader::record(std::string_view name) const {
  const auto found = records_.find(name);
  WEFT_CHECK(found != records_.end(), "load: expected a file with the record '", name,
             "', got none");
  const Record& record = found->second;
  WEFT_CHECK(record.stored, "load: expected a record that is not compressed, got '", name, "'");
  if (read<uint32_t>(record.header) != kLocal) fail_archive("a record where its entry says");
  const uint64_t start = record.header + kLocalBytes + read<uint16_t>(record.header + 26) +
                         read<uint16_t>(record.header + 28);
  if (start > end_ || record.size > end_ - start) fail_archive("a record inside the file");
  return part(start, record.size);
}

ZipReader::Directory ZipReader::find_directory() const {
  const uint64_t size = bytes_.size();
  uint64_t at = size < kEndBytes ? 0 : size - kEndBytes;
  const uint64_t lowest = at - std::min<uint64_t>(at, UINT16_MAX);
  while (size < kEndBytes || read<uint32_t>(at) != kEnd ||
         at + kEndBytes + read<uint16_t>(at + 20) != size) {
    if (at == lowest) fail_archive("a zip archive");
    --at;
  }
  Directory found{read<uint16_t>(at + 10), read<uint32_t>(at + 16), read<uint32_t>(at + 12)};
  if (at >= kLocator64Bytes && read<uint32_t>(at - kLocator64Bytes) == kLocator64) {
    const auto end64 = read<uint64_t>(at - kLocator64Bytes + 8);
    if (read<uint32_t>(end64) != kEnd64) fail_archive("the end of the directory");
    found = {read<uint64_t>(end64 + 32), read<uint64_t>(end64 + 48), read<uint64_t>(end64 + 40)};
  }
  if (found.offset > size || found.size > size - found.offset ||
      found.count > found.size / kEntryBytes) {
    fail_archive("a directory inside the file");
  }
  return found;
}

void ZipReader::read_directory(Directory directory) {
  end_ = directory.offset;
  uint64_t at = directory.offset;
  for (uint64_t i = 0; i < directory.count; ++i) {
    if (read<uint32_t>(at) != kEntry) fail_archive("an entry of the directory");
    Record record{read<uint32_t>(at + 42), read<uint32_t>(at + 24), read<uint16_t>(at + 10) == 0};
    const uint64_t name_at = at + kEntryBytes, name_bytes = read<uint16_t>(at + 28);
    const uint64_t extra_bytes = read<uint16_t>(at + 30);
    if (record.size == kIn64 || record.header == kIn64) {
      // The field that the writer puts first: sizes, then the place.
      uint64_t field = name_at + name_bytes;
      if (extra_bytes < 12 || read<uint16_t>(field) != 1) fail_archive("a zip64 field");
      field += 4;
      if (record.size == kIn64) {
        record.size = read<uint64_t>(field);
        field += 16;
      }
      if (record.header == kIn64) record.header = read<uint64_t>(field);
    }
    const Bytes name = part(name_at, name_bytes);
    const std::string_view path(reinterpret_cast<const char*>(name.data()), name.size());
    const size_t slash = path.find('/');
    if (slash != path.npos) {
      if (!records_.emplace(path.substr(slash + 1), record).second)
        fail_archive("one record of each name");
    }
    at = name_at + name_bytes + extra_bytes + read<uint16_t>(at + 32);
  }
}

ZipReader::Bytes ZipReader::part(uint64_t offset, uint64_t size) const {
  if (offset > bytes_.size() || size > bytes_.size() - offset) fail_archive("more bytes");
  return bytes_.subspan(offset, size);
}

template <class T>
T ZipReader::read(uint64_t offset) const {
  T value;
  std::memcpy(&value, part(offset, sizeof(T)).data(), sizeof(T));
  return value;
}

}  // namespace weft
