// Adaptive pooling: each window is reduced over its rows, then over its columns. Operands are float32 or float64 [planes,
// height, width, channels]: a channels-first image has one channel, a channels-last image several.
#include <rushlight/reduce.h>

#include "variant.h"

namespace rl {

constexpr int64_t MIN_VECTOR_RUN = 64;  // windows with rows of at least this many elements are summed in vectors

struct window {
  int64_t first, last;
};
static RL_INLINE window window_of(int64_t output, int64_t inputs, int64_t outputs) {
  return {output * inputs / outputs, ((output + 1) * inputs + outputs - 1) / outputs};
}
// Return the range of outputs whose windows contain an input.
static RL_INLINE window windows_holding(int64_t input, int64_t inputs, int64_t outputs) {
  return {input * outputs / inputs, ((input + 1) * outputs + inputs - 1) / inputs};
}

template <class T> static RL_INLINE void add_rows(const T* x, window rows, int64_t width, T* out) {
  for_each(width, [&](auto lane, long i) {
    auto total = lane.load(x + rows.first * width + i);
    for (int64_t row = rows.first + 1; row < rows.last; ++row) total += lane.load(x + row * width + i);
    lane.store(out + i, total);
  });
}

template <class T> static RL_INLINE T sum_of(const T* x, int64_t count) {
  if (count >= MIN_VECTOR_RUN) {
    accumulator<sum, T> total;
    for_each(count, [&](auto lane, long i) { total.add(lane, lane.load(x + i)); });
    return total.finish();
  }
  T total = x[0];
  for (int64_t i = 1; i < count; ++i) total += x[i];
  return total;
}

template <class T> static void mean_pool_rows(const AdaptivePool& o, T* buffer, const window* spans, int64_t first, int64_t last) {
  const int64_t width = o.width * o.channels;
  for (int64_t at = first; at < last; ++at) {
    const window rows = window_of(at % o.out_height, o.height, o.out_height);
    const T* x = (const T*)o.x + at / o.out_height * o.height * width;
    const T* line = x + rows.first * width;
    if (rows.last - rows.first > 1) add_rows(x, rows, width, buffer), line = buffer;
    T* out = (T*)o.out + at * o.out_width * o.channels;
    for (int64_t column = 0; column < o.out_width; ++column, out += o.channels) {
      const window columns = spans[column];
      const T scale = (T)((rows.last - rows.first) * (columns.last - columns.first));
      if (o.channels == 1) {
        *out = sum_of(line + columns.first, columns.last - columns.first) / scale;
        continue;
      }
      for_each(o.channels, [&](auto lane, long i) {
        auto total = lane.load(line + columns.first * o.channels + i);
        for (int64_t j = columns.first + 1; j < columns.last; ++j) total += lane.load(line + j * o.channels + i);
        lane.store(out + i, total / scale);
      });
    }
  }
}

// Compute rows of the input's gradient: sum the gradients of the windows that contain the row, and spread them over their
// columns. A row that belongs to the same windows as the row before is copied.
template <class T>
static void mean_pool_rows_backward(const AdaptivePool& o, T* buffer, const window* spans, int64_t first, int64_t last) {
  const int64_t width = o.width * o.channels, out_width = o.out_width * o.channels;
  window before = {0, 0};
  for (int64_t at = first; at < last; ++at) {
    const int64_t plane = at / o.height;
    const window rows = windows_holding(at % o.height, o.height, o.out_height);
    T* to = (T*)o.out + at * width;
    if (at > first && at % o.height && rows.first == before.first && rows.last == before.last) {
      __builtin_memcpy(to, to - width, width * sizeof(T));
      continue;
    }
    before = rows;
    const T* grad = (const T*)o.x + plane * o.out_height * out_width;
    for_each(out_width, [&](auto lane, long i) {
      auto total = splat<decltype(lane.load(grad))>((T)0);
      for (int64_t row = rows.first; row < rows.last; ++row) {
        const window covered = window_of(row, o.height, o.out_height);
        total += lane.load(grad + row * out_width + i) / (T)(covered.last - covered.first);
      }
      lane.store(buffer + i, total);
    });
    __builtin_memset(to, 0, width * sizeof(T));
    for (int64_t column = 0; column < o.out_width; ++column) {
      const window columns = spans[column];
      const T scale = (T)(columns.last - columns.first);
      for_each(o.channels, [&](auto lane, long i) {
        const auto share = lane.load(buffer + column * o.channels + i) / scale;
        for (int64_t j = columns.first; j < columns.last; ++j)
          lane.store(to + j * o.channels + i, lane.load(to + j * o.channels + i) + share);
      });
    }
  }
}

// Find the largest element of each column of a window's rows, and its row: the first such row, or the row of the last NaN.
template <class T> static RL_INLINE void largest_rows(const T* x, window rows, int64_t width, T* values, int32_t* found) {
  for_each(width, [&](auto lane, long i) {
    auto best = lane.load(x + rows.first * width + i);
    using I = like<decltype(best), int32_t>;
    I place = splat<I>((int32_t)rows.first);
    for (int64_t row = rows.first + 1; row < rows.last; ++row) {
      const auto value = lane.load(x + row * width + i);
      const auto better = logical_or(gt(value, best), isnan(value));
      best = where(better, value, best);
      place = where(better, splat<I>((int32_t)row), place);
    }
    lane.store(values + i, best);
    lane.store(found + i, place);
  });
}

template <class T> static void max_pool_rows(const AdaptivePool& o, T* values, const window* spans, int64_t first, int64_t last) {
  const int64_t width = o.width * o.channels;
  int32_t* found = (int32_t*)(values + width);
  for (int64_t at = first; at < last; ++at) {
    const window rows = window_of(at % o.out_height, o.height, o.out_height);
    largest_rows((const T*)o.x + at / o.out_height * o.height * width, rows, width, values, found);
    for (int64_t column = 0; column < o.out_width; ++column) {
      const window columns = spans[column];
      const int64_t to = (at * o.out_width + column) * o.channels;
      for_each(o.channels, [&](auto lane, long i) {
        const int64_t start = columns.first * o.channels + i;
        auto best = lane.load(values + start);
        auto row = lane.load(found + start);
        auto place = row * (int32_t)o.width + (int32_t)columns.first;
        for (int64_t j = columns.first + 1; j < columns.last; ++j) {
          const auto value = lane.load(values + j * o.channels + i);
          if constexpr (lane.size == 1)
            if (value < best) continue;
          const auto other = lane.load(found + j * o.channels + i);
          const auto earlier = logical_and(eq(value, best), lt(other, row));
          const auto later = logical_and(isnan(value), logical_or(logical_not(isnan(best)), ge(other, row)));
          const auto better = logical_or(logical_or(gt(value, best), earlier), later);
          best = where(better, value, best);
          row = where(better, other, row);
          place = where(better, other * (int32_t)o.width + (int32_t)j, place);
        }
        lane.store((T*)o.out + to + i, best);
        lane.store(o.places + to + i, cast<int64_t, int32_t>(place));
      });
    }
  }
}

template <class T> static void run(const AdaptivePool& o, void* scratch, int64_t first, int64_t last) {
  window* spans = (window*)scratch;
  for (int64_t column = 0; column < o.out_width; ++column) spans[column] = window_of(column, o.width, o.out_width);
  T* rows = (T*)(spans + o.out_width);
  if (o.kind == ADAPTIVE_MAX) max_pool_rows<T>(o, rows, spans, first, last);
  else if (o.kind == ADAPTIVE_MEAN) mean_pool_rows<T>(o, rows, spans, first, last);
  else mean_pool_rows_backward<T>(o, rows, spans, first, last);
}

void adaptive_pool(const AdaptivePool* o, void* scratch, int64_t first, int64_t last) {
  if (o->is_double) run<double>(*o, scratch, first, last);
  else run<float>(*o, scratch, first, last);
}

}  // namespace rl
