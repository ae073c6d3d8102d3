// Reduction accumulators.
//
// `rl::accumulator<Op, T>` reduces one row to a scalar: it takes the row's whole vectors and its scalar remainder.
//
//     rl::accumulator<rl::sum, float> total;
//     rl::for_each(n, [&](auto lane, long i) { total.add(lane, lane.load(in + i)); });
//     out[0] = total.finish();
//
// T is the type of computation (float for bfloat16). Op is sum, prod, max, min, any or all (T = bool); max and min propagate
// NaN. rl::accumulator<rl::argmax, T> and argmin also take the element's index, add(lane, value, i), and finish() returns the
// index of the first extremum, or of the first NaN. rl::welford<T> computes mean, m2 and count.
//
// `rl::column_accumulator<Op, V>` reduces many rows elementwise, so that every lane holds a separate result: add(v) takes a T
// or a vec<T> (V is the decltype of a loaded value), and finish() returns a V. For argmax and argmin, call add(v, r) with r =
// 0, 1, ...
//
// Sums of floats use three levels of partial sums: no chain of additions is longer than 128 up to 2^18 elements, so the
// rounding error grows as slowly as that of a pairwise sum.
#pragma once

#include <rushlight/elementwise.h>

namespace rl {

// ---- operations ----------------------------------------------------------------------------------------------------

template <class T> RL_INLINE constexpr T lowest_value() {
  if constexpr (is_floating<T>) return -(T)__builtin_inf();
  else if constexpr ((T)-1 > (T)0) return (T)0;
  else return (T)(-((T)(((uint64_t)1 << (sizeof(T) * 8 - 1)) - 1)) - 1);
}
template <class T> RL_INLINE constexpr T highest_value() {
  if constexpr (is_floating<T>) return (T)__builtin_inf();
  else return (T)~lowest_value<T>();
}

struct sum {
  template <class T> static constexpr T identity = (T)0;
  template <class V> static RL_INLINE V combine(V a, V b) { return add(a, b); }
};
struct prod {
  template <class T> static constexpr T identity = (T)1;
  template <class V> static RL_INLINE V combine(V a, V b) { return mul(a, b); }
};
struct max {
  template <class T> static constexpr T identity = lowest_value<T>();
  template <class V> static RL_INLINE V combine(V a, V b) { return maximum(a, b); }
};
struct min {
  template <class T> static constexpr T identity = highest_value<T>();
  template <class V> static RL_INLINE V combine(V a, V b) { return minimum(a, b); }
};
struct any {
  template <class T> static constexpr T identity = false;
  template <class V> static RL_INLINE V combine(V a, V b) { return logical_or(a, b); }
};
struct all {
  template <class T> static constexpr T identity = true;
  template <class V> static RL_INLINE V combine(V a, V b) { return logical_and(a, b); }
};

// Combine the lanes of v into one scalar: each round combines every lane with the lane at its index xor `width`.
template <class Op, class V> RL_INLINE element<V> reduce_lanes(V v) {
  using I = integers<V>;
  I index;
  RL_UNROLL for (int i = 0; i < lanes; ++i) index[i] = i;
  RL_UNROLL for (int width = lanes / 2; width; width /= 2) v = Op::combine(v, permute(v, index ^ splat<I>(width)));
  return v[0];
}

// ---- across the lanes ----------------------------------------------------------------------------------------------

// Two partial results take turns, so that consecutive operations do not depend on each other.
template <class Op, class V> struct column_accumulator {
  V next = initial(), other = initial();

  RL_INLINE void add(V v) {
    const V done = Op::combine(next, v);
    next = other;
    other = done;
  }
  RL_INLINE V finish() const { return Op::combine(next, other); }

  static RL_INLINE V initial() { return splat<V>(Op::template identity<element<V>>); }
};

// A sum in three levels: `next` and `other` of 128 values, `middle` of 128 such sums, and `top`.
template <class V> struct cascade_sum {
  V next{}, other{}, middle{}, top{};
  uint32_t count = 0;

  RL_INLINE void add(V v) {
    const V done = next + v;
    next = other;
    other = done;
    if (__builtin_expect((++count & 127) == 0, 0)) flush();
  }
  RL_INLINE void flush() {
    middle += next + other;
    next = other = V{};
    if ((count & 16383) == 0) {
      top += middle;
      middle = V{};
    }
  }
  // put() and end_part() replace add() where the caller alternates between several sums: call put() at most 128 times, then
  // end_part().
  RL_INLINE void put(V v) { next += v; }
  RL_INLINE void end_part() {
    middle += next;
    next = V{};
    if ((++count & 127) == 0) {
      top += middle;
      middle = V{};
    }
  }
  RL_INLINE V finish() const { return (next + other) + middle + top; }
};
template <> struct column_accumulator<sum, float> : cascade_sum<float> {};
template <> struct column_accumulator<sum, vec<float>> : cascade_sum<vec<float>> {};

// The accumulator of any and all. Masks are int32 lanes, 0 or -1, so the identity of `all` is -1.
template <class Op> struct mask_accumulator {
  mask value = splat<mask>(-(int)Op::template identity<bool>);
  RL_INLINE void add(mask m) { value = Op::combine(value, m); }
  RL_INLINE mask finish() const { return value; }
};
template <> struct column_accumulator<any, mask> : mask_accumulator<any> {};
template <> struct column_accumulator<all, mask> : mask_accumulator<all> {};

// ---- along the lanes -----------------------------------------------------------------------------------------------

template <class Op, class T> struct accumulator {
  column_accumulator<Op, vec<T>> whole;
  column_accumulator<Op, T> rest;

  RL_INLINE void add(vector_lane, vec<T> v) { whole.add(v); }
  RL_INLINE void add(scalar_lane, T v) { rest.add(v); }
  RL_INLINE T finish() const { return Op::combine((T)reduce_lanes<Op>(whole.finish()), rest.finish()); }
};

// ---- extrema with their places -------------------------------------------------------------------------------------

struct argmax {
  template <class V> static RL_INLINE auto better(V v, V best) { return gt(v, best); }
  template <class T> static constexpr T start = lowest_value<T>();
};
struct argmin {
  template <class V> static RL_INLINE auto better(V v, V best) { return lt(v, best); }
  template <class T> static constexpr T start = highest_value<T>();
};

// Test whether v replaces `best`: a NaN replaces every number, and nothing replaces a NaN.
template <class Op, class V> RL_INLINE auto replaces(V v, V best) {
  if constexpr (is_floating<element<V>>)
    return logical_and(logical_or(Op::better(v, best), isnan(v)), logical_not(isnan(best)));
  else return Op::better(v, best);
}

// The index of the first extremum of values that are added in increasing order of index. Place is the integer type of the
// index.
template <class Op, class V, class Place> struct first_extremum {
  V best = splat<V>(Op::template start<element<V>>);
  like<V, Place> place{};

  RL_INLINE void add(V v, Place at) {
    const auto replace = replaces<Op>(v, best);
    best = where(replace, v, best);
    place = where(replace, splat<like<V, Place>>(at), place);
  }
  RL_INLINE like<V, Place> finish() const { return place; }
};
template <class V> struct column_accumulator<argmax, V> : first_extremum<argmax, V, int64_t> {};
template <class V> struct column_accumulator<argmin, V> : first_extremum<argmin, V, int64_t> {};

template <class Op, class T> struct extremum {
  // one extremum per lane; a place is the index of the vector's first lane, minus `base`
  first_extremum<Op, vec<T>, int32_t> whole;
  int64_t base = 0;
  bool any = false;  // whether a whole vector was added since `base` changed
  T best = Op::template start<T>;  // the extremum of the scalar remainder and of earlier bases; `place` is its index
  int64_t place = INT64_MAX;

  RL_INLINE void add(vector_lane, vec<T> v, int64_t at) {
    if (__builtin_expect(at - base > INT32_MAX, 0)) start_from(at);
    whole.add(v, (int32_t)(at - base));
    any = true;
  }
  RL_INLINE void add(scalar_lane, T v, int64_t at) {
    if (replaces<Op>(v, best) || (at < place && !replaces<Op>(best, v))) {
      best = v;
      place = at;
    }
  }
  RL_INLINE int64_t finish() const {
    extremum result = *this;
    result.take_lanes();
    return result.place;
  }

 private:
  void take_lanes() {
    for (int i = 0; any && i < lanes; ++i) add(scalar_lane{}, whole.best[i], base + whole.place[i] + i);
  }
  void start_from(int64_t at) {
    take_lanes();
    whole = {};
    any = false;
    base = at;
  }
};
template <class T> struct accumulator<argmax, T> : extremum<argmax, T> {};
template <class T> struct accumulator<argmin, T> : extremum<argmin, T> {};

// ---- moments -------------------------------------------------------------------------------------------------------

// Mean, sum of squared deviations and count, by Welford's recurrence, merged as in Chan, Golub and LeVeque (1979).
template <class V> struct moments {
  V mean{}, m2{};
  element<V> count = 0;

  RL_INLINE void add(V v) {
    count += 1;
    const V delta = v - mean;
    mean += delta * (1 / count);
    m2 += delta * (v - mean);
  }
  RL_INLINE void merge(const moments& other) {
    const element<V> total = count + other.count, share = total ? other.count / total : 0;
    const V delta = other.mean - mean;
    mean += delta * share;
    m2 += other.m2 + delta * delta * (count * share);
    count = total;
  }
};

template <class T> struct welford {
  moments<vec<T>> whole;
  moments<T> rest;

  RL_INLINE void add(vector_lane, vec<T> v) { whole.add(v); }
  RL_INLINE void add(scalar_lane, T v) { rest.add(v); }
  RL_INLINE moments<T> finish() const {
    moments<T> lane[lanes];
    for (int i = 0; i < lanes; ++i) lane[i] = {whole.mean[i], whole.m2[i], whole.count};
    for (int width = lanes / 2; width; width /= 2)
      for (int i = 0; i < width; ++i) lane[i].merge(lane[i + width]);
    lane[0].merge(rest);
    return lane[0];
  }
};

}  // namespace rl
