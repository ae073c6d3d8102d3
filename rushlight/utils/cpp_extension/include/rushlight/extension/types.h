// Element types, numbers, devices, options and references to arrays.
#pragma once

#include <rushlight/extension/python.h>

#include <complex>
#include <initializer_list>
#include <optional>

namespace rushlight RL_HIDDEN {

// ---- 16-bit floats -------------------------------------------------------------------------------------------------

struct BFloat16 {
  uint16_t x = 0;
  BFloat16() = default;
  BFloat16(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    x = value != value ? 0x7fc0 : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
  operator float() const {
    const uint32_t bits = (uint32_t)x << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
  }
};

struct Half {
  uint16_t x = 0;
  Half() = default;
  Half(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    const uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) x = (uint16_t)(sign | 0x7e00);
    else if (magnitude >= 0x477ff000) x = (uint16_t)(sign | 0x7c00);
    else if (magnitude < 0x38800000) x = (uint16_t)(sign | subnormal(magnitude));
    else x = (uint16_t)(sign | ((magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13));
  }
  operator float() const {
    const uint32_t sign = (uint32_t)(x & 0x8000) << 16, magnitude = (uint32_t)(x & 0x7fff) << 13;
    uint32_t scale = 0x77800000;  // 2^112
    float value, factor;
    std::memcpy(&value, &magnitude, 4);
    std::memcpy(&factor, &scale, 4);
    value *= factor;
    if (magnitude >= 0xf800000) value = magnitude == 0xf800000 ? __builtin_inff() : __builtin_nanf("");
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    bits |= sign;
    std::memcpy(&value, &bits, 4);
    return value;
  }

 private:
  // Adding 1/2 puts the last bit of the result at the last bit of the sum, which rounds.
  static uint32_t subnormal(uint32_t magnitude) {
    float value;
    std::memcpy(&value, &magnitude, 4);
    value += 0.5f;
    std::memcpy(&magnitude, &value, 4);
    return magnitude - 0x3f000000;
  }
};

// ---- element types -------------------------------------------------------------------------------------------------

// In the order of Byte, Char, ...: name in C++, name in Python, type.
#define RL_FOR_SCALAR_TYPES(X)                                                                                      \
  X(Byte, "uint8", uint8_t) X(Char, "int8", int8_t) X(Short, "int16", int16_t) X(Int, "int32", int32_t)             \
  X(Long, "int64", int64_t) X(Half, "float16", ::rushlight::Half) X(Float, "float32", float)                        \
  X(Double, "float64", double) X(ComplexFloat, "complex64", std::complex<float>)                                    \
  X(ComplexDouble, "complex128", std::complex<double>) X(Bool, "bool", bool) X(BFloat16, "bfloat16", ::rushlight::BFloat16)

enum class ScalarType : int8_t {
#define X(name, python, type) name,
  RL_FOR_SCALAR_TYPES(X)
#undef X
  Undefined
};

inline const char* toString(ScalarType kind) {
#define X(name, python, type) if (kind == ScalarType::name) return #name;
  RL_FOR_SCALAR_TYPES(X)
#undef X
  return "Undefined";
}
inline const char* python_name(ScalarType kind) {
#define X(name, python, type) if (kind == ScalarType::name) return python;
  RL_FOR_SCALAR_TYPES(X)
#undef X
  throw TypeError("an undefined dtype");
}
inline ScalarType scalar_type_of(const char* name) {
#define X(kind, python, type) if (!std::strcmp(name, python)) return ScalarType::kind;
  RL_FOR_SCALAR_TYPES(X)
#undef X
  throw TypeError(concatenate("there is no dtype ", name));
}
inline int64_t elementSize(ScalarType kind) {
#define X(name, python, type) if (kind == ScalarType::name) return (int64_t)sizeof(type);
  RL_FOR_SCALAR_TYPES(X)
#undef X
  return 0;
}
inline bool isComplexType(ScalarType kind) { return kind == ScalarType::ComplexFloat || kind == ScalarType::ComplexDouble; }
inline bool isFloatingType(ScalarType kind) {
  return kind == ScalarType::Half || kind == ScalarType::Float || kind == ScalarType::Double || kind == ScalarType::BFloat16;
}
inline bool isIntegralType(ScalarType kind, bool with_bool = false) {
  return kind < ScalarType::Half || (with_bool && kind == ScalarType::Bool);
}
inline void append(std::string& text, ScalarType kind) { text += toString(kind); }

// The element type that a C++ type is. `long long` is what `int64_t` is, whichever of the two that names.
template <class T> constexpr ScalarType scalar_type_for() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_integral_v<U> && !std::is_same_v<U, bool>) {
    static_assert(std::is_signed_v<U> || sizeof(U) == 1, "tensors hold no unsigned integers of more than 8 bits");
    if constexpr (sizeof(U) == 1) return std::is_signed_v<U> ? ScalarType::Char : ScalarType::Byte;
    else return sizeof(U) == 2 ? ScalarType::Short : sizeof(U) == 4 ? ScalarType::Int : ScalarType::Long;
  }
#define X(name, python, type) else if constexpr (std::is_same_v<U, type>) return ScalarType::name;
  RL_FOR_SCALAR_TYPES(X)
#undef X
  else static_assert(!sizeof(U), "tensors do not hold elements of this type");
}
template <class T> struct CppTypeToScalarType { static constexpr ScalarType value = scalar_type_for<T>(); };

#define X(name, python, type) constexpr ScalarType k##name = ScalarType::name;
RL_FOR_SCALAR_TYPES(X)
#undef X
constexpr ScalarType kUInt8 = kByte, kInt8 = kChar, kInt16 = kShort, kInt32 = kInt, kInt64 = kLong, kFloat16 = kHalf,
                     kFloat32 = kFloat, kFloat64 = kDouble;

// ---- a number ------------------------------------------------------------------------------------------------------

// A bool, an integer or a float.
class Scalar {
 public:
  Scalar() : Scalar((int64_t)0) {}
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0> Scalar(T value) {
    if constexpr (std::is_same_v<T, bool>) kind_ = 'b', integer_ = value;
    else if constexpr (std::is_integral_v<T>) kind_ = 'i', integer_ = (int64_t)value;
    else kind_ = 'f', float_ = (double)value;
  }
  Scalar(Half value) : Scalar((float)value) {}
  Scalar(BFloat16 value) : Scalar((float)value) {}

  bool isFloatingPoint() const { return kind_ == 'f'; }
  bool isBoolean() const { return kind_ == 'b'; }
  bool isIntegral(bool with_bool) const { return kind_ == 'i' || (with_bool && kind_ == 'b'); }
  template <class T> T to() const { return kind_ == 'f' ? (T)float_ : (T)integer_; }
  double toDouble() const { return to<double>(); }
  float toFloat() const { return to<float>(); }
  int64_t toLong() const { return to<int64_t>(); }
  int toInt() const { return to<int>(); }
  bool toBool() const { return to<double>() != 0; }
  Scalar operator-() const { return kind_ == 'f' ? Scalar(-float_) : Scalar(-integer_); }

 private:
  char kind_;
  int64_t integer_ = 0;
  double float_ = 0;
};

// ---- devices, layouts ----------------------------------------------------------------------------------------------

enum class DeviceType : int8_t { CPU, Meta, CUDA };
constexpr DeviceType kCPU = DeviceType::CPU, kMeta = DeviceType::Meta, kCUDA = DeviceType::CUDA;
enum class Layout : int8_t { Strided };
constexpr Layout kStrided = Layout::Strided;
enum class MemoryFormat : int8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };

class Device {
 public:
  Device(DeviceType type = DeviceType::CPU, int = -1) : type_(type) {}
  Device(const std::string& name) : type_(parse(name)) {}
  Device(const char* name) : Device(std::string(name)) {}
  DeviceType type() const { return type_; }
  int index() const { return -1; }
  bool is_cpu() const { return type_ == DeviceType::CPU; }
  bool is_cuda() const { return type_ == DeviceType::CUDA; }
  bool is_meta() const { return type_ == DeviceType::Meta; }
  std::string str() const { return is_cpu() ? "cpu" : is_meta() ? "meta" : "cuda"; }
  bool operator==(const Device& other) const { return type_ == other.type_; }
  bool operator!=(const Device& other) const { return type_ != other.type_; }

 private:
  static DeviceType parse(const std::string& name) {
    const std::string kind = name.substr(0, name.find(':'));
    if (kind == "cpu") return DeviceType::CPU;
    if (kind == "meta") return DeviceType::Meta;
    if (kind == "cuda") return DeviceType::CUDA;
    throw Error(concatenate("Expected one of cpu, meta device type at start of device string: ", name));
  }
  DeviceType type_;
};
inline void append(std::string& text, const Device& device) { text += device.str(); }
inline void append(std::string& text, DeviceType type) { text += Device(type).str(); }

// ---- what new tensors are like -------------------------------------------------------------------------------------

struct TensorOptions {
  std::optional<ScalarType> dtype_;
  std::optional<Device> device_;
  std::optional<bool> requires_grad_;
  std::optional<MemoryFormat> memory_format_;

  TensorOptions() = default;
  TensorOptions(ScalarType kind) : dtype_(kind) {}
  TensorOptions(Device device) : device_(device) {}
  TensorOptions(DeviceType type) : device_(Device(type)) {}
  TensorOptions(Layout) {}

  template <class T> TensorOptions with(std::optional<T> TensorOptions::*member, T value) const {
    TensorOptions made = *this;
    made.*member = value;
    return made;
  }
  TensorOptions dtype(ScalarType kind) const { return with(&TensorOptions::dtype_, kind); }
  TensorOptions device(Device where) const { return with(&TensorOptions::device_, where); }
  TensorOptions requires_grad(bool wanted = true) const { return with(&TensorOptions::requires_grad_, wanted); }
  TensorOptions layout(Layout) const { return *this; }
  TensorOptions memory_format(MemoryFormat order) const { return with(&TensorOptions::memory_format_, order); }
  ScalarType dtype() const { return dtype_.value_or(ScalarType::Float); }
  Device device() const { return device_.value_or(Device()); }
};
inline TensorOptions dtype(ScalarType kind) { return TensorOptions(kind); }
inline TensorOptions device(Device where) { return TensorOptions(where); }
inline TensorOptions requires_grad(bool wanted = true) { return TensorOptions().requires_grad(wanted); }

// ---- arrays of others ----------------------------------------------------------------------------------------------

// Elements that somebody else keeps alive.
template <class T> class ArrayRef {
 public:
  using value_type = T;
  ArrayRef() = default;
  ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  ArrayRef(const T& one) : data_(&one), size_(1) {}
  ArrayRef(const std::vector<T>& values) : data_(values.data()), size_(values.size()) {}
  ArrayRef(const std::initializer_list<T>& values) : data_(values.begin()), size_(values.size()) {}
  template <size_t N> ArrayRef(const T (&values)[N]) : data_(values), size_(N) {}

  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](size_t index) const { return data_[index]; }
  const T& at(size_t index) const {
    if (index >= size_) throw IndexError(concatenate("index ", index, " of an array of ", size_));
    return data_[index];
  }
  const T& front() const { return at(0); }
  const T& back() const { return at(size_ - 1); }
  ArrayRef slice(size_t start, size_t count) const {
    if (start + count > size_) throw IndexError("a slice outside the array");
    return {data_ + start, count};
  }
  ArrayRef slice(size_t start) const { return slice(start, size_ - start); }
  std::vector<T> vec() const { return {begin(), end()}; }
  bool equals(ArrayRef other) const {
    if (size_ != other.size_) return false;
    for (size_t i = 0; i < size_; ++i)
      if (!(data_[i] == other.data_[i])) return false;
    return true;
  }
  friend bool operator==(ArrayRef a, ArrayRef b) { return a.equals(b); }
  friend bool operator!=(ArrayRef a, ArrayRef b) { return !a.equals(b); }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};
using IntArrayRef = ArrayRef<int64_t>;
inline void append(std::string& text, IntArrayRef values) {
  for (size_t i = 0; i < values.size(); ++i) text += concatenate(i ? ", " : "[", values[i]);
  text += values.empty() ? "[]" : "]";
}

}  // namespace rushlight
