// An epilogue is passed by address: a kernel is compiled once for all epilogues, and only the code that stores results once for
// each.
//
//     conv2d_direct(x, at, panels, shape, scratch, rl::epilogue_of<32>([=](auto lane, long x, long r, auto value) {
//       lane.store(out + x * 64 + r, value + lane.load(bias + r));
//     }));
//
// A functor that captures by value is copied in run_epilogue, so that its pointers stay in registers.
#pragma once

#include <rushlight/pack.h>

namespace rl {

// An epilogue for results of type T: takes the rows from `row` and the columns from `column`; each row of `values` has NR
// elements.
template <class T> struct epilogue_for {
  const void* target;
  void (*run)(const void* target, const T* values, long row, long rows, long column, long columns);
  RL_INLINE void operator()(const T* values, long row, long rows, long column, long columns) const {
    run(target, values, row, rows, column, columns);
  }
};
using epilogue = epilogue_for<float>;
using sums_epilogue = epilogue_for<int32_t>;

template <int Multiple, class T, class E>
void run_epilogue(const void* target, const T* values, long row, long rows, long column, long columns) {
  constexpr bool whole = Multiple % tile_columns == 0, even = Multiple % lanes == 0;
  const E emit = *(const E*)target;
  for (const long end = row + rows; row < end; ++row, values += tile_columns) {
    long j = 0;
    for (; whole ? j < tile_columns : j + lanes <= columns; j += lanes)
      emit(vector_lane{}, row, column + j, load_bytes<vec<T>>(values + j));
    if constexpr (!even)
      for (; j < columns; ++j) emit(scalar_lane{}, row, column + j, values[j]);
  }
}

// An epilogue for batches of `rows` rows each: calls emit(lane, batch, row, column, value).
template <class E> struct batched_epilogue {
  const E& emit;
  long rows;

  RL_INLINE batched_epilogue(const E& emit, long rows) : emit(emit), rows(rows) {}
  RL_INLINE operator epilogue() const { return {this, run}; }

  static void run(const void* target, const float* values, long row, long count, long column, long columns) {
    const batched_epilogue& self = *(const batched_epilogue*)target;
    const long batch = row / self.rows, first = row % self.rows;
    for (long r = first; r < first + count; ++r, values += tile_columns)
      for_each(columns, [&](auto lane, long j) { self.emit(lane, batch, r, column + j, lane.load(values + j)); });
  }
};

// Return the epilogue that calls emit(lane, row, column, value); the caller keeps `emit` alive. The number of columns (of the
// whole result, or of each group's part) must be a multiple of `Multiple`.
template <int Multiple = 1, class T = float, class E> RL_INLINE epilogue_for<T> epilogue_of(const E& emit) {
  return {&emit, run_epilogue<Multiple, T, E>};
}

}  // namespace rl
