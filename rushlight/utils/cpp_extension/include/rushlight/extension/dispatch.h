// Choosing code by element type, and loops in parallel.
#pragma once

#include <rushlight/extension/call.h>

namespace rushlight RL_HIDDEN {

template <class T> struct TypeTag { using type = T; };

template <class First, class... Rest> struct First_ { using type = First; };

// Calls f(TypeTag<T>()) for the one of the types T that is `kind`; NotImplementedError when none is.
template <class... Types, class F> auto dispatch(ScalarType kind, const char* name, const F& f) {
  using R = decltype(f(TypeTag<typename First_<Types...>::type>()));
  bool done = false;
  if constexpr (std::is_void_v<R>) {
    (void)((!done && scalar_type_for<Types>() == kind ? (f(TypeTag<Types>()), done = true) : false), ...);
    if (!done) fail<NotImplementedError>("", "\"", name, "\" not implemented for '", kind, "'");
  } else {
    std::optional<R> result;
    (void)((!done && scalar_type_for<Types>() == kind ? (result.emplace(f(TypeTag<Types>())), done = true) : false), ...);
    if (!done) fail<NotImplementedError>("", "\"", name, "\" not implemented for '", kind, "'");
    return *std::move(result);
  }
}

// The C++ type of an element type that is known when compiling.
template <ScalarType kind> struct ScalarTypeToCPPType;
#define X(name, python, cpp) template <> struct ScalarTypeToCPPType<ScalarType::name> { using type = cpp; };
RL_FOR_SCALAR_TYPES(X)
#undef X
template <ScalarType kind> using cpp_type = typename ScalarTypeToCPPType<kind>::type;

constexpr int64_t GRAIN_SIZE = 32768;

// f(first, last) for parts of [begin, end), on all threads when it is longer than `grain`. The interpreter lock is given up
// meanwhile, so that f may call operators. The first exception in a part is thrown again here.
template <class F> void parallel_for(int64_t begin, int64_t end, int64_t grain, const F& f) {
  if (begin >= end) return;
  const int64_t parts = grain > 0 ? (end - begin + grain - 1) / grain : end - begin;
  if (parts <= 1) return f(begin, end);
  std::exception_ptr error;
  gil_release released;
#pragma omp parallel for schedule(static)
  for (int64_t part = 0; part < parts; ++part) {
    try {
      f(begin + (end - begin) * part / parts, begin + (end - begin) * (part + 1) / parts);
    } catch (...) {
#pragma omp critical(rushlight_parallel_for)
      if (!error) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace rushlight

// AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "name", [&] { ... scalar_t ... });
#define RL_FLOATS double, float
#define RL_INTEGERS uint8_t, int8_t, int16_t, int32_t, int64_t
#define RL_TYPE(kind) ::rushlight::cpp_type<kind>
#define AT_DISPATCH_FLOATING_TYPES(kind, name, ...) RL_DISPATCH_(kind, name, (RL_FLOATS), __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(kind, name, ...) RL_DISPATCH_(kind, name, (RL_FLOATS, ::rushlight::Half), __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND(a, kind, name, ...) RL_DISPATCH_(kind, name, (RL_FLOATS, RL_TYPE(a)), __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND2(a, b, kind, name, ...) \
  RL_DISPATCH_(kind, name, (RL_FLOATS, RL_TYPE(a), RL_TYPE(b)), __VA_ARGS__)
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(kind, name, ...) \
  RL_DISPATCH_(kind, name, (::rushlight::Half, ::rushlight::BFloat16), __VA_ARGS__)
#define AT_DISPATCH_INTEGRAL_TYPES(kind, name, ...) RL_DISPATCH_(kind, name, (RL_INTEGERS), __VA_ARGS__)
#define AT_DISPATCH_INTEGRAL_TYPES_AND(a, kind, name, ...) RL_DISPATCH_(kind, name, (RL_INTEGERS, RL_TYPE(a)), __VA_ARGS__)
#define AT_DISPATCH_INDEX_TYPES(kind, name, ...) \
  RL_DISPATCH_NAMED_(kind, name, index_t, (int32_t, int64_t), __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES(kind, name, ...) RL_DISPATCH_(kind, name, (RL_FLOATS, RL_INTEGERS), __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND(a, kind, name, ...) RL_DISPATCH_(kind, name, (RL_FLOATS, RL_INTEGERS, RL_TYPE(a)), __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND2(a, b, kind, name, ...) \
  RL_DISPATCH_(kind, name, (RL_FLOATS, RL_INTEGERS, RL_TYPE(a), RL_TYPE(b)), __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND3(a, b, c, kind, name, ...) \
  RL_DISPATCH_(kind, name, (RL_FLOATS, RL_INTEGERS, RL_TYPE(a), RL_TYPE(b), RL_TYPE(c)), __VA_ARGS__)
#define RL_UNPACK(...) __VA_ARGS__
#define RL_DISPATCH_(kind, name, types, ...) RL_DISPATCH_NAMED_(kind, name, scalar_t, types, __VA_ARGS__)
#define RL_DISPATCH_NAMED_(kind, name, alias, types, ...)                                     \
  ::rushlight::dispatch<RL_UNPACK types>(kind, name, [&](auto rushlight_tag) {                \
    using alias [[maybe_unused]] = typename decltype(rushlight_tag)::type;                    \
    return (__VA_ARGS__)();                                                                   \
  })
