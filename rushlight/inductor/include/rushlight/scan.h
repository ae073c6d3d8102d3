// Running results such as cumulative sums: each call of rl::scan<Op, T, V>::add takes the next value and returns the result so
// far. V is T, or a vector whose lanes are separate rows. Sums and products of floats are kept in double precision, as in torch
// on the CPU.
#pragma once

#include <rushlight/math.h>
#include <rushlight/reduce.h>

namespace rl {

// The type in which running sums and products of T are kept.
template <class T> struct running_type { using type = T; };
template <> struct running_type<float> { using type = double; };

struct logsumexp {
  template <class T> static constexpr T identity = -(T)__builtin_inf();
  template <class V> static RL_INLINE V combine(V a, V b) {
    const V high = maximum(a, b), low = minimum(a, b), sum = high + log1p(exp(low - high));
    return where(logical_or(isinf(high), isnan(high)), high, sum);
  }
};

template <class Op, class V> struct scan {
  V total = splat<V>(Op::template identity<element<V>>);
  RL_INLINE V add(V v) { return total = Op::combine(total, v); }
};

// In a single row, extrema seldom change: a well-predicted branch avoids a chain of dependent instructions.
template <class Op, class V> struct extremum_scan {
  V total = splat<V>(Op::template identity<element<V>>);
  RL_INLINE V add(V v) {
    if constexpr (!is_vector<V>) {
      if (__builtin_expect(same<Op, max> ? v <= total : v >= total, 1)) return total;
    }
    return total = Op::combine(total, v);
  }
};
template <class V> struct scan<max, V> : extremum_scan<max, V> {};
template <class V> struct scan<min, V> : extremum_scan<min, V> {};

template <class Op, class V> struct wide_scan {
  using wide = like<V, typename running_type<element<V>>::type>;
  wide total = splat<wide>(Op::template identity<element<wide>>);
  RL_INLINE V add(V v) { return convert_lanes<V>(total = Op::combine(total, convert_lanes<wide>(v))); }
};
template <class V> struct scan<sum, V> : wide_scan<sum, V> {};
template <class V> struct scan<prod, V> : wide_scan<prod, V> {};

// The index of the last extremum so far (of equal values, the later one). Once it is a NaN, only another NaN replaces it.
template <class Op, class V> struct scan_place {
  using I = like<V, int64_t>;
  V best = splat<V>(Op::template start<element<V>>);
  I place{};

  RL_INLINE I add(V v, I index) {
    if constexpr (!is_vector<V>) {
      if (__builtin_expect(Op::better(best, v), 1)) return place;
    }
    auto replace = logical_or(Op::better(v, best), eq(v, best));
    if constexpr (is_floating<element<V>>) replace = logical_or(replace, isnan(v));
    if constexpr (is_floating<element<V>>) replace = logical_and(replace, logical_or(logical_not(isnan(best)), isnan(v)));
    best = where(replace, v, best);
    return place = where(replace, index, place);
  }
};
template <class V> struct scan<argmax, V> : scan_place<argmax, V> {};
template <class V> struct scan<argmin, V> : scan_place<argmin, V> {};

}  // namespace rl
