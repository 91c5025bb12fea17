#include "core/mapped_file.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <limits>

#include "core/tensor.h"
#include "testing.h"

namespace weft {
namespace {

// A path in a folder of its own, removed with what lies there under this name.
class Place {
 public:
  Place() {
    char folder[] = "/tmp/weft_mapped_XXXXXX";
    folder_ = mkdtemp(folder);
    path = folder_ + "/file";
  }
  ~Place() {
    unlink(path.c_str());
    rmdir(folder_.c_str());
  }
  void write(const std::string& bytes) const { std::ofstream(path, std::ios::binary) << bytes; }
  std::string read() const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string path;

 private:
  std::string folder_;
};

char* chars(const Ref<Storage>& storage) { return static_cast<char*>(storage->data()); }

TEST(mapped_private_keeps_the_file) {
  const Place place;
  place.write("hello");
  const Ref<Storage> all =
      MappedFile::open("t", place.path, MapMode::Private, -1)->storage("t", 0, 5);
  CHECK_EQ(std::memcmp(all->data(), "hello", 5), 0);
  CHECK_TRUE(!all->has(kShared));
  CHECK_TRUE(!all->has(kReadOnly));
  chars(all)[0] = 'J';
  CHECK_EQ(place.read(), "hello");
}

TEST(mapped_shared_makes_extends_and_writes) {
  const Place place;
  {
    const Ref<Storage> four =
        MappedFile::open("t", place.path, MapMode::Shared, 4)->storage("t", 0, 4);
    CHECK_TRUE(four->has(kShared));
    CHECK_EQ(std::memcmp(four->data(), "\0\0\0\0", 4), 0);
    std::memcpy(four->data(), "abcd", 4);
    CHECK_EQ(MappedFile::of(*four)->path(), place.path);
  }
  CHECK_EQ(place.read(), "abcd");
  const Ref<MappedFile> six = MappedFile::open("t", place.path, MapMode::Shared, 6);
  CHECK_EQ(place.read(), std::string("abcd\0\0", 6));
  const Ref<MappedFile> two = MappedFile::open("t", place.path, MapMode::Shared, 2);
  CHECK_EQ(two->nbytes(), size_t{2});
  CHECK_EQ(place.read().size(), size_t{6});  // never shortened
}

TEST(mapped_parts_keep_the_file_mapped) {
  const Place place;
  place.write("0123456789");
  Ref<Storage> part;
  {
    const Ref<MappedFile> file = MappedFile::open("t", place.path, MapMode::Private, -1);
    part = file->storage("t", 3, 4);
    CHECK_EQ(chars(part), static_cast<char*>(file->data()) + 3);  // no copy
    CHECK_THROWS_AS(Runtime, file->storage("t", 3, 8),
                    "t: expected bytes within '" + place.path + "' of 10 bytes, got 8 at 3");
    CHECK_THROWS_AS(Runtime, file->storage("t", -1, 2),
                    "t: expected bytes within '" + place.path + "' of 10 bytes, got 2 at -1");
    constexpr int64_t most = std::numeric_limits<int64_t>::max();
    CHECK_THROWS_AS(
        Runtime, file->storage("t", most, most),
        str("t: expected bytes within '", place.path, "' of 10 bytes, got ", most, " at ", most));
  }
  unlink(place.path.c_str());  // removed while mapped
  CHECK_EQ(std::memcmp(part->data(), "3456", 4), 0);
}

TEST(mapped_empty_file) {
  const Place place;
  place.write("");
  const Ref<MappedFile> file = MappedFile::open("t", place.path, MapMode::Private, -1);
  CHECK_EQ(file->nbytes(), size_t{0});
  CHECK_EQ(file->storage("t", 0, 0)->nbytes(), size_t{0});
}

TEST(mapped_errors) {
  const Place place;
  CHECK_THROWS_AS(
      Runtime, MappedFile::open("t", place.path, MapMode::Private, 1),
      "t: expected a file that can be read, got '" + place.path + "': No such file or directory");
  CHECK_THROWS_AS(Runtime, MappedFile::open("t", place.path + "/no", MapMode::Shared, 1),
                  "t: expected a file that can be written, got '" + place.path +
                      "/no': No such file or directory");
  CHECK_THROWS_AS(Runtime, MappedFile::open("t", "/tmp", MapMode::Private, 1),
                  "t: expected a regular file, got '/tmp'");
  CHECK_THROWS_AS(Runtime, MappedFile::open("t", std::string("a\0b", 3), MapMode::Private, 1),
                  "t: expected a path without null bytes");
  place.write("abc");
  CHECK_THROWS_AS(Runtime, MappedFile::open("t", place.path, MapMode::Private, 4),
                  "t: expected a file of at least 4 bytes, got '" + place.path + "' of 3");
  // No disk has room for this, and the file stays as it was.
  bool refused = false;
  try {
    MappedFile::open("t", place.path, MapMode::Shared, std::numeric_limits<int64_t>::max());
  } catch (const Error& error) {
    refused = error.message().find("t: expected room for") == 0;
  }
  CHECK_TRUE(refused);
  CHECK_EQ(place.read(), "abc");
}

// In a child without rights: the superuser may write everywhere.
TEST(mapped_read_only_file) {
  const Place place;
  place.write("abcdefgh");
  chmod(place.path.c_str(), 0444);
  chmod(place.path.substr(0, place.path.rfind('/')).c_str(), 0755);
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && seteuid(65534) != 0) _exit(2);
    int wrong = 0;
    try {
      const Ref<Storage> bytes =
          MappedFile::open("t", place.path, MapMode::Shared, 8)->storage("t", 0, 8);
      if (!bytes->has(kReadOnly) || !bytes->has(kShared) || chars(bytes)[7] != 'h') wrong = 3;
      try {
        Tensor(bytes, Layout::contiguous(Dims{8}), DType::U8).check_writable("fill_");
        wrong = 4;
      } catch (const Error&) {
      }
      try {
        MappedFile::open("t", place.path, MapMode::Shared, 9);
        wrong = 5;
      } catch (const Error& error) {
        if (error.message().find("which is read-only") == std::string::npos) wrong = 6;
      }
    } catch (...) {
      wrong = 7;
    }
    _exit(wrong);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
}

}  // namespace
}  // namespace weft
