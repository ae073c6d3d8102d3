// Elementary functions for scalars and vectors (V is float, double, vec<float> or vec<double>).
#pragma once

#include <rushlight/elementwise.h>

namespace rl {

// c0 + c1 x + c2 x^2 + ..., by Horner's rule.
template <class V> RL_INLINE V polynomial(V, float last) { return splat<V>(last); }
template <class V, class... C> RL_INLINE V polynomial(V x, float first, C... rest) {
  return polynomial(x, rest...) * x + first;
}

// The nearest integer of |x| < 2^22, as the integer added to the bits of `magic`: adding 1.5 * 2^23 leaves no fraction.
constexpr float round_magic = 0x1.8p23f;

// e^(x - n ln 2) for the integer n nearest to x / ln 2, with n as an int. The argument is reduced with ln 2 in two parts,
// the first short enough for n times it to be exact.
template <class V> RL_INLINE V exp_reduced(V x, like<V, int32_t>& n) {
  const V shifted = x * 1.44269504f + round_magic;
  n = bitcast<like<V, int32_t>>(shifted) - bitcast<int32_t>(round_magic);
  const V whole = shifted - round_magic, r = (x - whole * 0.693359375f) - whole * -2.12194440e-4f;
  return polynomial(r, 0.49999994f, 0.166665196f, 0.0416683927f, 0.00836878084f, 0.00138144649f) * r * r + r + 1.0f;
}

template <class V> RL_INLINE V power_of_two(V n) { return bitcast<like<V, float>>((n + 127) << 23); }

template <class V> RL_INLINE V exp(V x) {
  like<V, int32_t> n;
  x = where(gt(x, splat<V>(89.0f)), splat<V>(89.0f), where(lt(x, splat<V>(-104.0f)), splat<V>(-104.0f), x));
  const V r = exp_reduced(x, n);
  return r * bitcast<V>(((n >> 1) + 127) << 23) * bitcast<V>((n - (n >> 1) + 127) << 23);
}

// exp for x <= 0, as in a softmax: what would be less than 2^-126 is 0.
template <class V> RL_INLINE V exp_nonpositive(V x) {
  like<V, int32_t> n;
  const V r = exp_reduced(where(lt(x, splat<V>(-87.0f)), splat<V>(-87.0f), x), n);
  return where(lt(x, splat<V>(-87.0f)), splat<V>(0), r * bitcast<V>((n + 127) << 23));
}

}  // namespace rl
