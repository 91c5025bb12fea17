// c10::Type: types of values in programs, by the texts that annotations have: "List[int]".
#pragma once

#include <memory>

#include "dtype.h"

namespace torch::jit {
inline namespace over_weft {
class Method;
class Function;
}  // namespace over_weft
}  // namespace torch::jit

namespace c10 {
inline namespace over_weft {

class FunctionSchema;

// X(kind, the text of the type; the class is of the kind's name)
// clang-format off
#define WEFT_TORCH_SINGLE_TYPES(X) \
  X(IntType, "int") X(FloatType, "float") X(ComplexType, "complex") \
  X(BoolType, "bool") X(StringType, "str") X(NumberType, "Scalar") X(NoneType, "NoneType") \
  X(DeviceObjType, "Device") X(AnyType, "Any") X(GeneratorType, "Generator") \
  X(ScalarTypeType, "ScalarType") X(LayoutType, "Layout") X(MemoryFormatType, "MemoryFormat") \
  X(AnyListType, "list") X(AnyTupleType, "tuple") X(CapsuleType, "Capsule")
#define WEFT_TORCH_MADE_TYPES(X) \
  X(TupleType, "Tuple") X(ListType, "List") X(DictType, "Dict") X(OptionalType, "Optional")
// clang-format on
enum class TypeKind {
  TensorType,
#define X(kind, text) kind,
  WEFT_TORCH_SINGLE_TYPES(X) WEFT_TORCH_MADE_TYPES(X)
#undef X
      ClassType,
};

class Type;
using TypePtr = std::shared_ptr<Type>;

class Type {
 public:
  explicit Type(std::string text) : text_(std::move(text)) {}
  virtual ~Type() = default;

  TypeKind kind() const {
    const std::string_view name = std::string_view(text_).substr(0, text_.find('['));
    if (name == "Tensor") return TypeKind::TensorType;
#define X(kind, text) \
  if (name == text) return TypeKind::kind;
    WEFT_TORCH_SINGLE_TYPES(X)
    WEFT_TORCH_MADE_TYPES(X)
#undef X
    return TypeKind::ClassType;
  }
  // "List[int]", and as schemas have it: "int[]".
  const std::string& annotation_str() const { return text_; }
  std::string str() const {
    const std::vector<std::string> inner = texts();
    if (text_.find('[') == std::string::npos) return text_;
    const auto part = [&](size_t i) { return Type(inner.at(i)).str(); };
    switch (kind()) {
      case TypeKind::ListType:
        return part(0) + "[]";
      case TypeKind::OptionalType:
        return part(0) + "?";
      case TypeKind::DictType:
        return "Dict(" + part(0) + ", " + part(1) + ")";
      case TypeKind::TupleType: {
        std::string text = "(";
        for (size_t i = 0; i < inner.size(); ++i) text += (i > 0 ? ", " : "") + part(i);
        return text + ")";
      }
      default:
        return text_;
    }
  }
  std::string repr_str() const { return str(); }
  std::vector<TypePtr> containedTypes() const {
    std::vector<TypePtr> found;
    for (const std::string& each : texts()) found.push_back(of(each));
    return found;
  }
  // Types without parts are one object each.
  static TypePtr of(const std::string& text);
  TypePtr containedType(size_t index) const { return containedTypes().at(index); }
  bool isSubtypeOf(const Type& other) const {
    return text_ == other.text_ || other.kind() == TypeKind::AnyType;
  }
  bool isSubtypeOf(const TypePtr& other) const { return isSubtypeOf(*other); }
  bool equals(const Type& other) const { return text_ == other.text_; }
  // The same type as one of a class for its kind; null for another kind.
  template <class T>
  std::shared_ptr<T> cast() const {
    return T::Kind == kind() ? std::make_shared<T>(text_) : nullptr;
  }
  template <class T>
  std::shared_ptr<T> expect() const {
    TORCH_CHECK_TYPE(T::Kind == kind(), "expect: expected a type of another kind, got ", text_);
    return cast<T>();
  }
  // Methods of classes are the program's own; those of a loaded module are Module::get_method's.
  torch::jit::Function& getMethod(const std::string& name) const;
  void addMethod(torch::jit::Function* method) const;
  std::shared_ptr<FunctionSchema> schema() const { return nullptr; }
  std::optional<std::string> name() const {
    return kind() == TypeKind::ClassType ? std::optional<std::string>(text_) : std::nullopt;
  }

  friend std::ostream& operator<<(std::ostream& out, const Type& type) { return out << type.str(); }
  friend bool operator==(const Type& a, const Type& b) { return a.text_ == b.text_; }
  friend bool operator!=(const Type& a, const Type& b) { return a.text_ != b.text_; }

 private:
  // What stands between the brackets.
  std::vector<std::string> texts() const {
    std::vector<std::string> found;
    const size_t open = text_.find('[');
    if (open == std::string::npos) return found;
    size_t depth = 0, from = open + 1;
    for (size_t i = from; i < text_.size(); ++i) {
      if (text_[i] == '[') ++depth;
      const bool is_end = i + 1 == text_.size();
      if (is_end || (text_[i] == ',' && depth == 0)) {
        if (i > from) found.push_back(text_.substr(from, i - from));
        from = i + 2;  // behind ", "
      }
      if (text_[i] == ']' && !is_end) --depth;
    }
    return found;
  }

  std::string text_;
};

// What is known of a tensor's type: programs are compiled for tensors of any dtype and sizes.
struct TensorSizes {
  std::optional<std::vector<int64_t>> concrete_sizes() const { return std::nullopt; }
  std::optional<size_t> size() const { return std::nullopt; }
};
struct TensorType : Type {
  using Type::Type;
  static constexpr TypeKind Kind = TypeKind::TensorType;
  static const std::shared_ptr<TensorType>& get() {
    static const auto made = std::make_shared<TensorType>("Tensor");
    return made;
  }
  std::optional<ScalarType> scalarType() const { return std::nullopt; }
  std::optional<size_t> dim() const { return std::nullopt; }
  TensorSizes sizes() const { return {}; }
};
using TensorTypePtr = std::shared_ptr<TensorType>;

#define X(name, text)                                        \
  struct name : Type {                                       \
    using Type::Type;                                        \
    static constexpr TypeKind Kind = TypeKind::name;         \
    static const std::shared_ptr<name>& get() {              \
      static const auto made = std::make_shared<name>(text); \
      return made;                                           \
    }                                                        \
  };
WEFT_TORCH_SINGLE_TYPES(X)
#undef X

inline TypePtr Type::of(const std::string& text) {
  if (text == "Tensor") return TensorType::get();
#define X(name, known) \
  if (text == known) return name::get();
  WEFT_TORCH_SINGLE_TYPES(X)
#undef X
  return std::make_shared<Type>(text);
}

struct ListType : Type {
  using Type::Type;
  static constexpr TypeKind Kind = TypeKind::ListType;
  static std::shared_ptr<ListType> create(const TypePtr& element) {
    return std::make_shared<ListType>("List[" + element->annotation_str() + "]");
  }
  static std::shared_ptr<ListType> ofTensors() { return create(TensorType::get()); }
  static std::shared_ptr<ListType> ofInts() { return create(IntType::get()); }
  static std::shared_ptr<ListType> ofFloats() { return create(FloatType::get()); }
  static std::shared_ptr<ListType> ofBools() { return create(BoolType::get()); }
  static std::shared_ptr<ListType> ofStrings() { return create(StringType::get()); }
  TypePtr getElementType() const { return containedType(0); }
};
struct OptionalType : Type {
  using Type::Type;
  static constexpr TypeKind Kind = TypeKind::OptionalType;
  static std::shared_ptr<OptionalType> create(const TypePtr& element) {
    return std::make_shared<OptionalType>("Optional[" + element->annotation_str() + "]");
  }
  static std::shared_ptr<OptionalType> ofTensor() { return create(TensorType::get()); }
  TypePtr getElementType() const { return containedType(0); }
};
struct DictType : Type {
  using Type::Type;
  static constexpr TypeKind Kind = TypeKind::DictType;
  static std::shared_ptr<DictType> create(const TypePtr& key, const TypePtr& value) {
    return std::make_shared<DictType>("Dict[" + key->annotation_str() + ", " +
                                      value->annotation_str() + "]");
  }
  TypePtr getKeyType() const { return containedType(0); }
  TypePtr getValueType() const { return containedType(1); }
};
struct TupleType : Type {
  using Type::Type;
  static constexpr TypeKind Kind = TypeKind::TupleType;
  static std::shared_ptr<TupleType> create(const std::vector<TypePtr>& elements) {
    std::string text;
    for (const TypePtr& each : elements)
      text += (text.empty() ? "" : ", ") + each->annotation_str();
    return std::make_shared<TupleType>("Tuple[" + text + "]");
  }
  template <class... Given>
  static std::shared_ptr<TupleType> createNamed(Given&&...) {
    TORCH_CHECK_NOT_IMPLEMENTED(false,
                                "TupleType::createNamed: expected a tuple without names of fields");
  }
  std::vector<TypePtr> elements() const { return containedTypes(); }
};
#undef WEFT_TORCH_SINGLE_TYPES
#undef WEFT_TORCH_MADE_TYPES

// Types of values have no sizes of tensors in them.
inline TypePtr unshapedType(const TypePtr& type) { return type; }

// The type of C++ values, for containers of them.
template <class T>
struct TypeOf {
  static TypePtr get() { return nullptr; }  // of the values in it
};
#define WEFT_TORCH_TYPE_OF(T, name)              \
  template <>                                    \
  struct TypeOf<T> {                             \
    static TypePtr get() { return name::get(); } \
  };
WEFT_TORCH_TYPE_OF(int64_t, IntType)
WEFT_TORCH_TYPE_OF(double, FloatType)
WEFT_TORCH_TYPE_OF(bool, BoolType)
WEFT_TORCH_TYPE_OF(std::string, StringType)
WEFT_TORCH_TYPE_OF(std::complex<double>, ComplexType)
#undef WEFT_TORCH_TYPE_OF

}  // namespace over_weft
}  // namespace c10

namespace torch::jit {
using c10::AnyType;
using c10::BoolType;
using c10::DictType;
using c10::FloatType;
using c10::IntType;
using c10::ListType;
using c10::StringType;
using c10::TensorType;
using c10::TupleType;
using c10::Type;
using c10::TypeKind;
using c10::TypePtr;
}  // namespace torch::jit
