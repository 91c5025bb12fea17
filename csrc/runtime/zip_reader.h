// The records of a zip archive in memory: stored ones only, since tensors are used where they lie.
// The layout is that of weft/serialization/zip_writer.py; APPNOTE.TXT 6.3.10, sections 4.3 and 4.5.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>

namespace weft {

class ZipReader {
 public:
  using Bytes = std::span<const std::byte>;

  // The bytes must outlive the reader. RuntimeError for what is no archive, or damaged.
  explicit ZipReader(Bytes bytes);

  bool has(std::string_view name) const { return records_.contains(name); }
  // The bytes of a record, by its name without the top folder. RuntimeError when there is none, or
  // it is compressed.
  Bytes record(std::string_view name) const;

 private:
  struct Record {
    uint64_t header;  // where its local header is
    uint64_t size;
    bool stored;
  };
  struct Directory {
    uint64_t count, offset, size;
  };
  Directory find_directory() const;
  void read_directory(Directory directory);
  Bytes part(uint64_t offset, uint64_t size) const;
  template <class T>
  T read(uint64_t offset) const;

  Bytes bytes_;
  uint64_t end_ = 0;  // of the records: where the directory begins
  std::map<std::string_view, Record> records_;
};

}  // namespace weft
