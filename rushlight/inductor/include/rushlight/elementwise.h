// Pointwise helpers for scalars and vectors alike (V is T or vec<T>), in addition to C++'s operators.
//
// Semantics are torch's: maximum and minimum propagate NaN, round goes half to even, remainder takes the divisor's sign,
// floor_div of floats follows Python's. Comparisons return masks (bool for scalars). Booleans have no arithmetic: use the
// logical functions and `where`. Integer division by zero gives 0 instead of a trap.
#pragma once

#include <rushlight/vec.h>

namespace rl {

// ---- comparison, logic, choice -------------------------------------------------------------------------------------

#define RL_COMPARE(name, op) \
  template <class V> RL_INLINE auto name(V a, V b) { \
    return compare(a, b, [](auto x, auto y) { return x op y; }); \
  }
RL_COMPARE(eq, ==) RL_COMPARE(ne, !=) RL_COMPARE(lt, <) RL_COMPARE(le, <=) RL_COMPARE(gt, >) RL_COMPARE(ge, >=)
#undef RL_COMPARE

template <class M> RL_INLINE M logical_and(M a, M b) { return (M)(a & b); }
template <class M> RL_INLINE M logical_or(M a, M b) { return (M)(a | b); }
template <class M> RL_INLINE M logical_xor(M a, M b) { return (M)(a ^ b); }
RL_INLINE bool logical_not(bool m) { return !m; }
RL_INLINE mask logical_not(mask m) { return ~m; }

template <class V> RL_INLINE V where(bool m, V a, V b) { return m ? a : b; }
template <class V> RL_INLINE V where(mask m, V a, V b) { return choose(m, a, b); }

// Integers wrap around as in eager; C++ leaves signed overflow undefined. C++ promotes small integers to int; these functions
// keep the type.
template <class V> constexpr bool may_overflow = !is_floating<element<V>> && (is_vector<V> || sizeof(V) >= sizeof(int));
template <class V> RL_INLINE V add(V a, V b) {
  if constexpr (may_overflow<V>) return (V)((wrapping<V>)a + (wrapping<V>)b);
  else return (V)(a + b);
}
template <class V> RL_INLINE V sub(V a, V b) {
  if constexpr (may_overflow<V>) return (V)((wrapping<V>)a - (wrapping<V>)b);
  else return (V)(a - b);
}
template <class V> RL_INLINE V mul(V a, V b) {
  if constexpr (may_overflow<V>) return (V)((wrapping<V>)a * (wrapping<V>)b);
  else return (V)(a * b);
}
template <class V> RL_INLINE V neg(V a) {
  if constexpr (may_overflow<V>) return (V)-(wrapping<V>)a;
  else return (V)-a;
}

// ---- lane by lane --------------------------------------------------------------------------------------------------

// Apply f to each lane, for functions that have no vector form.
template <class F, class V, class... W> RL_INLINE V map(const F& f, V a, W... rest) {
  if constexpr (is_vector<V>) {
    V out;
    for (int i = 0; i < lanes; ++i) out[i] = f(a[i], rest[i]...);
    return out;
  } else {
    return (V)f(a, rest...);
  }
}

// A functor over the float and double versions of a C library function.
#define RL_LIBRARY(name)                                                    \
  struct name {                                                             \
    float operator()(float x) const { return __builtin_##name##f(x); }      \
    double operator()(double x) const { return __builtin_##name(x); }       \
  };
#define RL_LIBRARY2(name)                                                             \
  struct name {                                                                       \
    float operator()(float x, float y) const { return __builtin_##name##f(x, y); }    \
    double operator()(double x, double y) const { return __builtin_##name(x, y); }    \
  };

namespace library {
RL_LIBRARY(sqrt) RL_LIBRARY2(fmod)
}  // namespace library

// ---- signs and rounding --------------------------------------------------------------------------------------------

template <class V> RL_INLINE auto isnan(V x) { return ne(x, x); }

template <class V> RL_INLINE V abs(V x) {
  if constexpr (same<element<V>, float>) return bitcast<V>(bitcast<like<V, int32_t>>(x) & 0x7fffffff);
  else if constexpr (same<element<V>, double>) return bitcast<V>(bitcast<like<V, int64_t>>(x) & INT64_MAX);
  else return where(lt(x, splat<V>(0)), neg(x), x);
}

template <class V> RL_INLINE V copysign(V magnitude, V sign) {
  using I = integers<V>;
  constexpr element<I> bits = (element<I>)1 << (sizeof(element<I>) * 8 - 1);
  return bitcast<V>((bitcast<I>(magnitude) & ~bits) | (bitcast<I>(sign) & bits));
}

template <class V> RL_INLINE auto isinf(V x) {
  if constexpr (is_floating<element<V>>) return eq(abs(x), splat<V>(__builtin_inf()));
  else return ne(x, x);
}

template <class V> RL_INLINE V sign(V x) {
  const V zero = splat<V>(0), one = splat<V>(1);
  return sub<V>(where(gt(x, zero), one, zero), where(lt(x, zero), one, zero));
}

// Floats of at least 2^23 (2^52) are integers already; adding and subtracting that bound rounds smaller ones.
template <class V> RL_INLINE V round(V x) {
  if constexpr (!is_floating<element<V>>) return x;
  else {
    const V bound = splat<V>(sizeof(element<V>) == 4 ? 0x1p23 : 0x1p52), magnitude = abs(x);
    return where(lt(magnitude, bound), copysign(magnitude + bound - bound, x), x);
  }
}

template <class V> RL_INLINE V floor(V x) {
  if constexpr (!is_floating<element<V>>) return x;
  else {
    const V near = round(x);
    return where(gt(near, x), near - 1, near);
  }
}

template <class V> RL_INLINE V ceil(V x) {
  if constexpr (!is_floating<element<V>>) return x;
  else return -floor(-x);
}

template <class V> RL_INLINE V trunc(V x) {
  if constexpr (!is_floating<element<V>>) return x;
  else return copysign(floor(abs(x)), x);
}

// ---- arithmetic ----------------------------------------------------------------------------------------------------

// a > b ? a : b and a < b ? a : b, that is, b if either is NaN. This is one instruction on x86. GCC finds it by itself for integers
// that are compared in the lanes of their own type, but not for floats.
template <class V> RL_INLINE V larger(V a, V b) {
  if constexpr (!is_floating<element<V>>) return (V)(a > b ? a : b);
#if defined(RL_GCC_AVX512)
  if constexpr (same<V, vec<float>>) return __builtin_ia32_maxps512_mask(a, b, a, -1, 4);
#elif defined(RL_GCC_AVX)
  if constexpr (same<V, vec<float>>) return __builtin_ia32_maxps256(a, b);
#endif
  return where(gt(a, b), a, b);
}
template <class V> RL_INLINE V smaller(V a, V b) {
  if constexpr (!is_floating<element<V>>) return (V)(a < b ? a : b);
#if defined(RL_GCC_AVX512)
  if constexpr (same<V, vec<float>>) return __builtin_ia32_minps512_mask(a, b, a, -1, 4);
#elif defined(RL_GCC_AVX)
  if constexpr (same<V, vec<float>>) return __builtin_ia32_minps256(a, b);
#endif
  return where(lt(a, b), a, b);
}

// The product, rounded before anything is added to it: no fused multiply-add.
template <class V> RL_INLINE V rounded_product(V a, V b) { return opaque(a * b); }

// x * factor + addend of floats, rounded once.
template <class V> RL_INLINE V multiply_add(V x, V factor, V addend) {
#if defined(__FMA__) || defined(__aarch64__)
  return x * factor + addend;
#else
  return cast<float, double>(cast<double, float>(x) * cast<double, float>(factor) + cast<double, float>(addend));
#endif
}

// The nearest integer, halves to even, clamped to bounds below 2^22 in magnitude; NaN gives the upper bound.
template <class V> RL_INLINE auto nearest(V x, V low, V high) {
  constexpr float magic = 12582912.0f;  // 1.5 * 2^23: the last bit of its mantissa is worth 1
  const V within = larger(smaller(x, high), low);
#ifdef RL_GCC_AVX512
  if constexpr (same<V, vec<float>>) return bitcast<vec<int32_t>>(__builtin_ia32_cvtps2dq512_mask(within, vec<int32_t>{}, -1, 4));
#endif
  return bitcast<like<V, int32_t>>(within + magic) - bitcast<int32_t>(magic);
}

// The maximum and the minimum; NaN if either operand is NaN. In a chain of them, each call only tests its new operand for NaN.
template <class V> RL_INLINE V maximum(V a, V b) {
  if constexpr (!is_floating<element<V>>) return larger(b, a);
  else return where(isnan(b), b, larger(b, a));
}
template <class V> RL_INLINE V minimum(V a, V b) {
  if constexpr (!is_floating<element<V>>) return smaller(b, a);
  else return where(isnan(b), b, smaller(b, a));
}
template <class V> RL_INLINE V relu(V x) { return larger(splat<V>(0), x); }

template <class V> RL_INLINE V sqrt(V x) {
#ifdef RL_GCC_AVX512
  if constexpr (same<V, vec<float>>) return __builtin_ia32_sqrtps512_mask(x, x, -1, 4);
#endif
  return map(library::sqrt{}, x);
}
template <class V> RL_INLINE V reciprocal(V x) { return splat<V>(1) / x; }
template <class V> RL_INLINE V rsqrt(V x) { return splat<V>(1) / sqrt(x); }

// c0 + c1 x + c2 x^2 + ..., by Horner's rule.
template <class V> RL_INLINE V polynomial(V, element<V> last) { return splat<V>(last); }
template <class V, class... C> RL_INLINE V polynomial(V x, element<V> first, C... rest) {
  return polynomial(x, rest...) * x + first;
}

// Integer quotients rounded toward zero, per lane: a / 0 is 0, and the one overflow wraps.
struct truncated_quotient {
  template <class T> RL_INLINE T operator()(T a, T b) const {
    return b == 0 ? (T)0 : b == (T)-1 && (T)-1 < (T)0 ? (T)(0 - (uint64_t)a) : (T)(a / b);
  }
};
struct floored_quotient {
  template <class T> RL_INLINE T operator()(T a, T b) const {
    const T quotient = truncated_quotient{}(a, b);
    return (T)(quotient - (b != 0 && (T)(a - (uint64_t)quotient * b) != 0 && (a < 0) != (b < 0)));
  }
};

// Vectors of integers below 2^52 are divided as doubles: rounding the quotient of such numbers never crosses an integer.
template <class V> RL_INLINE bool divides_as_double(V a, V b) {
  if constexpr (!is_vector<V>) return false;
  else if constexpr (sizeof(element<V>) < 8) return true;
  else {
    constexpr int64_t half = (int64_t)1 << 52;
    return __builtin_expect(!any_bit(((a + half) | (b + half)) & ~(2 * half - 1)), 1);
  }
}

template <class V> RL_INLINE V quotient_as_double(V a, V b) {
  const mask zero = eq(b, splat<V>(0));
  const V divisor = where(zero, splat<V>(1), b);
  const vec<double> exact = convert_lanes<vec<double>>(a) / convert_lanes<vec<double>>(divisor);
  return where(zero, splat<V>(0), convert_lanes<V>(convert_lanes<vec<int64_t>>(exact)));
}

// a / b; for integers rounded toward zero.
template <class V> RL_INLINE V div(V a, V b) {
  if constexpr (is_floating<element<V>>) return a / b;
  else if constexpr (is_vector<V>) return divides_as_double(a, b) ? quotient_as_double(a, b) : map(truncated_quotient{}, a, b);
  else return truncated_quotient{}(a, b);
}

// The C remainder, for floats with a quotient below 2^29: that times b is exact in double, and so is the difference from a. The
// C library computes the others.
template <class V> RL_INLINE V float_remainder(V a, V b) {
  using D = like<V, double>;
  const auto inside = logical_and(lt(abs(a), abs(b) * 0x1p29f), lt(abs(b), splat<V>(__builtin_inff())));
  const D x = convert_lanes<D>(a), y = convert_lanes<D>(b), whole = x / y + 0x1.8p52 - 0x1.8p52;  // the nearest integer
  const V left = convert_lanes<V>(x - whole * y), size = abs(b);
  const auto passed = to_mask(lt(left, splat<V>(0)) != lt(a, splat<V>(0)));
  const V result = copysign(where(passed, size - abs(left), abs(left)), a);
  const V found = where(eq(left, splat<V>(0)), copysign(left, a), result);
  if (__builtin_expect(any_bit(logical_not(inside)), 0)) return where(inside, found, map(library::fmod{}, a, b));
  return found;
}

// The C remainder, with the sign of a.
template <class V> RL_INLINE V fmod(V a, V b) {
  if constexpr (same<element<V>, float>) return float_remainder(a, b);
  else if constexpr (is_floating<element<V>>) return map(library::fmod{}, a, b);
  else return sub(a, mul(div(a, b), b));
}

// Python's remainder, with the sign of b.
template <class V> RL_INLINE V remainder(V a, V b) {
  const V zero = splat<V>(0), r = fmod(a, b);
  return where(logical_and(ne(r, zero), to_mask(lt(r, zero) != lt(b, zero))), add(r, b), r);
}

// Python's a // b: for floats computed from the exact remainder, so that it agrees with `remainder`.
template <class V> RL_INLINE V floor_div(V a, V b) {
  if constexpr (!is_floating<element<V>> && is_vector<V>) {
    const V zero = splat<V>(0), quotient = div(a, b), rest = sub(a, mul(quotient, b));
    const auto below = logical_and(logical_and(ne(b, zero), ne(rest, zero)), to_mask(lt(rest, zero) != lt(b, zero)));
    return sub(quotient, where(below, splat<V>(1), zero));
  } else if constexpr (!is_floating<element<V>>) {
    return floored_quotient{}(a, b);
  } else {
    const V zero = splat<V>(0), one = splat<V>(1), quotient = a / b, r = fmod(a, b);
    const auto below = logical_and(ne(r, zero), to_mask(lt(r, zero) != lt(b, zero)));
    const V whole = (a - r) / b - where(below, one, zero), down = floor(whole);  // an integer but for a rounding error
    const V near = where(gt(whole - down, splat<V>(0.5)), down + one, down);
    return where(eq(b, zero), quotient, where(eq(whole, zero), copysign(whole, quotient), near));
  }
}

// Python's a % b on sizes and indices.
RL_INLINE long floor_mod(long a, long b) { return a - floor_div(a, b) * b; }

// ---- bits ----------------------------------------------------------------------------------------------------------

template <class V> RL_INLINE V bitwise_and(V a, V b) { return (V)(a & b); }
template <class V> RL_INLINE V bitwise_or(V a, V b) { return (V)(a | b); }
template <class V> RL_INLINE V bitwise_xor(V a, V b) { return (V)(a ^ b); }
template <class V> RL_INLINE V bitwise_not(V a) { return (V)~a; }

// Counts outside 0..bits-1 shift all bits out: the result is zero, or the sign for a right shift of signed integers.
template <class V> RL_INLINE V shift_left(V a, V count) {
  const auto inside = logical_and(ge(count, splat<V>(0)), lt(count, splat<V>(sizeof(element<V>) * 8)));
  return where(inside, (V)((wrapping<V>)a << where(inside, count, splat<V>(0))), splat<V>(0));
}
template <class V> RL_INLINE V shift_right(V a, V count) {
  const V last = splat<V>(sizeof(element<V>) * 8 - 1);
  const auto inside = logical_and(ge(count, splat<V>(0)), le(count, last));
  const V shifted = (V)(a >> where(inside, count, last));
  if constexpr ((element<V>)-1 > (element<V>)0) return where(inside, shifted, splat<V>(0));
  else return shifted;
}

}  // namespace rl
