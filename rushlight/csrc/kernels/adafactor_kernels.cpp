// One step of Adafactor over a whole row-major parameter. The formulas are those of rushlight/optim/adafactor.py.
#include <rushlight/elementwise.h>

#include "spans.h"
#include "variant.h"

namespace rl {

constexpr int64_t SUM_BLOCK = 4096;  // sums of up to this many elements are accurate enough in the elements' own type
constexpr int64_t SUM_BLOCK_ROWS = 64;

// Return the sum of value(lane, i) for i in [0, count).
template <class T, class F> RL_INLINE double sum(int64_t count, const F& value) {
  double total = 0;
  for (int64_t start = 0; start < count; start += SUM_BLOCK) {
    const int64_t end = start + SUM_BLOCK < count ? start + SUM_BLOCK : count;
    vec<T> lanewise = splat<vec<T>>(0);
    int64_t i = start;
    for (; i + lanes <= end; i += lanes) lanewise += value(vector_lane{}, i);
    for (int k = 0; k < lanes; ++k) total += lanewise[k];
    for (; i < end; ++i) total += value(scalar_lane{}, i);
  }
  return total;
}

template <class T> double sum_of_squares(const T* values, int64_t count) {
  return sum<T>(count, [&](auto lane, int64_t i) {
    auto x = lane.load(values + i);
    return x * x;
  });
}

static double root_mean(double sum, int64_t count) { return __builtin_sqrt(sum / (double)count); }

template <class F> RL_INLINE void for_all(int64_t count, const F& body) {
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) body(vector_lane{}, i);
  for (; i < count; ++i) body(scalar_lane{}, i);
}

// Write the mean square of each column to sums[0..columns). `sums` must have room for `columns` more values, as scratch.
template <class T> void column_means(const T* gradient, int64_t rows, int64_t columns, T* sums) {
  T* part = sums + columns;
  for (int64_t c = 0; c < columns; ++c) sums[c] = part[c] = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const T* row = gradient + r * columns;
    for_all(columns, [&](auto lane, int64_t c) {
      auto g = lane.load(row + c);
      lane.store(part + c, lane.load(part + c) + g * g);
    });
    if (r + 1 < rows && (r + 1) % SUM_BLOCK_ROWS) continue;
    for (int64_t c = 0; c < columns; ++c) sums[c] += part[c], part[c] = 0;
  }
  for (int64_t c = 0; c < columns; ++c) sums[c] /= (T)rows;
}

// Update the row and column means of the squared gradient of one matrix. The second moment of an element is row * column /
// (mean of all rows).
template <class T> void move_statistics(const RlParameter& p, const T* gradient, int64_t matrix, T weight, T* sums) {
  T *rows = (T*)p.states[1] + matrix * p.rows, *columns = (T*)p.states[2] + matrix * p.columns;
  for (int64_t r = 0; r < p.rows; ++r) {
    const T mean = (T)(sum_of_squares(gradient + r * p.columns, p.columns) / (double)p.columns);
    rows[r] += (mean - rows[r]) * weight;
  }
  column_means(gradient, p.rows, p.columns, sums);
  for (int64_t c = 0; c < p.columns; ++c) columns[c] += (sums[c] - columns[c]) * weight;
}

// Call span(count, start, moment) until all elements are covered: moment(lane, i) loads the second moments of elements start +
// i.
template <class T, class F> RL_INLINE void each_span(const RlParameter& p, double smallest, const F& span) {
  const T least = (T)(smallest * smallest);
  if (const T* variance = (const T*)p.states[0]) {
    span(p.count, 0, [&](auto lane, int64_t i) {
      auto v = lane.load(variance + i);
      return maximum(v, splat<decltype(v)>(least));
    });
    return;
  }
  for (int64_t first = 0, matrix = 0; first < p.count; first += p.rows * p.columns, ++matrix) {
    const T *rows = (const T*)p.states[1] + matrix * p.rows, *columns = (const T*)p.states[2] + matrix * p.columns;
    const T mean = (T)(sum<T>(p.rows, [&](auto lane, int64_t i) { return lane.load(rows + i); }) / (double)p.rows);
    const T divisor = maximum(mean, (T)smallest);
    for (int64_t r = 0; r < p.rows; ++r)
      span(p.columns, first + r * p.columns, [&](auto lane, int64_t i) {
        auto v = lane.load(columns + i) * rows[r] / divisor;
        return maximum(v, splat<decltype(v)>(least));
      });
  }
}

template <class T> void step(const RlAdafactor& o, const RlParameter& p, T* sums) {
  T *parameter = (T*)p.parameter, *variance = (T*)p.states[0];
  const T* gradient = (const T*)p.gradient;
  const double number = p.scalars[0] + 1, machine = sizeof(T) == 4 ? 0x1p-23 : 0x1p-52;
  const double smallest = o.eps == o.eps ? o.eps : machine, max_rate = 1 / __builtin_sqrt(number);
  // `larger` returns min_scale if the norm is NaN, as max(min_scale, norm) does in Python.
  const double scale = larger(root_mean(sum_of_squares(parameter, p.count), p.count), o.min_scale);
  const T weight = (T)__builtin_pow(number, o.beta2_decay), shrink = (T)(1 - o.lr * o.weight_decay);
  if (variance)
    for_all(p.count, [&](auto lane, int64_t i) {
      auto g = lane.load(gradient + i), v = lane.load(variance + i);
      lane.store(variance + i, v + (g * g - v) * weight);
    });
  else
    for (int64_t first = 0, matrix = 0; first < p.count; first += p.rows * p.columns, ++matrix)
      move_statistics(p, gradient + first, matrix, weight, sums);
  double squares = 0;
  each_span<T>(p, smallest, [&](int64_t count, int64_t start, const auto& moment) {
    squares += sum<T>(count, [&](auto lane, int64_t i) {
      auto g = lane.load(gradient + start + i);
      return g * g / moment(lane, i);
    });
  });
  const double rate = scale * (o.lr < max_rate ? o.lr : max_rate);
  const double clipped = larger(root_mean(squares, p.count) / o.threshold, 1.0);
  const T size = (T)(o.maximize != 0 ? rate / clipped : -rate / clipped);
  each_span<T>(p, smallest, [&](int64_t count, int64_t start, const auto& moment) {
    for_all(count, [&](auto lane, int64_t i) {
      T* at = parameter + start + i;
      lane.store(at, lane.load(at) * shrink + lane.load(gradient + start + i) / sqrt(moment(lane, i)) * size);
    });
  });
}

void adafactor(const RlAdafactor* options, const RlParameter* parameter, void* sums) {
  if (parameter->dtype == RL_FLOAT64) step(*options, *parameter, (double*)sums);
  else step(*options, *parameter, (float*)sums);
}

}  // namespace rl
