// The memory layout of DLPack 1.x, as far as tensors in main memory need it. The names are ours;
// order and widths of the fields are the interface.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/tensor.h"

namespace weft::dlpack {

inline constexpr int32_t kCpu = 1;
inline constexpr int32_t kCudaHost = 3;  // pinned main memory
inline constexpr uint64_t kReadOnlyFlag = 1;
inline constexpr uint64_t kCopiedFlag = 2;

struct DeviceInfo {
  int32_t type, id;
};
struct TypeInfo {
  uint8_t code, bits;
  uint16_t lanes;
};
struct TensorInfo {
  void* data;
  DeviceInfo device;
  int32_t ndim;
  TypeInfo dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: row-major
  uint64_t byte_offset;
};

// What a capsule named "dltensor" points to.
struct Managed {
  static constexpr const char* kName = "dltensor";
  static constexpr const char* kUsedName = "used_dltensor";
  TensorInfo tensor;
  void* context;
  void (*deleter)(Managed*);
};

// What a capsule named "dltensor_versioned" points to.
struct ManagedVersioned {
  static constexpr const char* kName = "dltensor_versioned";
  static constexpr const char* kUsedName = "used_dltensor_versioned";
  uint32_t major, minor;
  void* context;
  void (*deleter)(ManagedVersioned*);
  uint64_t flags;
  TensorInfo tensor;
};

TypeInfo type_info(DType dtype);
std::optional<DType> dtype_of(TypeInfo type);

// A tensor for a consumer, which calls the deleter once, on any thread. M: Managed or
// ManagedVersioned. `flags`: of the latter.
template <class M>
std::unique_ptr<M, void (*)(M*)> export_tensor(const Tensor& tensor, uint64_t flags);

// A tensor over a producer's memory, which its deleter gives back after the last use. What cannot
// be taken over stays the producer's: ValueError.
template <class M>
Tensor import_tensor(const char* op, M* managed, DType dtype, uint8_t storage_flags);

}  // namespace weft::dlpack
