// exp, expm1, log, log1p, sin, cos and tanh of doubles, for scalars and vectors (V is double or vec<double>), within 2 units in
// the last place (expm1 2.5). A vec<double> is computed in two halves of one register each: compilers otherwise split
// selections into single lanes. `x < y ? a : b` on a vector selects lane by lane.
//
// The coefficients are minimax fits made for this file (Lawson's iteration); the reductions are Cody and Waite's, and log uses
// the series of s = f / (2 + f), as Tang (1990) does.
#pragma once

#include <rushlight/elementwise.h>

namespace rl {

namespace library {
RL_LIBRARY(sin) RL_LIBRARY(cos)
}  // namespace library

using doubles_register = half_of<double>::type;
#define RL_HALF_SHAPE(T)                                        \
  template <> struct shape_of<half_of<T>::type> {               \
    static constexpr bool vector = true;                        \
    using element = T;                                          \
    template <class U> using with = typename half_of<U>::type;  \
  };
RL_HALF_SHAPE(double) RL_HALF_SHAPE(int64_t)
#undef RL_HALF_SHAPE

namespace doubles {

template <class V> using words = like<V, uint64_t>;

// Adding 1.5 * 2^52 to |x| < 2^51 leaves no fraction: the sum holds the nearest integer n in its low bits.
constexpr double round_magic = 0x1.8p52;
template <class V> RL_INLINE integers<V> integer_part(V shifted) {
  return bitcast<integers<V>>(shifted) - bitcast<int64_t>(round_magic);
}

template <class V> RL_INLINE V limited(V x, double low, double high) {
  x = x < low ? splat<V>(low) : x;
  return x > high ? splat<V>(high) : x;
}

// Return 2^n for an integer n, given as a double and within the exponents of normal numbers.
template <class V> RL_INLINE V power_of_two(V n) {
  return bitcast<V>(shift_up(integer_part(V(n + round_magic)) + 1023, 52));
}

// Return r * 2^n in two steps, for results that may overflow or be subnormal.
template <class V> RL_INLINE V scale_by_power(V r, V n) {
  const V half = n * 0.5 + round_magic - round_magic;
  return r * power_of_two(half) * power_of_two(V(n - half));
}

// Return x - n ln 2 for the integer n nearest to x / ln 2. The first part of ln 2 has 32 bits, so that n times it is exact.
template <class V> RL_INLINE V reduce_by_ln2(V x, V& n) {
  n = x * 1.44269504088896340736 + round_magic - round_magic;
  return (x - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33;
}

// e^r - 1 for |r| <= ln(2) / 2.
template <class V> RL_INLINE V expm1_reduced(V r) {
  return polynomial(r, 0.5000000000000013, 0.16666666666666716, 0.04166666666651166, 0.008333333333295546,
                    0.001388888894803254, 0.00019841269944305474, 2.4801488881534588e-05, 2.75571909694778e-06,
                    2.763165750099569e-07, 2.5126247488604436e-08) * r * r + r;
}

template <class V> RL_INLINE V exp_of(V x) {
  V n;
  const V r = reduce_by_ln2(limited(x, -746, 710), n);
  return scale_by_power(V(expm1_reduced(r) + 1), n);
}

// exp(x) / 2 for x >= 0.
template <class V> RL_INLINE V half_exp_of(V x) {
  V n;
  const V r = reduce_by_ln2(limited(x, 0, 711), n);
  return scale_by_power(V(expm1_reduced(r) + 1), V(n - 1));
}

// 2^n (e^r - 1) + (2^n - 1), halved throughout so that n = 1024 does not overflow too early.
template <class V> RL_INLINE V expm1_of(V x) {
  V n;
  const V r = reduce_by_ln2(limited(x, -60, 710), n), half = power_of_two(V(n - 1));
  const V result = (expm1_reduced(r) * half + (half - 0.5)) * 2;
  return abs(x) < 0x1p-54 ? x : result;
}

template <class V> RL_INLINE V tanh_of(V x) {
  const V size = abs(x), grown = expm1_of(limited(V(size * 2), 0, 44));
  return copysign(V(grown / (grown + 2)), x);
}

// (sinh(x) - x) / x^3 for |x| <= 1.
template <class V> RL_INLINE V sinh_tail_of(V square) {
  return polynomial(square, 0.16666666666666666, 0.0083333333333332, 0.00019841269841405507, 2.7557319163193173e-06,
                    2.5052122433570087e-08, 1.6057298060806384e-10, 7.757983229035661e-13);
}

// x = 2^n (1 + f) with 1 + f between sqrt(1/2) and sqrt(2); log(1 + f) = f - f^2/2 + s (f^2/2 + R(s^2)).
template <class V> RL_INLINE V log_of(V x) {
  using W = words<V>;
  constexpr uint64_t root = 0x3fe6a09e667f3bcd, one = 0x3ff0000000000000, fraction = 0xfffffffffffff;
  const auto subnormal = x < 0x1p-1022;
  const W bits = bitcast<W>(subnormal ? V(x * 0x1p54) : x) + (one - root);
  const V biased = bitcast<V>((bits >> 52) | bitcast<uint64_t>(0x1p52)) - 0x1p52;
  const V n = biased - (subnormal ? splat<V>(1077.0) : splat<V>(1023.0));
  const V f = bitcast<V>((bits & fraction) + root) - 1, s = f / (f + 2), square = s * s, half = f * f * 0.5;
  const V rest = polynomial(square, 0.6666666666666735, 0.3999999999941177, 0.28571428743138694, 0.22222198486626962,
                            0.18183569274412695, 0.15313913254782496, 0.14797424047731447) * square;
  V result = n * 0x1.62e42feep-1 - ((half - (s * (half + rest) + n * 0x1.a39ef35793c76p-33)) - f);
  result = x == __builtin_inf() ? x : result;
  result = x == 0 ? splat<V>(-__builtin_inf()) : result;
  return x >= 0 ? result : splat<V>(__builtin_nan(""));
}

// log(1 + x), corrected by the rounding error of 1 + x.
template <class V> RL_INLINE V log1p_of(V x) {
  const V sum = x + 1, lost = (x - (sum - 1)) / sum;
  const V result = log_of(sum) + (abs(lost) < 1 ? lost : splat<V>(0));
  return abs(x) < 0x1p-54 ? x : result;
}

// log2(x) to 1e-11 for x > 0 and finite: the mantissa m lies in [sqrt(1/2), sqrt(2)), and log(m) = 2 artanh((m - 1) / (m + 1)).
template <class V> RL_INLINE V rough_log2(V x) {
  using I = integers<V>;
  const I bits = bitcast<I>(x), shift = (bits - 0x3fe6a09e667f3bcdL) >> 52;
  const V m = bitcast<V>(bits - shift_up(shift, 52)), t = (m - 1.0) / (m + 1.0), s = t * t;
  const V series = polynomial(s, 1.0, 1.0 / 3, 0.2, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13) * t;
  return series * 2.8853900817779268 + (bitcast<V>(shift + bitcast<int64_t>(round_magic)) - round_magic);
}

// 2^x to 1e-9, for |x| <= 300.
template <class V> RL_INLINE V rough_exp2(V x) {
  const V shifted = x + round_magic, n = shifted - round_magic, r = (x - n) * 0.69314718055994531;
  return power_of_two(n) *
         polynomial(r, 1.0, 1.0, 0.5, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320);
}

// x^y for x >= 0, exact enough for rounding to float, and correct if the result is zero, infinite or NaN, except for x = 1 and
// y = 0.
template <class V> RL_INLINE V rough_pow_of(V x, V y) {
  const V log = x > 0 ? rough_log2(x) : splat<V>(-__builtin_inf());
  return rough_exp2(limited(V(y * (x < __builtin_inf() ? log : x)), -300, 300));
}

// x - m pi/2 for the nearest m. pi/2 is split into parts of 33, 33 and 53 bits; m times the first two is exact. `shifted` has m
// in its low bits. The third part also makes up for the rounding error of the second subtraction.
template <class V> RL_INLINE V reduce_by_half_pi(V x, V& shifted) {
  shifted = x * 0.63661977236758134308 + round_magic;
  const V m = shifted - round_magic;
  const V first = x - m * 0x1.921fb544p+0, part = m * 0x1.0b4611a6p-34, second = first - part;
  return second - (m * 0x1.3198a2e037073p-69 - ((first - second) - part));
}

// sin(r + m pi/2); only the low two bits of m count.
template <class V> RL_INLINE V sin_in_quadrant(V r, integers<V> m) {
  const V square = r * r;
  const V sine = polynomial(square, -0.16666666666666632, 0.008333333333322358, -0.00019841269829762325,
                            2.755731367590234e-06, -2.505075557069597e-08, 1.589664594736225e-10) * square * r + r;
  const V cosine = polynomial(square, 0.041666666666666595, -0.001388888888887298, 2.4801587288754505e-05,
                              -2.755731414150758e-07, 2.087569478848507e-09, -1.1358189526849515e-11) * square * square;
  const V half = square * 0.5, one_less = 1 - half;
  const V value = (m & 1) != 0 ? V(one_less + ((1 - one_less - half) + cosine)) : sine;
  return bitcast<V>(bitcast<integers<V>>(value) ^ ((m & 2) << 62));
}

// Return sin(x + turns pi/2). `beyond` marks the lanes in which that is inaccurate: m is too large for the reduction, or the
// reduced x nearly vanishes.
template <class V> RL_INLINE V turned_sin(V x, int turns, integers<V>& beyond) {
  V shifted;
  const V r = reduce_by_half_pi(x, shifted), result = sin_in_quadrant(r, bitcast<integers<V>>(shifted) + turns);
  beyond = integers<V>{} | ((abs(x) < 0x1p19) == 0) | ((abs(r) < 0x1p-28) & (abs(x) > 1));
  return result;
}

// Apply f to each lane.
template <class F> __attribute__((noinline, cold)) doubles_register by_lane(const F& f, doubles_register x) {
  for (unsigned long i = 0; i < sizeof x / sizeof x[0]; ++i) x[i] = f(x[i]);
  return x;
}

// Return sin(x + turns pi/2), using the C library's f for vectors with inaccurate lanes. The two halves are selected
// separately, as registers.
template <class F, class V> RL_INLINE V turned_sin(const F& f, V x, int turns) {
  if constexpr (is_vector<V>) {
    halves<V> parts(x);
    integers<doubles_register> beyond[2];
    doubles_register low = turned_sin(parts.part[0], turns, beyond[0]), high = turned_sin(parts.part[1], turns, beyond[1]);
    if (__builtin_expect(any_bit(beyond[0] | beyond[1]), 0)) low = by_lane(f, parts.part[0]), high = by_lane(f, parts.part[1]);
    parts.part[0] = low, parts.part[1] = high;
    return parts.whole();
  } else {
    int64_t beyond;
    const V result = turned_sin(x, turns, beyond);
    return __builtin_expect(beyond, 0) ? f(x) : result;
  }
}

template <class V> RL_INLINE V sin(V x) {
  const V result = turned_sin(library::sin{}, x, 0);
  return where(eq(x, splat<V>(0)), x, result);
}
template <class V> RL_INLINE V cos(V x) { return turned_sin(library::cos{}, x, 1); }

template <class V> RL_INLINE V rough_pow(V x, V y) {
  if constexpr (is_vector<V>) {
    halves<V> bases(x), exponents(y);
    RL_UNROLL for (int i = 0; i < 2; ++i) bases.part[i] = rough_pow_of(bases.part[i], exponents.part[i]);
    return bases.whole();
  } else {
    return rough_pow_of(x, y);
  }
}

#define RL_DOUBLES(name)                                                  \
  template <class V> RL_INLINE V name(V x) {                              \
    if constexpr (is_vector<V>) {                                         \
      halves<V> parts(x);                                                 \
      RL_UNROLL for (int i = 0; i < 2; ++i) parts.part[i] = name##_of(parts.part[i]); \
      return parts.whole();                                               \
    } else {                                                              \
      return name##_of(x);                                                \
    }                                                                     \
  }
RL_DOUBLES(exp) RL_DOUBLES(half_exp) RL_DOUBLES(expm1) RL_DOUBLES(log) RL_DOUBLES(log1p)
RL_DOUBLES(tanh) RL_DOUBLES(sinh_tail)
#undef RL_DOUBLES

}  // namespace doubles
}  // namespace rl
