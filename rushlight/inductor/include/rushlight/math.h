// Elementary and activation functions for scalars and vectors alike (V is float, double, vec<float> or vec<double>).
//
// For float, all functions but lgamma run the same code for scalars and vectors. For double, doubles.h has some of them; the
// others call the C library lane by lane. Measured against float64 over all exponents, exp, log, sin, cos, tanh and erf are
// within 2 units in the last place, subnormals included; NaN, infinities and signed zeros are as in the C library.
//
// The coefficients are minimax fits made for this file (Lawson's iteration on the relative error); the reductions are
// Cody and Waite's.
#pragma once

#include <rushlight/doubles.h>

namespace rl {

// ---- the C library, lane by lane -----------------------------------------------------------------------------------

namespace library {
RL_LIBRARY(exp2) RL_LIBRARY(log2) RL_LIBRARY(log10) RL_LIBRARY(tan) RL_LIBRARY(asin) RL_LIBRARY(acos) RL_LIBRARY(atan)
RL_LIBRARY(asinh) RL_LIBRARY(acosh) RL_LIBRARY(atanh) RL_LIBRARY(erf) RL_LIBRARY(erfc) RL_LIBRARY(lgamma)
RL_LIBRARY2(atan2) RL_LIBRARY2(hypot) RL_LIBRARY2(pow)
}  // namespace library

template <class V> RL_INLINE V lgamma(V x) { return map(library::lgamma{}, x); }

template <class V> constexpr bool is_float = same<element<V>, float>;
constexpr float infinity = __builtin_inff();

// Clamps x to [low, high]; a NaN stays NaN.
template <class V> RL_INLINE V clamp(V x, float low, float high) {
  return larger(splat<V>(low), smaller(splat<V>(high), x));
}

// ---- exponentials --------------------------------------------------------------------------------------------------

// Adding 1.5 * 2^23 to |x| < 2^22 leaves no fraction: the sum holds the nearest integer n in its low bits.
constexpr float round_magic = 0x1.8p23f;
template <class V> RL_INLINE V shift_to_integer(V x) { return x + round_magic; }
template <class V> RL_INLINE V whole_part(V shifted) { return shifted - round_magic; }
template <class V> RL_INLINE integers<V> integer_part(V shifted) {
  return bitcast<integers<V>>(shifted) - bitcast<int32_t>(round_magic);
}

// Return 2^n for -126 <= n <= 127, given n + round_magic: the shift drops all bits but those of n.
template <class V> RL_INLINE V power_of_two(V shifted) {
  return bitcast<V>((bitcast<wrapping<V>>(shifted) << 23) + 0x3f800000);
}

// r * 2^n if neither overflows nor becomes subnormal.
template <class V> RL_INLINE V scale_normal(V r, V shifted) {
#ifdef RL_GCC_AVX512
  if constexpr (same<V, vec<float>>) return __builtin_ia32_scalefps512_mask(r, whole_part(shifted), r, -1, 4);
#endif
  return r * power_of_two(shifted);
}

// r * 2^n in two steps, for results that may overflow or be subnormal.
template <class V> RL_INLINE V scale_by_power(V r, V shifted) {
#ifdef RL_GCC_AVX512
  if constexpr (same<V, vec<float>>) return scale_normal(r, shifted);  // scalef handles these results in one step
#endif
  const integers<V> n = integer_part(shifted), half = n >> 1;
  return r * bitcast<V>(shift_up(half + 127, 23)) * bitcast<V>(shift_up(n - half + 127, 23));
}

// x - n ln 2 for the integer n nearest to x / ln 2. The first part of ln 2 is short, so that n times it is exact.
template <class V> RL_INLINE V reduce_by_ln2(V x, V& shifted) {
  shifted = shift_to_integer(x * 1.44269504f);
  const V whole = whole_part(shifted);
  return (x - whole * 0.693359375f) - whole * -2.12194440e-4f;
}

// e^r - 1 for |r| <= ln(2) / 2.
template <class V> RL_INLINE V expm1_reduced(V r) {
  return polynomial(r, 0.49999994f, 0.166665196f, 0.0416683927f, 0.00836878084f, 0.00138144649f) * r * r + r;
}

// 2^r for |r| <= 1/2.
template <class V> RL_INLINE V exp2_reduced(V r) {
  return polynomial(r, 1.0f, 0.693147182f, 0.240226477f, 0.0555033237f, 0.00961843692f, 0.0013398875f, 0.000153533605f);
}

template <class V> RL_INLINE V exp(V x) {
  if constexpr (!is_float<V>) return doubles::exp(x);
  else {
    V shifted;
    const V r = reduce_by_ln2(clamp(x, -104.0f, 89.0f), shifted);
    return scale_by_power(expm1_reduced(r) + 1.0f, shifted);
  }
}

// exp for x <= 0, as in a softmax; results below 1e-38 may become 0.
template <class V> RL_INLINE V exp_nonpositive(V x) {
  if constexpr (!is_float<V>) return doubles::exp(x);
  else {
    V shifted;
    const V r = reduce_by_ln2(x, shifted);
    return where(lt(x, splat<V>(-87.0f)), splat<V>(0), scale_normal(expm1_reduced(r) + 1.0f, shifted));
  }
}

template <class V> RL_INLINE V exp2(V x) {
  if constexpr (!is_float<V>) return map(library::exp2{}, x);
  else {
    x = clamp(x, -151.0f, 129.0f);
    const V shifted = shift_to_integer(x);
    return scale_by_power(exp2_reduced(x - whole_part(shifted)), shifted);
  }
}

// 2^n (e^r - 1) + (2^n - 1), halved throughout so that n = 128 does not overflow too early.
template <class V> RL_INLINE V expm1(V x) {
  if constexpr (!is_float<V>) return doubles::expm1(x);
  else {
    V shifted;
    const V r = reduce_by_ln2(clamp(x, -30.0f, 89.0f), shifted), half_power = power_of_two(shifted - 1.0f);
    const V result = (expm1_reduced(r) * half_power + (half_power - 0.5f)) * 2.0f;
    return where(lt(abs(x), splat<V>(0x1p-25f)), x, result);
  }
}

// ---- logarithms ----------------------------------------------------------------------------------------------------

// x = 2^exponent (1 + f) with 1 + f between sqrt(1/2) and sqrt(2), for x > 0; log(1 + f) = f + tail.
template <class V> struct log_parts {
  V exponent, f, tail;
};

template <class V> RL_INLINE log_parts<V> split_log(V x) {
  using I = integers<V>;
  const auto subnormal = lt(x, splat<V>(0x1p-126f));
  const I bits = bitcast<I>(bitcast<wrapping<V>>(where(subnormal, x * 0x1p23f, x)) + (0x3f800000 - 0x3f3504f3));
  const V exponent = convert_lanes<V>((bits >> 23) - 127) - where(subnormal, splat<V>(23.0f), splat<V>(0));
  const V f = bitcast<V>((bits & 0x7fffff) + 0x3f3504f3) - 1.0f, square = f * f;
  const V cubic = polynomial(f, 0.333333135f, -0.250000089f, 0.200021192f, -0.166679963f, 0.142195404f, -0.124055669f,
                             0.118882313f, -0.11675825f, 0.0674670115f);
  return {exponent, f, cubic * f * square - square * 0.5f};
}

// Correct the result of any logarithm for x = 0, infinity, NaN and negative x.
template <class V> RL_INLINE V log_special(V x, V result) {
  result = where(eq(x, splat<V>(infinity)), x, result);
  result = where(eq(x, splat<V>(0)), splat<V>(-infinity), result);
  return where(ge(x, splat<V>(0)), result, splat<V>(__builtin_nanf("")));
}

template <class V> RL_INLINE V log(V x) {
  if constexpr (!is_float<V>) return doubles::log(x);
  else {
    const log_parts<V> p = split_log(x);
    return log_special(x, p.exponent * 0.693359375f + (p.f + (p.exponent * -2.12194440e-4f + p.tail)));
  }
}

// Each constant is split into two parts, as in reduce_by_ln2; 1/ln 2 is 1 + 0.44...
template <class V> RL_INLINE V log2(V x) {
  if constexpr (!is_float<V>) return map(library::log2{}, x);
  else {
    const log_parts<V> p = split_log(x);
    const V low = p.tail * 0.442695041f + p.f * 0.442695041f;
    return log_special(x, low + p.tail + p.f + p.exponent);
  }
}

template <class V> RL_INLINE V log10(V x) {
  if constexpr (!is_float<V>) return map(library::log10{}, x);
  else {
    const log_parts<V> p = split_log(x);
    const V low = (p.f + p.tail) * 7.00731903e-4f + p.tail * 0.43359375f + p.exponent * 2.48745664e-4f;
    return log_special(x, low + p.f * 0.43359375f + p.exponent * 0.30078125f);
  }
}

// log(1 + x), corrected by the rounding error of 1 + x.
template <class V> RL_INLINE V log1p(V x) {
  if constexpr (!is_float<V>) return doubles::log1p(x);
  else {
    const V sum = x + 1.0f;
    const V lost = (x - (sum - 1.0f)) / sum;
    const V result = log(sum) + where(lt(abs(lost), splat<V>(1.0f)), lost, splat<V>(0));
    return where(lt(abs(x), splat<V>(0x1p-25f)), x, result);
  }
}

// ---- powers --------------------------------------------------------------------------------------------------------

struct integer_power {
  template <class T> T operator()(T base, T exponent) const {
    if (exponent < 0) return base == 1 ? (T)1 : base == (T)-1 ? (T)(exponent % 2 ? -1 : 1) : (T)0;
    uint64_t result = 1, square = (uint64_t)base;
    for (uint64_t rest = (uint64_t)exponent; rest; rest >>= 1, square *= square)
      if (rest & 1) result *= square;
    return (T)result;
  }
};

// The special cases are the C library's, for zeros, infinities, NaN and negative bases. Only odd exponents keep the sign of a
// base, and only integers give a real result for a negative base. From 2^24 on, all floats are even.
template <class V> RL_INLINE V pow(V a, V b) {
  if constexpr (!is_floating<element<V>>) return map(integer_power{}, a, b);
  else if constexpr (!is_float<V>) return map(library::pow{}, a, b);
  else {
    const V half = b * 0.5f, size = abs(a), one = splat<V>(1), zero = splat<V>(0);
    const auto whole = eq(floor(b), b), odd = logical_and(whole, ne(floor(half), half));
    using D = like<V, double>;
    V result = convert_lanes<V>(doubles::rough_pow(convert_lanes<D>(size), convert_lanes<D>(b)));  // rounded once
    result = where(odd, copysign(result, a), result);
    const auto negative = logical_and(lt(a, zero), lt(size, splat<V>(infinity)));
    result = where(logical_and(negative, logical_not(whole)), splat<V>(__builtin_nanf("")), result);
    const auto to_one = logical_or(eq(a, one), logical_and(eq(size, one), eq(abs(b), splat<V>(infinity))));
    return where(logical_or(eq(b, zero), to_one), one, result);
  }
}

// ---- trigonometry --------------------------------------------------------------------------------------------------

constexpr float quadrant_limit = 0x1p18f;  // up to here the reduction is exact enough; larger arguments use the C library

// Return x - n pi/2 for the nearest n. In double, n times the first 33 bits of pi/2 is exact, so the result keeps all float
// bits.
template <class V> RL_INLINE V reduce_by_half_pi(V x, integers<V>& n) {
  using D = like<V, double>;
  const V limited = where(lt(abs(x), splat<V>(quadrant_limit)), x, splat<V>(0));
  const V shifted = shift_to_integer(limited * 0.636619772f);
  const D whole = convert_lanes<D>(whole_part(shifted));
  n = integer_part(shifted);
  return convert_lanes<V>((convert_lanes<D>(limited) - whole * 0x1.921fb544p0) - whole * 0x1.0b4611a626331p-34);
}

template <class V> RL_INLINE V sin_reduced(V r) {
  const V square = r * r;
  return polynomial(square, -0.166666538f, 0.008332083f, -0.000195043162f) * square * r + r;
}

template <class V> RL_INLINE V cos_reduced(V r) {
  const V square = r * r;
  return polynomial(square, 0.0416666456f, -0.00138872431f, 2.44238854e-05f) * square * square + (1.0f - square * 0.5f);
}

// sin(r + n pi/2).
template <class V> RL_INLINE V sin_in_quadrant(V r, integers<V> n) {
  const V value = where(to_mask((n & 1) != 0), cos_reduced(r), sin_reduced(r));
  return bitcast<V>(bitcast<integers<V>>(value) ^ ((n & 2) << 30));
}

// Replace the results of large arguments by the C library's.
template <class F, class V> RL_INLINE V beyond_quadrants(const F& f, V x, V result) {
  const auto beyond = logical_not(lt(abs(x), splat<V>(quadrant_limit)));
  if (__builtin_expect(any_bit(beyond), 0)) return where(beyond, map(f, x), result);
  return result;
}

template <class V> RL_INLINE V sin(V x) {
  if constexpr (!is_float<V>) return doubles::sin(x);
  else {
    integers<V> n;
    const V r = reduce_by_half_pi(x, n), result = sin_in_quadrant(r, n);
    return beyond_quadrants(library::sin{}, x, where(eq(x, splat<V>(0)), x, result));
  }
}

template <class V> RL_INLINE V cos(V x) {
  if constexpr (!is_float<V>) return doubles::cos(x);
  else {
    integers<V> n;
    const V r = reduce_by_half_pi(x, n);
    return beyond_quadrants(library::cos{}, x, sin_in_quadrant(r, n + 1));
  }
}

template <class V> RL_INLINE V tan(V x) {
  if constexpr (!is_float<V>) return map(library::tan{}, x);
  else {
    integers<V> n;
    const V r = reduce_by_half_pi(x, n), s = sin_reduced(r), c = cos_reduced(r);
    const auto odd = to_mask((n & 1) != 0);
    const V result = where(odd, -c, s) / where(odd, s, c);
    return beyond_quadrants(library::tan{}, x, where(eq(x, splat<V>(0)), x, result));
  }
}

// ---- arcs ----------------------------------------------------------------------------------------------------------

constexpr float half_pi = 1.57079637f, half_pi_rest = -4.37113883e-08f;  // pi/2 is their sum

// The arc tangent of 0 <= t <= 1.
template <class V> RL_INLINE V atan_reduced(V t) {
  const V square = t * t;
  return polynomial(square, -0.33333328f, 0.19999693f, -0.14280131f, 0.110602446f, -0.088188484f, 0.06759572f, -0.044946447f,
                    0.022760341f, -0.0074226377f, 0.0011348784f) * square * t + t;
}

template <class V> RL_INLINE V atan(V x) {
  if constexpr (!is_float<V>) return map(library::atan{}, x);
  else {
    const V size = abs(x);
    const auto steep = gt(size, splat<V>(1));
    const V arc = atan_reduced(where(steep, 1.0f / size, size));
    return copysign(where(steep, half_pi - (arc - half_pi_rest), arc), x);
  }
}

// The angle of the point (x, y), from its slope to the nearer axis. The origin and points at infinity are special cases, as in
// C.
template <class V> RL_INLINE V atan2(V y, V x) {
  if constexpr (!is_float<V>) return map(library::atan2{}, y, x);
  else {
    const V across = abs(x), up = abs(y), zero = splat<V>(0);
    const auto steep = gt(up, across), alike = logical_and(eq(up, across), logical_or(eq(up, zero), isinf(up)));
    const V slope = where(steep, across, up) / where(steep, up, across), diagonal = where(eq(up, zero), zero, splat<V>(1));
    const V arc = atan_reduced(where(alike, diagonal, slope));
    const V right = where(steep, half_pi - (arc - half_pi_rest), arc);
    const V left = 2.0f * half_pi - (right - 2.0f * half_pi_rest);
    const V angle = where(lt(copysign(splat<V>(1), x), zero), left, right);
    return where(logical_or(isnan(x), isnan(y)), x + y, copysign(angle, y));
  }
}

// The arc sine of 0 <= t <= 1/2; `square` is t * t.
template <class V> RL_INLINE V asin_reduced(V t, V square) {
  return polynomial(square, 0.1666666f, 0.07500511f, 0.04451572f, 0.031817608f, 0.014402615f, 0.037565187f) * square * t + t;
}

// Return asin(size) for 0 <= size <= 1; if `large` (above 1/2), half of acos(size) instead, by cos a = 1 - 2 sin^2(a / 2).
template <class V, class M> RL_INLINE V nearer_arc(V size, M large) {
  const V square = where(large, 0.5f - size * 0.5f, size * size);
  return asin_reduced(where(large, sqrt(square), size), square);
}

template <class V> RL_INLINE V asin(V x) {
  if constexpr (!is_float<V>) return map(library::asin{}, x);
  else {
    const V size = abs(x);
    const auto large = gt(size, splat<V>(0.5f));
    const V arc = nearer_arc(size, large);
    return copysign(where(large, half_pi - (arc * 2.0f - half_pi_rest), arc), x);
  }
}

template <class V> RL_INLINE V acos(V x) {
  if constexpr (!is_float<V>) return map(library::acos{}, x);
  else {
    const V size = abs(x);
    const auto large = gt(size, splat<V>(0.5f)), left = lt(x, splat<V>(0));
    const V arc = nearer_arc(size, large);
    const V steep = where(left, 2.0f * half_pi - (arc * 2.0f - 2.0f * half_pi_rest), arc * 2.0f);
    return where(large, steep, half_pi - (copysign(arc, x) - half_pi_rest));
  }
}

// ---- hyperbolic functions ------------------------------------------------------------------------------------------

// exp(x) / 2 for x >= 0, which overflows later than exp(x).
template <class V> RL_INLINE V half_exp(V x) {
  if constexpr (!is_float<V>) return doubles::half_exp(x);
  else {
    V shifted;
    const V r = reduce_by_ln2(clamp(x, 0.0f, 90.0f), shifted);
    return scale_by_power(expm1_reduced(r) + 1.0f, shifted - 1.0f);
  }
}

template <class V> RL_INLINE V cosh(V x) {
  const V half = half_exp(abs(x));
  return half + splat<V>(0.25) / half;
}

template <class V> RL_INLINE V sinh(V x) {
  const V size = abs(x), square = x * x, half = half_exp(size);
  V small;
  if constexpr (is_float<V>) small = polynomial(square, 0.166666672f, 0.00833335053f, 0.000198360664f, 2.8174397e-06f);
  else small = doubles::sinh_tail(square);
  return where(lt(size, splat<V>(1)), small * square * x + x, copysign(half - splat<V>(0.25) / half, x));
}

// log1p(z), with z = sqrt(x^2 + 1) + |x| - 1 computed without cancellation; log(2 |x|) for large x.
template <class V> RL_INLINE V asinh(V x) {
  if constexpr (!is_float<V>) return map(library::asinh{}, x);
  else {
    const V size = abs(x), limit = splat<V>(0x1p12f), square = size * size;
    const V near = log1p(size + square / (sqrt(square + 1.0f) + 1.0f));
    return copysign(where(gt(size, limit), log(size) + 0.693147182f, near), x);
  }
}

template <class V> RL_INLINE V acosh(V x) {
  if constexpr (!is_float<V>) return map(library::acosh{}, x);
  else {
    const V above = x - 1.0f, near = log1p(above + sqrt(above * above + above * 2.0f));
    const V result = where(gt(x, splat<V>(0x1p12f)), log(x) + 0.693147182f, near);
    return where(ge(x, splat<V>(1)), result, splat<V>(__builtin_nanf("")));
  }
}

template <class V> RL_INLINE V atanh(V x) {
  if constexpr (!is_float<V>) return map(library::atanh{}, x);
  else {
    const V size = abs(x);
    return copysign(log1p(size * 2.0f / (1.0f - size)) * 0.5f, x);
  }
}

// Computed in double, so that no square overflows and no precision is lost.
template <class V> RL_INLINE V hypot(V x, V y) {
  if constexpr (!is_float<V>) return map(library::hypot{}, x, y);
  else {
    using D = like<V, double>;
    const D across = convert_lanes<D>(x), up = convert_lanes<D>(y);
    const V size = convert_lanes<V>(sqrt(across * across + up * up));
    return where(logical_or(isinf(x), isinf(y)), splat<V>(infinity), size);
  }
}

// ---- tanh, erf, and activations ------------------------------------------------------------------------------------

template <class V> RL_INLINE V tanh(V x) {
  if constexpr (!is_float<V>) return doubles::tanh(x);
  else {
    const V size = abs(x), square = x * x;
    const V small = polynomial(square, -0.333332837f, 0.133314908f, -0.0537434965f, 0.0206505787f, -0.00571703678f);
    const V large = 1.0f - 2.0f / (exp(clamp(size, 0.0f, 10.0f) * 2.0f) + 1.0f);
    return copysign(where(lt(size, splat<V>(0.625f)), small * square * size + size, large), x);
  }
}

// Below 0.92 an odd polynomial; above, 1 - erfc with a polynomial for the logarithm of erfc.
template <class V> RL_INLINE V erf(V x) {
  if constexpr (!is_float<V>) return map(library::erf{}, x);
  else {
    const V size = abs(x), square = x * x, t = clamp(size, 0.0f, 4.0f);
    const V small = polynomial(square, 0.128379166f, -0.376126319f, 0.112836875f, -0.0268589407f, 0.00519990642f,
                               -0.000813001185f, 8.31677244e-05f);
    const V large = exp_nonpositive(polynomial(t, -0.000166439087f, -1.12779725f, -0.636976004f, -0.104113743f,
                                               0.0223152488f, -0.00306549971f, 0.000198220703f));
    return where(lt(size, splat<V>(0.92f)), small * x + x, copysign(1.0f - large, x));
  }
}

// Above 0.5, exp(-x^2) times a polynomial in 1 / (1 + x / 2) without a constant term. x^2 is split as high^2 + low: `high` is x
// with a significand of 12 bits, so its square is exact. exp(-x^2) is exp(-high^2) * exp(-low), and low is so small that its
// exponential needs no range reduction.
template <class V> RL_INLINE V erfc(V x) {
  if constexpr (!is_float<V>) return map(library::erfc{}, x);
  else {
    const V size = clamp(abs(x), 0.0f, 11.0f), near = 1.0f / (size * 0.5f + 1.0f);
    const V high = bitcast<V>(bitcast<integers<V>>(size) & ~0xfff), low = (size - high) * (size + high);
    const V factor = polynomial(near, 0.28208637f, 0.28232124f, 0.24423042f, 0.19300196f, 0.018592762f, 0.15207991f,
                                -0.27179438f, 0.062973894f, 0.066829495f, -0.030349799f) * near;
    const V scaled = exp(-high * high), large = scaled * factor + scaled * factor * expm1_reduced(-low);
    return where(lt(abs(x), splat<V>(0.5f)), 1.0f - erf(x), where(lt(x, splat<V>(0)), 2.0f - large, large));
  }
}

// The inverse of erf, of floats (Giles 2010, "Approximating the erfinv function").
template <class V> RL_INLINE V erfinv(V x) {
  static_assert(is_float<V>, "of floats only");
  const V one = splat<V>(1.0f), w = -log((one - x) * (one + x)), near = w - 2.5f, far = sqrt(w) - 3.0f;
  const V inner = polynomial(near, 1.50140941f, 0.246640727f, -0.00417768164f, -0.00125372503f, 0.00021858087f,
                             -4.39150654e-06f, -3.5233877e-06f, 3.43273939e-07f, 2.81022636e-08f);
  const V outer = polynomial(far, 2.83297682f, 1.00167406f, 0.00943887047f, -0.0076224613f, 0.00573950773f,
                             -0.00367342844f, 0.00134934322f, 0.000100950558f, -0.000200214257f);
  const V infinity = splat<V>(__builtin_inff());
  return x * where(eq(abs(x), one), infinity, where(lt(w, splat<V>(5.0f)), inner, outer));
}

template <class V> RL_INLINE V sigmoid(V x) { return splat<V>(1) / (exp(-x) + splat<V>(1)); }
template <class V> RL_INLINE V silu(V x) { return x / (exp(-x) + splat<V>(1)); }

// x Phi(x), Phi the normal distribution. The smaller of Phi(x) and Phi(-x) is 2 to the power of a polynomial in |x|, so
// that nothing cancels for negative x; the absolute error is that of torch's 0.5 x (1 + erf(x / sqrt 2)).
template <class V> RL_INLINE V gelu_erf(V x) {
  if constexpr (!is_float<V>) return x * 0.5 * (erf(x * 0.70710678118654752440) + 1.0);
  else {
    const V size = abs(x), limit = splat<V>(5.6f), t = smaller(limit, size);
    const V power = polynomial(t, -0.99999994f, -1.15110683f, -0.459194005f, -0.0525456034f, 0.00714635244f,
                               -0.000210280064f, -0.000151394474f, 3.10625437e-05f, -2.05275524e-06f);
    const V shifted = shift_to_integer(power);
    const V smaller_part = scale_normal(exp2_reduced(power - whole_part(shifted)), shifted);
    const V tail = where(gt(size, limit), splat<V>(0), smaller_part);
    return x * where(lt(x, splat<V>(0)), tail, 1.0f - tail);
  }
}

// The derivative of gelu_erf, Phi(x) + x phi(x), where phi is the density. Phi(-|x|) is phi(x) times a polynomial in 1 / (1 +
// 0.28 |x|) without a constant term, to within 1e-8, so that both terms share one exponential.
template <class V> RL_INLINE V gelu_erf_slope(V x) {
  if constexpr (!is_float<V>) {
    const V below = (erf(x * 0.70710678118654752440) + 1.0) * 0.5;
    return below + x * exp(x * x * -0.5) * 0.39894228040143267794;
  } else {
    const V bounded = clamp(x, -14.0f, 14.0f), near = 1.0f / (abs(bounded) * 0.28f + 1.0f);
    const V density = exp_nonpositive(bounded * bounded * -0.5f);
    const V tail = polynomial(near, 0.116520934f, 0.0674957967f, 0.268912554f, -0.236996427f, 0.389875829f, -0.105808691f) * near *
                   density;
    return where(lt(x, splat<V>(0)), tail, 1.0f - tail) + bounded * density * 0.39894228f;
  }
}

// 0.5 x (1 + tanh(u)) = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3).
template <class V> RL_INLINE V gelu_tanh(V x) {
  using T = element<V>;
  const V u = (x * x * x * (T)0.044715 + x) * (T)0.79788456080286535588;
  return x / (exp(u * (T)-2) + splat<V>(1));
}

// The derivative of gelu_tanh, s + 2 x u' s (1 - s) with s = sigmoid(2 u), in a form in which nothing cancels for large x.
template <class V> RL_INLINE V gelu_tanh_slope(V x) {
  using T = element<V>;
  const V one = splat<V>(1), square = x * x;
  const V u = (square * x * (T)0.044715 + x) * (T)0.79788456080286535588;
  const V u_slope = (square * (T)0.134145 + one) * (T)0.79788456080286535588;
  const V power = exp(abs(u) * (T)-2), large = one / (power + one), small = power * large;
  return where(lt(u, splat<V>(0)), small, large) + x * u_slope * small * large * (T)2;
}

}  // namespace rl
