// Scalars, devices, layouts, and TensorOptions, which has them all.
#pragma once

#include <variant>

#include "dtype.h"

namespace c10 {
inline namespace over_weft {

class Scalar final {
 public:
  Scalar() : Scalar(int64_t{0}) {}
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  Scalar(T number) : number_(stored(number)) {}
  Scalar(Half number) : Scalar(static_cast<float>(number)) {}
  Scalar(BFloat16 number) : Scalar(static_cast<float>(number)) {}
  template <class T>
  Scalar(std::complex<T> number) : number_(std::complex<double>(number)) {}

  bool isBoolean() const { return std::holds_alternative<bool>(number_); }
  bool isIntegral(bool include_bool) const {
    return std::holds_alternative<int64_t>(number_) || (include_bool && isBoolean());
  }
  bool isFloatingPoint() const { return std::holds_alternative<double>(number_); }
  bool isComplex() const { return std::holds_alternative<std::complex<double>>(number_); }
  ScalarType type() const {
    if (isBoolean()) return ScalarType::Bool;
    if (isComplex()) return ScalarType::ComplexDouble;
    return isFloatingPoint() ? ScalarType::Double : ScalarType::Long;
  }

  template <class T>
  T to() const {
    return std::visit([](auto number) { return converted<T>(number); }, number_);
  }
  double toDouble() const { return to<double>(); }
  float toFloat() const { return to<float>(); }
  int64_t toLong() const { return to<int64_t>(); }
  int32_t toInt() const { return to<int32_t>(); }
  int16_t toShort() const { return to<int16_t>(); }
  int8_t toChar() const { return to<int8_t>(); }
  uint8_t toByte() const { return to<uint8_t>(); }
  Half toHalf() const { return to<Half>(); }
  BFloat16 toBFloat16() const { return to<BFloat16>(); }
  std::complex<float> toComplexFloat() const { return to<std::complex<float>>(); }
  bool toBool() const { return to<bool>(); }
  std::complex<double> toComplexDouble() const { return to<std::complex<double>>(); }

  Scalar operator-() const {
    return std::visit(
        [](auto number) -> Scalar {
          if constexpr (std::is_same_v<decltype(number), bool>) {
            throw TypeError("Scalar: expected a number to negate, got a bool");
          } else {
            return -number;
          }
        },
        number_);
  }

 private:
  using Number = std::variant<bool, int64_t, double, std::complex<double>>;
  template <class T>
  static Number stored(T number) {
    if constexpr (std::is_same_v<T, bool>) {
      return number;
    } else if constexpr (std::is_integral_v<T>) {
      return static_cast<int64_t>(number);
    } else {
      return static_cast<double>(number);
    }
  }
  template <class T, class Stored>
  static T converted(Stored number) {
    if constexpr (std::is_constructible_v<T, Stored> && !std::is_same_v<T, Half> &&
                  !std::is_same_v<T, BFloat16>) {
      return static_cast<T>(number);
    } else if constexpr (std::is_same_v<Stored, std::complex<double>>) {
      if constexpr (std::is_same_v<T, std::complex<float>>) {
        return T(static_cast<float>(number.real()), static_cast<float>(number.imag()));
      } else {
        TORCH_CHECK(number.imag() == 0, "Scalar: expected a real number, got ", number);
        return converted<T>(number.real());
      }
    } else {
      return T(static_cast<float>(number));
    }
  }

  Number number_;
};
inline std::ostream& operator<<(std::ostream& out, const Scalar& scalar) {
  if (scalar.isComplex()) return out << scalar.toComplexDouble();
  if (scalar.isFloatingPoint()) return out << scalar.toDouble();
  return out << scalar.toLong();
}

// ---- devices ----

using DeviceIndex = int8_t;

// X(name, the name in texts, number)
// clang-format off
#define WEFT_TORCH_DEVICES(X) \
  X(CPU, cpu, 0) X(CUDA, cuda, 1) X(MKLDNN, mkldnn, 2) X(OPENGL, opengl, 3) X(OPENCL, opencl, 4) \
  X(IDEEP, ideep, 5) X(HIP, hip, 6) X(FPGA, fpga, 7) X(MAIA, maia, 8) X(XLA, xla, 9) \
  X(Vulkan, vulkan, 10) X(Metal, metal, 11) X(XPU, xpu, 12) X(MPS, mps, 13) X(Meta, meta, 14) \
  X(HPU, hpu, 15) X(VE, ve, 16) X(Lazy, lazy, 17) X(IPU, ipu, 18) X(MTIA, mtia, 19) \
  X(PrivateUse1, privateuseone, 20)
// clang-format on
enum class DeviceType : int8_t {
#define X(name, text, number) name = number,
  WEFT_TORCH_DEVICES(X)
#undef X
};
#define X(name, text, number) inline constexpr DeviceType k##name = DeviceType::name;
WEFT_TORCH_DEVICES(X)
#undef X

inline std::string DeviceTypeName(DeviceType type, bool lower_case = true) {
  std::string name;
#define X(each, text, number) \
  if (type == DeviceType::each) name = #text;
  WEFT_TORCH_DEVICES(X)
#undef X
  TORCH_CHECK(!name.empty(), "DeviceTypeName: expected a type of devices, got number ",
              static_cast<int>(type));
  if (!lower_case) std::transform(name.begin(), name.end(), name.begin(), ::toupper);
  return name;
}
inline std::ostream& operator<<(std::ostream& out, DeviceType type) {
  return out << DeviceTypeName(type);
}

// Where tensors are. weft runs on the CPU; operators refuse the others by name.
class Device final {
 public:
  using Type = DeviceType;

  Device(DeviceType type, DeviceIndex index = -1) : type_(type), index_(index) {}
  Device(const char* text) : Device(std::string(text)) {}
  Device(const std::string& text) : type_(DeviceType::CPU) {
    const size_t colon = std::min(text.find(':'), text.size());
    const std::string name = text.substr(0, colon),
                      number = text.substr(std::min(colon + 1, text.size()));
    bool known = false;
#define X(type, text_of_type, number) \
  if (name == #text_of_type) known = true, type_ = DeviceType::type;
    WEFT_TORCH_DEVICES(X)
#undef X
    const bool is_number =
        number.size() < 3 &&
        std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
    TORCH_CHECK(known && is_number && (colon == text.size() || !number.empty()),
                "Device: expected a device such as 'cpu' or 'cuda:0', got '", text, "'");
    if (!number.empty()) index_ = static_cast<DeviceIndex>(std::stoi(number));
  }

  DeviceType type() const { return type_; }
  DeviceIndex index() const { return index_; }
  bool has_index() const { return index_ != -1; }
  void set_index(DeviceIndex index) { index_ = index; }
  bool is_cpu() const { return type_ == DeviceType::CPU; }
  bool is_cuda() const { return type_ == DeviceType::CUDA; }
  bool is_mps() const { return type_ == DeviceType::MPS; }
  bool is_meta() const { return type_ == DeviceType::Meta; }
  bool is_hip() const { return type_ == DeviceType::HIP; }
  bool is_xla() const { return type_ == DeviceType::XLA; }
  bool is_xpu() const { return type_ == DeviceType::XPU; }
  std::string str() const {
    const std::string name = DeviceTypeName(type_);
    return has_index() ? name + ":" + std::to_string(index_) : name;
  }
  friend bool operator==(const Device& a, const Device& b) {
    return a.type_ == b.type_ && a.index_ == b.index_;
  }
  friend bool operator!=(const Device& a, const Device& b) { return !(a == b); }
  friend std::ostream& operator<<(std::ostream& out, const Device& device) {
    return out << device.str();
  }

 private:
  DeviceType type_;
  DeviceIndex index_ = -1;
};

enum class Layout : int8_t { Strided, Sparse, SparseCsr, Mkldnn, SparseCsc, SparseBsr, SparseBsc };
inline constexpr Layout kStrided = Layout::Strided, kSparse = Layout::Sparse,
                        kSparseCsr = Layout::SparseCsr, kMkldnn = Layout::Mkldnn;
inline std::ostream& operator<<(std::ostream& out, Layout layout) {
  static constexpr const char* names[] = {"Strided",   "Sparse",    "SparseCsr", "Mkldnn",
                                          "SparseCsc", "SparseBsr", "SparseBsc"};
  return out << names[static_cast<size_t>(layout)];
}
enum class MemoryFormat : int8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };
inline std::ostream& operator<<(std::ostream& out, MemoryFormat format) {
  static constexpr const char* names[] = {"Contiguous", "Preserve", "ChannelsLast",
                                          "ChannelsLast3d"};
  return out << names[static_cast<size_t>(format)];
}

// ---- options of factories ----

class TensorOptions final {
 public:
  TensorOptions() = default;
  TensorOptions(ScalarType type) : dtype_(type) {}
  TensorOptions(caffe2::TypeMeta type) : dtype_(type.toScalarType()) {}
  TensorOptions(Device device) : device_(device) {}
  TensorOptions(DeviceType type) : device_(type) {}
  TensorOptions(const std::string& device) : device_(device) {}
  TensorOptions(const char* device) : device_(device) {}
  TensorOptions(Layout layout) : layout_(layout) {}
  TensorOptions(MemoryFormat format) : memory_format_(format) {}

  [[nodiscard]] TensorOptions dtype(std::optional<ScalarType> type) const {
    return changed([&](TensorOptions& made) { made.dtype_ = type; });
  }
  [[nodiscard]] TensorOptions dtype(ScalarType type) const {
    return dtype(std::optional<ScalarType>(type));
  }
  [[nodiscard]] TensorOptions dtype(caffe2::TypeMeta type) const {
    return dtype(type.toScalarType());
  }
  template <class T>
  [[nodiscard]] TensorOptions dtype() const {
    return dtype(detail::scalar_type<T>());
  }
  [[nodiscard]] TensorOptions device(std::optional<Device> device) const {
    return changed([&](TensorOptions& made) { made.device_ = device; });
  }
  [[nodiscard]] TensorOptions device(Device given) const {
    return device(std::optional<Device>(given));
  }
  [[nodiscard]] TensorOptions device(DeviceType type, DeviceIndex index = -1) const {
    return device(Device(type, index));
  }
  [[nodiscard]] TensorOptions layout(std::optional<Layout> layout) const {
    return changed([&](TensorOptions& made) { made.layout_ = layout; });
  }
  [[nodiscard]] TensorOptions requires_grad(std::optional<bool> value) const {
    return changed([&](TensorOptions& made) { made.requires_grad_ = value; });
  }
  [[nodiscard]] TensorOptions pinned_memory(std::optional<bool> value) const {
    return changed([&](TensorOptions& made) { made.pinned_memory_ = value; });
  }
  [[nodiscard]] TensorOptions memory_format(std::optional<MemoryFormat> value) const {
    return changed([&](TensorOptions& made) { made.memory_format_ = value; });
  }

  caffe2::TypeMeta dtype() const { return dtype_.value_or(ScalarType::Float); }
  Device device() const { return device_.value_or(Device(kCPU)); }
  Layout layout() const { return layout_.value_or(kStrided); }
  bool requires_grad() const { return requires_grad_.value_or(false); }
  bool pinned_memory() const { return pinned_memory_.value_or(false); }
  std::optional<ScalarType> dtype_opt() const { return dtype_; }
  std::optional<Device> device_opt() const { return device_; }
  std::optional<Layout> layout_opt() const { return layout_; }
  std::optional<bool> requires_grad_opt() const { return requires_grad_; }
  std::optional<bool> pinned_memory_opt() const { return pinned_memory_; }
  std::optional<MemoryFormat> memory_format_opt() const { return memory_format_; }
  bool has_dtype() const { return dtype_.has_value(); }
  bool has_device() const { return device_.has_value(); }
  bool has_layout() const { return layout_.has_value(); }
  bool has_requires_grad() const { return requires_grad_.has_value(); }
  // Whether tensors of both are of one type: of dtype, kind of device, and layout.
  bool type_equal(const TensorOptions& other) const {
    return dtype() == other.dtype() && device().type() == other.device().type() &&
           layout() == other.layout();
  }

 private:
  template <class Change>
  TensorOptions changed(Change&& change) const {
    TensorOptions made = *this;
    change(made);
    return made;
  }

  std::optional<ScalarType> dtype_;
  std::optional<Device> device_;
  std::optional<Layout> layout_;
  std::optional<bool> requires_grad_, pinned_memory_;
  std::optional<MemoryFormat> memory_format_;
};

inline std::ostream& operator<<(std::ostream& out, const TensorOptions& options) {
  const auto given = [](bool has) { return has ? "" : " (default)"; };
  const auto text = [](bool value) { return value ? "true" : "false"; };
  out << "TensorOptions(dtype=" << options.dtype() << given(options.has_dtype())
      << ", device=" << options.device() << given(options.has_device())
      << ", layout=" << options.layout() << given(options.has_layout())
      << ", requires_grad=" << text(options.requires_grad()) << given(options.has_requires_grad())
      << ", pinned_memory=" << text(options.pinned_memory())
      << given(options.pinned_memory_opt().has_value()) << ", memory_format=";
  if (options.memory_format_opt()) return out << *options.memory_format_opt() << ')';
  return out << "(nullopt))";
}

inline TensorOptions dtype(caffe2::TypeMeta type) { return TensorOptions(type); }
inline TensorOptions dtype(ScalarType type) { return TensorOptions(type); }
template <class T>
TensorOptions dtype() {
  return TensorOptions().dtype<T>();
}
inline TensorOptions device(Device given) { return TensorOptions(given); }
inline TensorOptions layout(Layout given) { return TensorOptions(given); }
inline TensorOptions requires_grad(bool value = true) {
  return TensorOptions().requires_grad(value);
}
inline TensorOptions memory_format(MemoryFormat format) { return TensorOptions(format); }

namespace detail {
inline TensorOptions options_of(std::optional<ScalarType> dtype, std::optional<Layout> layout,
                                std::optional<Device> device, std::optional<bool> pin_memory) {
  return TensorOptions().dtype(dtype).layout(layout).device(device).pinned_memory(pin_memory);
}
}  // namespace detail

}  // namespace over_weft
}  // namespace c10

namespace at {
namespace Reduction {
enum Reduction { None, Mean, Sum, END };
}
}  // namespace at
