// Zip files of records that are not compressed, as the archives of libtorch are.
#pragma once

#include "array_ref.h"

namespace torch::serialize {
inline namespace over_weft {
namespace detail {

// Numbers in their bytes, the lowest first.
inline std::string bytes_of(uint64_t number, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes.push_back(static_cast<char>(number >> (8 * i) & 255));
  return bytes;
}
inline uint64_t number_at(std::string_view bytes, size_t place, size_t count) {
  TORCH_CHECK(place <= bytes.size() && count <= bytes.size() - place,
              "load: expected an archive of libtorch, got a damaged file");
  uint64_t number = 0;
  for (size_t i = count; i-- > 0;) number = number << 8 | static_cast<uint8_t>(bytes[place + i]);
  return number;
}
inline uint32_t checksum(std::string_view bytes) {
  static const auto table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t i = 0; i < 256; ++i) {
      made[i] = i;
      for (int bit = 0; bit < 8; ++bit) {
        made[i] = made[i] >> 1 ^ ((made[i] & 1) != 0 ? 0xEDB88320 : 0);
      }
    }
    return made;
  }();
  uint32_t sum = 0xFFFFFFFF;
  for (const char each : bytes) sum = table[(sum ^ static_cast<uint8_t>(each)) & 255] ^ sum >> 8;
  return ~sum;
}

// A zip file of records that are not compressed.
class ZipWriter {
 public:
  void add(const std::string& record, std::string_view bytes) {
    const std::string name = "archive/" + record;
    TORCH_CHECK_NOT_IMPLEMENTED(file_.size() + bytes.size() < 0xFFFF0000,
                                "save: expected less than 4 GiB, got more");
    const std::string about = std::string(6, '\0') + bytes_of(0x210000, 4) +
                              bytes_of(checksum(bytes), 4) + bytes_of(bytes.size(), 4) +
                              bytes_of(bytes.size(), 4) + bytes_of(name.size(), 2);
    // Contents begin at multiples of 64 bytes, so that they can be mapped.
    const size_t padding = 4 + (128 - (file_.size() + 34 + name.size()) % 64) % 64;
    list_ += "PK\1\2" + bytes_of(0, 2) + about + std::string(12, '\0') + bytes_of(file_.size(), 4) +
             name;
    file_ += "PK\3\4" + about + bytes_of(padding, 2) + name + "FB" + bytes_of(padding - 4, 2) +
             std::string(padding - 4, 'Z');
    file_ += bytes;
    ++count_;
  }
  std::string finished() {
    const std::string end = "PK\5\6" + std::string(4, '\0') + bytes_of(count_, 2) +
                            bytes_of(count_, 2) + bytes_of(list_.size(), 4) +
                            bytes_of(file_.size(), 4) + bytes_of(0, 2);
    return file_ + list_ + end;
  }

 private:
  std::string file_, list_;
  size_t count_ = 0;
};

// The records of a zip file by their names without the folder.
inline std::map<std::string, std::string_view> records_of(std::string_view file) {
  const size_t end = file.rfind(std::string_view("PK\5\6", 4));
  TORCH_CHECK(end != std::string_view::npos,
              "load: expected an archive of libtorch, got no zip file");
  std::map<std::string, std::string_view> records;
  size_t place = number_at(file, end + 16, 4);
  for (uint64_t left = number_at(file, end + 10, 2); left > 0; --left) {
    const uint64_t method = number_at(file, place + 10, 2), size = number_at(file, place + 20, 4),
                   name_size = number_at(file, place + 28, 2), at = number_at(file, place + 42, 4);
    const uint64_t from = at + 30 + number_at(file, at + 26, 2) + number_at(file, at + 28, 2);
    number_at(file, place + 46 + name_size, 0);
    TORCH_CHECK(from <= file.size() && size <= file.size() - from,
                "load: expected an archive of libtorch, got a damaged file");
    const std::string name(file.substr(place + 46, name_size));
    // Code is compressed, and not needed.
    if (method == 0) records[name.substr(name.find('/') + 1)] = file.substr(from, size);
    place += 46 + name_size + number_at(file, place + 30, 2) + number_at(file, place + 32, 2);
  }
  return records;
}

// Writes bytes over a part of a record, and its checksum.
inline void overwrite(std::string& file, const std::string& record, size_t offset,
                      std::string_view bytes) {
  const size_t end = file.rfind(std::string("PK\5\6", 4));
  size_t place = number_at(file, end + 16, 4);
  for (uint64_t left = number_at(file, end + 10, 2); left > 0; --left) {
    const uint64_t size = number_at(file, place + 20, 4),
                   name_size = number_at(file, place + 28, 2), at = number_at(file, place + 42, 4);
    const std::string name = file.substr(place + 46, name_size);
    if (name.substr(name.find('/') + 1) == record) {
      const size_t from = at + 30 + number_at(file, at + 26, 2) + number_at(file, at + 28, 2);
      TORCH_CHECK(offset <= size && bytes.size() <= size - offset && from + size <= file.size(),
                  "save: expected a place in the record '", record, "'");
      file.replace(from + offset, bytes.size(), bytes);
      const std::string sum = bytes_of(checksum(std::string_view(file).substr(from, size)), 4);
      file.replace(place + 16, 4, sum);
      file.replace(at + 14, 4, sum);
      return;
    }
    place += 46 + name_size + number_at(file, place + 30, 2) + number_at(file, place + 32, 2);
  }
  TORCH_CHECK(false, "save: expected a record '", record, "', got none");
}

}  // namespace detail
}  // namespace over_weft
}  // namespace torch::serialize
