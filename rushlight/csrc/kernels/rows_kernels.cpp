// Softmax and layer normalisation, row by row, float32.
#include <rushlight/math.h>
#include <rushlight/reduce.h>

#include "variant.h"

namespace rl {

// ---- softmax along contiguous rows ---------------------------------------------------------------------------------

RL_INLINE float row_maximum(const float* x, int64_t n) {
  accumulator<max, float> highest;
  for_each(n, [&](auto lane, long i) { highest.add(lane, lane.load(x + i)); });
  return highest.finish();
}

void softmax_row(const float* x, float* out, int64_t n) {
  const float highest = row_maximum(x, n);
  accumulator<sum, float> total;
  for_each(n, [&](auto lane, long i) {
    const auto power = exp_nonpositive(lane.load(x + i) - highest);
    lane.store(out + i, power);
    total.add(lane, power);
  });
  const float share = 1.0f / total.finish();
  for_each(n, [&](auto lane, long i) { lane.store(out + i, lane.load(out + i) * share); });
}

void log_softmax_row(const float* x, float* out, int64_t n) {
  const float highest = row_maximum(x, n);
  accumulator<sum, float> total;
  for_each(n, [&](auto lane, long i) { total.add(lane, exp_nonpositive(lane.load(x + i) - highest)); });
  const float logarithm = __builtin_logf(total.finish());
  for_each(n, [&](auto lane, long i) { lane.store(out + i, lane.load(x + i) - highest - logarithm); });
}

void softmax_backward_row(const float* grad, const float* result, float* out, int64_t n) {
  accumulator<sum, float> total;
  for_each(n, [&](auto lane, long i) { total.add(lane, lane.load(grad + i) * lane.load(result + i)); });
  const float mean = total.finish();
  for_each(n, [&](auto lane, long i) { lane.store(out + i, (lane.load(grad + i) - mean) * lane.load(result + i)); });
}

void log_softmax_backward_row(const float* grad, const float* result, float* out, int64_t n) {
  accumulator<sum, float> sums;
  for_each(n, [&](auto lane, long i) { sums.add(lane, lane.load(grad + i)); });
  const float total = sums.finish();
  for_each(n, [&](auto lane, long i) {
    lane.store(out + i, lane.load(grad + i) - exp(lane.load(result + i)) * total);
  });
}

// ---- softmax down columns ------------------------------------------------------------------------------------------

// Each lane computes its own row, whose elements are `inner` apart.
template <class Lane> void softmax_lanes(Lane lane, const float* x, float* out, int64_t n, int64_t inner) {
  using V = decltype(lane.load(x));
  V highest = splat<V>(-infinity);
  for (int64_t i = 0; i < n; ++i) highest = maximum(highest, lane.load(x + i * inner));
  column_accumulator<sum, V> total;
  for (int64_t i = 0; i < n; ++i) {
    const V power = exp_nonpositive(lane.load(x + i * inner) - highest);
    lane.store(out + i * inner, power);
    total.add(power);
  }
  const V share = 1.0f / total.finish();
  for (int64_t i = 0; i < n; ++i) lane.store(out + i * inner, lane.load(out + i * inner) * share);
}

template <class Lane> void log_softmax_lanes(Lane lane, const float* x, float* out, int64_t n, int64_t inner) {
  using V = decltype(lane.load(x));
  V highest = splat<V>(-infinity);
  for (int64_t i = 0; i < n; ++i) highest = maximum(highest, lane.load(x + i * inner));
  column_accumulator<sum, V> total;
  for (int64_t i = 0; i < n; ++i) total.add(exp_nonpositive(lane.load(x + i * inner) - highest));
  const V logarithm = log(total.finish());
  for (int64_t i = 0; i < n; ++i) lane.store(out + i * inner, lane.load(x + i * inner) - highest - logarithm);
}

template <class Lane>
void softmax_backward_lanes(Lane lane, const float* grad, const float* result, float* out, int64_t n, int64_t inner) {
  using V = decltype(lane.load(grad));
  column_accumulator<sum, V> total;
  for (int64_t i = 0; i < n; ++i) total.add(lane.load(grad + i * inner) * lane.load(result + i * inner));
  const V mean = total.finish();
  for (int64_t i = 0; i < n; ++i)
    lane.store(out + i * inner, (lane.load(grad + i * inner) - mean) * lane.load(result + i * inner));
}

template <class Lane>
void log_softmax_backward_lanes(Lane lane, const float* grad, const float* result, float* out, int64_t n,
                                int64_t inner) {
  using V = decltype(lane.load(grad));
  column_accumulator<sum, V> sums;
  for (int64_t i = 0; i < n; ++i) sums.add(lane.load(grad + i * inner));
  const V total = sums.finish();
  for (int64_t i = 0; i < n; ++i)
    lane.store(out + i * inner, lane.load(grad + i * inner) - exp(lane.load(result + i * inner)) * total);
}

// Compute `width` adjacent rows; contiguous rows have inner 1 and width 1.
#define RL_SOFTMAX(name)                                                                                   \
  void name##_rows(const float* const* in, float* out, int64_t n, int64_t inner, int64_t width) {          \
    if (inner == 1) return name##_row(in[0], out, n);                                                      \
    for_each(width, [&](auto lane, long j) { name##_lanes(lane, in[0] + j, out + j, n, inner); });         \
  }
#define RL_SOFTMAX_BACKWARD(name)                                                                                  \
  void name##_rows(const float* const* in, float* out, int64_t n, int64_t inner, int64_t width) {                  \
    if (inner == 1) return name##_row(in[0], in[1], out, n);                                                       \
    for_each(width, [&](auto lane, long j) { name##_lanes(lane, in[0] + j, in[1] + j, out + j, n, inner); });      \
  }
RL_SOFTMAX(softmax)
RL_SOFTMAX(log_softmax)
RL_SOFTMAX_BACKWARD(softmax_backward)
RL_SOFTMAX_BACKWARD(log_softmax_backward)

extern const SoftmaxRows softmax_table[SOFTMAX_COUNT] = {softmax_rows, log_softmax_rows, softmax_backward_rows,
                                                         log_softmax_backward_rows};

// ---- layer normalisation -------------------------------------------------------------------------------------------

RL_INLINE float row_sum(const float* x, int64_t n) {
  accumulator<sum, float> total;
  for_each(n, [&](auto lane, long i) { total.add(lane, lane.load(x + i)); });
  return total.finish();
}

RL_INLINE float row_variance(const float* x, int64_t n, float mean) {
  accumulator<sum, float> total;
  for_each(n, [&](auto lane, long i) {
    const auto difference = lane.load(x + i) - mean;
    total.add(lane, difference * difference);
  });
  return total.finish() / n;
}

void layer_norm_rows(const LayerNorm* given, int64_t first, int64_t last) {
  const LayerNorm o = *given;
  for (int64_t row = first; row < last; ++row) {
    const float* x = o.x + row * o.width;
    float* out = o.out + row * o.width;
    const float mean = row_sum(x, o.width) / o.width;
    const float rstd = 1.0f / __builtin_sqrtf(row_variance(x, o.width, mean) + o.eps);
    o.mean[row] = mean;
    o.rstd[row] = rstd;
    for_each(o.width, [&](auto lane, long i) {
      auto v = (lane.load(x + i) - mean) * rstd;
      if (o.weight) v = v * lane.load(o.weight + i);
      if (o.bias) v = v + lane.load(o.bias + i);
      lane.store(out + i, v);
    });
  }
}

// With n the normalised row and g the gradient times the weight: to_x = rstd (g - mean(g) - n mean(g n)).
void layer_norm_backward_row(const LayerNormBackward& o, int64_t row) {
  const float *x = o.x + row * o.width, *grad = o.grad + row * o.width, mean = o.mean[row], rstd = o.rstd[row];
  const auto weighted = [&](auto lane, long i) {
    const auto g = lane.load(grad + i);
    return o.weight ? g * lane.load(o.weight + i) : g;
  };
  if (o.to_x) {
    accumulator<sum, float> sums, products;
    for_each(o.width, [&](auto lane, long i) {
      const auto g = weighted(lane, i);
      sums.add(lane, g);
      products.add(lane, g * (lane.load(x + i) - mean));
    });
    const float mean_grad = sums.finish() / o.width, mean_product = products.finish() * rstd * rstd / o.width;
    float* out = o.to_x + row * o.width;
    for_each(o.width, [&](auto lane, long i) {
      const auto centered = lane.load(x + i) - mean;
      lane.store(out + i, (weighted(lane, i) - mean_grad - centered * mean_product) * rstd);
    });
  }
  if (o.to_weight)
    for_each(o.width, [&](auto lane, long i) {
      const auto normal = (lane.load(x + i) - mean) * rstd;
      lane.store(o.to_weight + i, lane.load(o.to_weight + i) + lane.load(grad + i) * normal);
    });
  if (o.to_bias)
    for_each(o.width, [&](auto lane, long i) {
      lane.store(o.to_bias + i, lane.load(o.to_bias + i) + lane.load(grad + i));
    });
}

void layer_norm_backward_rows(const LayerNormBackward* given, int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row) layer_norm_backward_row(*given, row);
}

}  // namespace rl
