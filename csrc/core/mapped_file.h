// MappedFile: the first bytes of a file as memory, and storages over parts of it.
//
// Pages are read when they are first used and are shared by all processes that map the file. A file
// may be removed while it is mapped; one that is cut short must not be: reading what is gone ends
// the process (SIGBUS), as with every mapping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/ref.h"
#include "core/storage.h"

namespace weft {

enum class MapMode : uint8_t {
  Private,  // copy on write: changes stay in this process
  Shared,   // changes reach the file and the other processes that map it
};

class MappedFile final : public RefCounted {
 public:
  // Opens and maps `nbytes` bytes. Private: the file must have them. Shared: it is made or extended
  // where needed, the new bytes being 0; a file that may only be read is mapped read-only.
  // RuntimeError with the path and the system's reason when that is not possible. nbytes < 0: the
  // whole file.
  static Ref<MappedFile> open(const char* op, const std::string& path, MapMode mode,
                              int64_t nbytes);
  // The whole file of an open descriptor, privately; the descriptor may be closed afterwards.
  static Ref<MappedFile> of_descriptor(const char* op, int descriptor, const std::string& path);

  ~MappedFile();

  void* data() const noexcept { return data_; }  // null without bytes
  size_t nbytes() const noexcept { return nbytes_; }
  MapMode mode() const noexcept { return mode_; }
  bool is_read_only() const noexcept { return read_only_; }
  const std::string& path() const noexcept { return path_; }

  // `count` bytes from `offset` on; RuntimeError beyond the end. Keeps the mapping alive.
  Ref<Storage> storage(const char* op, int64_t offset, int64_t count);

  // The mapping under a storage; null for other memory.
  static const MappedFile* of(const Storage& storage) noexcept;

 private:
  MappedFile(std::string path, MapMode mode, bool read_only)
      : mode_(mode), read_only_(read_only), path_(std::move(path)) {}
  void map(const char* op, int descriptor, size_t nbytes);

  void* data_ = nullptr;
  size_t nbytes_ = 0;
  MapMode mode_;
  bool read_only_;
  std::string path_;
};

}  // namespace weft
