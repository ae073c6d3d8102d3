// The names that sources written for PyTorch use: torch::, at::, c10:: and pybind11::, TORCH_CHECK and its like.
#pragma once

#include <rushlight/extension/dispatch.h>
#include <rushlight/extension/functions.h>
#include <rushlight/extension/library.h>

namespace rushlight RL_HIDDEN {

// While it lives, nothing is recorded for gradients.
class NoGradGuard {
 public:
  NoGradGuard() : before_(set(false)) {}
  ~NoGradGuard() { set(before_); }
  NoGradGuard(const NoGradGuard&) = delete;

 private:
  static bool set(bool enabled) {
    gil_acquire lock;
    const bool before = From<bool>::read(checked(PyObject_CallMethod(package(), "is_grad_enabled", nullptr)).get());
    checked(PyObject_CallMethod(package(), "set_grad_enabled", "O", enabled ? Py_True : Py_False));
    return before;
  }
  bool before_;
};
using AutoDispatchBelowAutograd = NoGradGuard;
using AutoDispatchBelowADInplaceOrView = NoGradGuard;
using AutoNonVariableTypeMode = NoGradGuard;

inline int get_num_threads() { return (int)call_function<int64_t>("get_num_threads"); }

using std::nullopt;
template <class T> using optional = std::optional<T>;
using string_view = std::string_view;
using OptionalIntArrayRef = std::optional<IntArrayRef>;
struct GradMode {
  static bool is_enabled() {
    gil_acquire lock;
    return From<bool>::read(checked(PyObject_CallMethod(package(), "is_grad_enabled", nullptr)).get());
  }
};

}  // namespace rushlight

namespace torch {
using namespace rushlight;
namespace indexing {
using rushlight::Ellipsis;
using rushlight::None;
using rushlight::Slice;
using rushlight::TensorIndex;
}  // namespace indexing
}  // namespace torch

namespace at {
using namespace rushlight;
namespace indexing = torch::indexing;
}  // namespace at

namespace c10 {
using namespace rushlight;
}

namespace pybind11 {
using rushlight::arg;
using rushlight::call_guard;
using gil_scoped_release = rushlight::gil_release;
using gil_scoped_acquire = rushlight::gil_acquire;
using module_ = rushlight::Module;
using module = rushlight::Module;
using object = rushlight::Object;
using value_error = rushlight::ValueError;
using index_error = rushlight::IndexError;
using type_error = rushlight::TypeError;
inline namespace literals {
inline arg operator""_a(const char* name, size_t) { return arg(name); }
}  // namespace literals
}  // namespace pybind11
namespace py = pybind11;

#define TORCH_CHECK(condition, ...) RL_CHECK_AS(Error, condition, ##__VA_ARGS__)
#define TORCH_CHECK_VALUE(condition, ...) RL_CHECK_AS(ValueError, condition, ##__VA_ARGS__)
#define TORCH_CHECK_INDEX(condition, ...) RL_CHECK_AS(IndexError, condition, ##__VA_ARGS__)
#define TORCH_CHECK_TYPE(condition, ...) RL_CHECK_AS(TypeError, condition, ##__VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(condition, ...) RL_CHECK_AS(NotImplementedError, condition, ##__VA_ARGS__)
#define TORCH_INTERNAL_ASSERT(condition, ...) RL_CHECK_AS(Error, condition, ##__VA_ARGS__)
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(condition, ...) RL_CHECK_AS(Error, condition, ##__VA_ARGS__)
#define AT_ASSERT(condition, ...) RL_CHECK_AS(Error, condition, ##__VA_ARGS__)
#define AT_ASSERTM(condition, ...) RL_CHECK_AS(Error, condition, ##__VA_ARGS__)
#define AT_ERROR(...) ::rushlight::fail<::rushlight::Error>("", ##__VA_ARGS__)
#define TORCH_WARN(...) ::rushlight::warn(__VA_ARGS__)
#define C10_ALWAYS_INLINE inline __attribute__((always_inline))
#define C10_UNUSED [[maybe_unused]]
#define C10_LIKELY(condition) __builtin_expect(static_cast<bool>(condition), 1)
#define C10_UNLIKELY(condition) __builtin_expect(static_cast<bool>(condition), 0)
