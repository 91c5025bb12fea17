// Mapped files: what weft.from_file, UntypedStorage.from_file and weft.load(mmap=True) are made of.
#include "core/mapped_file.h"

#include <nanobind/nanobind.h>

#include "bindings/bindings.h"
#include "bindings/caster.h"
#include "core/tensor.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

struct PyMap {
  Ref<MappedFile> file;
};

std::string text(const nb::bytes& path) { return {path.c_str(), path.size()}; }

PyMap map_file(const char* op, const nb::bytes& path, bool shared, int64_t nbytes) {
  const std::string name = text(path);
  nb::gil_scoped_release unlocked;
  return {MappedFile::open(op, name, shared ? MapMode::Shared : MapMode::Private, nbytes)};
}

PyMap map_descriptor(const char* op, int descriptor, const nb::bytes& path) {
  const std::string name = text(path);
  nb::gil_scoped_release unlocked;
  return {MappedFile::of_descriptor(op, descriptor, name)};
}

Tensor bytes_at(const PyMap& self, const char* op, int64_t offset, int64_t count) {
  return Tensor(self.file->storage(op, offset, count), Layout::contiguous(Dims{count}), DType::U8);
}

nb::object path_under(const Tensor& tensor) {
  const MappedFile* file = MappedFile::of(*tensor.storage());
  if (file == nullptr || file->mode() != MapMode::Shared) return nb::none();
  return nb::bytes(file->path().data(), file->path().size());
}

}  // namespace

void bind_mapped_file(nb::module_& module) {
  nb::class_<PyMap>(module, "_MappedFile", "A file as memory.")
      .def_prop_ro("nbytes", [](const PyMap& self) { return self.file->nbytes(); })
      .def("tensor", &bytes_at, nb::arg("op"), nb::arg("offset"), nb::arg("count"),
           "A uint8 tensor over `count` bytes; it keeps the file mapped.");
  module.def("_map_file", &map_file, nb::arg("op"), nb::arg("path"), nb::arg("shared"),
             nb::arg("nbytes"), "Maps the first bytes of a file, privately or for all.");
  module.def("_map_descriptor", &map_descriptor, nb::arg("op"), nb::arg("descriptor"),
             nb::arg("path"), "Maps the whole of an open file, privately.");
  module.def("_mapped_path", &path_under, nb::arg("tensor"),
             "The path of the file that a tensor's writes reach; None for other memory.");
}

}  // namespace weft::py
