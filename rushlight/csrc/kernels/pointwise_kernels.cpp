// Pointwise operators over contiguous elements: one functor per operator, one span per functor and type.
#include <rushlight/math.h>

#include "spans.h"
#include "variant.h"

namespace rl {

template <class T> struct parameters_of {
  T p[RL_MAX_PARAMETERS];
  RL_INLINE explicit parameters_of(const double* given) {
    for (int i = 0; i < RL_MAX_PARAMETERS; ++i) p[i] = given ? (T)given[i] : (T)0;
  }
};

namespace op {

#define RL_UNARY(name, ...)                                                            \
  struct name {                                                                        \
    template <class P, class V> static RL_INLINE auto of([[maybe_unused]] const P& p, V a) { \
      [[maybe_unused]] const V one = splat<V>(1), zero = splat<V>(0);                  \
      using T [[maybe_unused]] = element<V>;                                           \
      return __VA_ARGS__;                                                              \
    }                                                                                  \
  };
#define RL_BINARY(name, ...)                                                                \
  struct name {                                                                             \
    template <class P, class V> static RL_INLINE auto of([[maybe_unused]] const P& p, V a, V b) { \
      [[maybe_unused]] const V one = splat<V>(1), zero = splat<V>(0);                       \
      using T [[maybe_unused]] = element<V>;                                                \
      return __VA_ARGS__;                                                                   \
    }                                                                                       \
  };
#define RL_TERNARY(name, ...)                                                         \
  struct name {                                                                       \
    template <class P, class V> static RL_INLINE auto of(const P& p, V a, V b, V c) { \
      return __VA_ARGS__;                                                             \
    }                                                                                 \
  };

RL_UNARY(positive, a)
RL_UNARY(neg, -a)
RL_UNARY(abs, rl::abs(a))
RL_UNARY(sign, rl::sign(a))
RL_UNARY(relu, rl::relu(a))
RL_UNARY(square, a* a)
RL_UNARY(cube, a* a* a)
RL_UNARY(bitwise_not, ~a)
RL_UNARY(floor, rl::floor(a))
RL_UNARY(ceil, rl::ceil(a))
RL_UNARY(round, rl::round(a))
RL_UNARY(trunc, rl::trunc(a))
RL_UNARY(sqrt, rl::sqrt(a))
RL_UNARY(rsqrt, rl::rsqrt(a))
RL_UNARY(reciprocal, one / a)
RL_UNARY(exp, rl::exp(a))
RL_UNARY(exp2, rl::exp2(a))
RL_UNARY(expm1, rl::expm1(a))
RL_UNARY(log, rl::log(a))
RL_UNARY(log1p, rl::log1p(a))
RL_UNARY(log2, rl::log2(a))
RL_UNARY(log10, rl::log10(a))
RL_UNARY(sin, rl::sin(a))
RL_UNARY(cos, rl::cos(a))
RL_UNARY(tan, rl::tan(a))
RL_UNARY(tanh, rl::tanh(a))
RL_UNARY(erf, rl::erf(a))
RL_UNARY(sigmoid, rl::sigmoid(a))
RL_UNARY(silu, rl::silu(a))
RL_UNARY(gelu, gelu_erf(a))
RL_UNARY(gelu_tanh, rl::gelu_tanh(a))
RL_UNARY(isnan, rl::isnan(a))
RL_UNARY(isinf, rl::isinf(a))
RL_UNARY(logical_not, rl::logical_not(a))

RL_BINARY(add, a + b)
RL_BINARY(sub, a - b)
RL_BINARY(mul, a* b)
RL_BINARY(div, a / b)
RL_BINARY(add_scaled, a + p.p[0] * b)
RL_BINARY(maximum, rl::maximum(a, b))
RL_BINARY(minimum, rl::minimum(a, b))
RL_BINARY(floor_divide, floor_div(a, b))
RL_BINARY(trunc_divide, rl::trunc(rl::div(a, b)))
RL_BINARY(remainder, rl::remainder(a, b))
RL_BINARY(fmod, rl::fmod(a, b))
RL_BINARY(bitwise_and, a & b)
RL_BINARY(bitwise_or, a | b)
RL_BINARY(bitwise_xor, a ^ b)
RL_BINARY(pow, rl::pow(a, b))
RL_BINARY(eq, rl::eq(a, b))
RL_BINARY(ne, rl::ne(a, b))
RL_BINARY(lt, rl::lt(a, b))
RL_BINARY(le, rl::le(a, b))
RL_BINARY(gt, rl::gt(a, b))
RL_BINARY(ge, rl::ge(a, b))
RL_BINARY(logical_and, a & b)
RL_BINARY(logical_or, a | b)
RL_BINARY(logical_xor, a ^ b)

RL_BINARY(threshold_backward, where(rl::le(b, splat<V>(p.p[0])), zero, a))
RL_BINARY(sigmoid_backward, a*(one - b) * b)
RL_BINARY(tanh_backward, a*(one - b * b))
RL_TERNARY(addcmul, a + p.p[0] * b * c)
RL_TERNARY(addcdiv, a + p.p[0] * b / c)

// Weights below 0.5 count from the start, others from the end, so that a weight of 1 returns the end exactly.
RL_BINARY(lerp, p.p[0] < (T)0.5 ? a + p.p[0] * (b - a) : b - (b - a) * ((T)1 - p.p[0]))

// a is the gradient, b is x.
RL_BINARY(gelu_backward, a * rl::gelu_erf_slope(b))
RL_BINARY(gelu_tanh_backward, a * rl::gelu_tanh_slope(b))

struct silu_backward {
  template <class P, class V> static RL_INLINE V of(const P&, V grad, V x) {
    const V one = splat<V>(1), s = rl::sigmoid(x);
    return grad * s * (one + x * (one - s));
  }
};

}  // namespace op

template <class F, class T, class R> void span1(void* out, const void* const* in, int64_t n, const double* given) {
  const parameters_of<T> p(given);
  each(n, (R*)out, [&](auto a) { return F::of(p, a); }, (const T*)in[0]);
}
template <class F, class T, class R> void span2(void* out, const void* const* in, int64_t n, const double* given) {
  const parameters_of<T> p(given);
  each(n, (R*)out, [&](auto a, auto b) { return F::of(p, a, b); }, (const T*)in[0], (const T*)in[1]);
}
template <class F, class T, class R> void span3(void* out, const void* const* in, int64_t n, const double* given) {
  const parameters_of<T> p(given);
  each(n, (R*)out, [&](auto a, auto b, auto c) { return F::of(p, a, b, c); }, (const T*)in[0], (const T*)in[1],
       (const T*)in[2]);
}

template <class T> void select(void* out, const void* const* in, int64_t n, const double*) {
  each(n, (T*)out, [&](auto condition, auto a, auto b) { return where(condition, a, b); }, (const bool*)in[0],
       (const T*)in[1], (const T*)in[2]);
}

#define RL_FLOAT32(f, N) {span##N<f, float, float>}
#define RL_FLOATING(f, N) {span##N<f, float, float>, span##N<f, double, double>}
#define RL_NUMBER(f, N) \
  {span##N<f, float, float>, span##N<f, double, double>, span##N<f, int32_t, int32_t>, span##N<f, int64_t, int64_t>}
#define RL_INTEGER(f, N) \
  {nullptr, nullptr, span##N<f, int32_t, int32_t>, span##N<f, int64_t, int64_t>, span##N<f, bool, bool>}
#define RL_COMPARISON(f, N) \
  {span##N<f, float, bool>, span##N<f, double, bool>, span##N<f, int32_t, bool>, span##N<f, int64_t, bool>}
#define RL_PREDICATE(f, N) {span##N<f, float, bool>, span##N<f, double, bool>}
#define RL_LOGICAL(f, N) {nullptr, nullptr, nullptr, nullptr, span##N<f, bool, bool>}
#define RL_SELECT(f, N) {select<float>, select<double>, select<int32_t>, select<int64_t>}
#define RL_ROW(name, inputs, class) RL_##class(op::name, inputs),

extern const PointwiseSpan pointwise_table[RL_POINTWISE_COUNT][NATIVE_COUNT] = {RL_POINTWISE(RL_ROW)};

}  // namespace rl
