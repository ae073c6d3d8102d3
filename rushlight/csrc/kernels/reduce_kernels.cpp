// Reductions of contiguous rows, and of adjacent columns.
#include <rushlight/reduce.h>

#include "variant.h"

namespace rl {

// ---- rows ----------------------------------------------------------------------------------------------------------

// Reduce a row. From is the elements' type, T the type in which they are accumulated.
template <class Op, class From, class T> void reduce_row(const void* in, int64_t n, void* out, const void*) {
  accumulator<Op, T> total;
  const From* p = (const From*)in;
  const auto load = [&](auto lane, long i) { return cast<T, From>(lane.load(p + i)); };
  long first = 0;
  // Combine four independent vectors first; with one accumulator, each addition would wait for the one before.
  for (; first + 4 * lanes <= n; first += 4 * lanes) {
    const vector_lane lane;
    const auto low = Op::combine(load(lane, first), load(lane, first + lanes));
    const auto high = Op::combine(load(lane, first + 2 * lanes), load(lane, first + 3 * lanes));
    total.add(lane, Op::combine(low, high));
  }
  for_each(n - first, [&](auto lane, long i) { total.add(lane, load(lane, first + i)); });
  *(T*)out = total.finish();
}

// Find the first index of the value *wanted, or of a NaN if that is NaN; INT64_MAX if there is none.
template <class T> void find_row(const void* in, int64_t n, void* out, const void* wanted) {
  constexpr int64_t block = 16 * lanes;
  const T *p = (const T*)in, value = *(const T*)wanted;
  const auto is_wanted = [&](auto v) {
    if constexpr (is_floating<T>)
      if (value != value) return isnan(v);
    return eq(v, splat<decltype(v)>(value));
  };
  int64_t first = 0;
  for (; first + block <= n; first += block) {
    mask found = {};
    for (int64_t i = 0; i < block; i += lanes) found |= is_wanted(vector_lane{}.load(p + first + i));
    if (reduce_lanes<any>(found)) break;
  }
  for (; first < n; ++first)
    if (is_wanted(p[first])) break;
  *(int64_t*)out = first < n ? first : INT64_MAX;
}

// Find the index of a row's extremum. Two passes, for the value and for its index, are faster than one that tracks indices.
template <class Op, class T> void extremum_row(const void* in, int64_t n, void* out, const void*) {
  T value;
  reduce_row<Op, T, T>(in, n, &value, nullptr);
  find_row<T>(in, n, out, &value);
}

struct squared {
  template <class V> static RL_INLINE V of(V x) { return x * x; }
};
struct plain {
  template <class V> static RL_INLINE V of(V x) { return x; }
};

// Sum F applied to the differences from a mean.
template <class F, class T> void difference_row(const void* in, int64_t n, void* out, const void* given) {
  accumulator<sum, T> total;
  const T *p = (const T*)in, mean = *(const T*)given;
  for_each(n, [&](auto lane, long i) { total.add(lane, F::of(lane.load(p + i) - mean)); });
  *(T*)out = total.finish();
}

// ---- columns -------------------------------------------------------------------------------------------------------

// Sums of floats use three levels of partial sums, as in reduce.h.
template <class Op, class T> constexpr bool cascades = same<Op, sum> && is_floating<T>;

template <class Op, class T> struct column_block {
  T value[REDUCED_WIDTH], middle[REDUCED_WIDTH], top[REDUCED_WIDTH];
  int64_t width, count = 0;

  explicit column_block(int64_t of) : width(of) {
    fill(value, Op::template identity<T>);
    if constexpr (cascades<Op, T>) fill(middle, (T)0), fill(top, (T)0);
  }
  template <class F> RL_INLINE void add(const F& row) {  // row(lane, j)
    for_each(width, [&](auto lane, long j) { lane.store(value + j, Op::combine(lane.load(value + j), row(lane, j))); });
    if constexpr (cascades<Op, T>) {
      if ((++count & 127) == 0) flush(value, middle);
      if ((count & 16383) == 0) flush(middle, top);
    }
  }
  void finish(T* out) {
    if constexpr (cascades<Op, T>) {
      flush(value, middle);
      flush(middle, top);
    }
    __builtin_memcpy(out, cascades<Op, T> ? top : value, width * sizeof(T));
  }

 private:
  void fill(T* block, T with) {
    for (int64_t j = 0; j < width; ++j) block[j] = with;
  }
  void flush(T* from, T* to) {
    for_each(width, [&](auto lane, long j) { lane.store(to + j, lane.load(to + j) + lane.load(from + j)); });
    fill(from, (T)0);
  }
};

template <class Op, class From, class T>
void reduce_columns(const void* in, int64_t n, int64_t stride, int64_t width, void* out, const void*) {
  column_block<Op, T> block(width);
  const From* p = (const From*)in;
  for (int64_t i = 0; i < n; ++i, p += stride)
    block.add([&](auto lane, long j) { return cast<T, From>(lane.load(p + j)); });
  block.finish((T*)out);
}

template <class F, class T>
void difference_columns(const void* in, int64_t n, int64_t stride, int64_t width, void* out, const void* given) {
  column_block<sum, T> block(width);
  const T *p = (const T*)in, *mean = (const T*)given;
  for (int64_t i = 0; i < n; ++i, p += stride)
    block.add([&](auto lane, long j) { return F::of(lane.load(p + j) - lane.load(mean + j)); });
  block.finish((T*)out);
}

template <class Op, class T>
void extremum_columns(const void* in, int64_t n, int64_t stride, int64_t width, void* out, const void*) {
  const T* p = (const T*)in;
  for_each(width, [&](auto lane, long j) {
    using V = decltype(lane.load(p));
    column_accumulator<Op, V> best;
    for (int64_t i = 0; i < n; ++i) best.add(lane.load(p + i * stride + j), i);
    lane.store((int64_t*)out + j, best.finish());
  });
}

// ---- tables: one row per operation, one column per element type as in kernels.h ---------------------------------------

#define RL_SUMS(kernel, op)                                                                             \
  {kernel<op, bool, int64_t>, kernel<op, uint8_t, int64_t>, kernel<op, int8_t, int64_t>,                 \
   kernel<op, int16_t, int64_t>, kernel<op, int32_t, int64_t>, kernel<op, int64_t, int64_t>,             \
   kernel<op, half, float>, kernel<op, bfloat16, float>, kernel<op, float, float>, kernel<op, double, double>}
#define RL_EXTREMA(kernel, op)                                                                   \
  {nullptr, nullptr, nullptr, nullptr, kernel<op, int32_t, int32_t>, kernel<op, int64_t, int64_t>, \
   kernel<op, half, float>, kernel<op, bfloat16, float>, kernel<op, float, float>, kernel<op, double, double>}
#define RL_PLACES(kernel, op)                                                                                 \
  {nullptr, nullptr, nullptr, nullptr, kernel<op, int32_t>, kernel<op, int64_t>, nullptr, nullptr, kernel<op, float>, \
   kernel<op, double>}
#define RL_VALUES(kernel)                                                                                           \
  {nullptr, nullptr, nullptr, nullptr, kernel<int32_t>, kernel<int64_t>, nullptr, nullptr, kernel<float>, kernel<double>}
#define RL_FLOATS(kernel, of) \
  {nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, kernel<of, float>, kernel<of, double>}

extern const RowReduction row_table[REDUCTION_COUNT][RL_DTYPE_COUNT] = {
    RL_SUMS(reduce_row, sum), RL_SUMS(reduce_row, prod), RL_EXTREMA(reduce_row, max), RL_EXTREMA(reduce_row, min),
    {reduce_row<any, bool, bool>}, {reduce_row<all, bool, bool>}, RL_PLACES(extremum_row, max),
    RL_PLACES(extremum_row, min), RL_FLOATS(difference_row, squared), RL_FLOATS(difference_row, plain),
    RL_VALUES(find_row),
};
extern const ColumnReduction column_table[REDUCTION_COUNT][RL_DTYPE_COUNT] = {
    RL_SUMS(reduce_columns, sum), RL_SUMS(reduce_columns, prod), RL_EXTREMA(reduce_columns, max),
    RL_EXTREMA(reduce_columns, min), {reduce_columns<any, bool, bool>}, {reduce_columns<all, bool, bool>},
    RL_PLACES(extremum_columns, argmax), RL_PLACES(extremum_columns, argmin), RL_FLOATS(difference_columns, squared),
    RL_FLOATS(difference_columns, plain), {},
};

}  // namespace rl
