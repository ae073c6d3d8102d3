// Max pooling, and per-channel sums and affine maps for batch normalisation. Float32, row-major.
#include <rushlight/conv.h>
#include <rushlight/reduce.h>

#include "variant.h"

namespace rl {

// ---- max pooling ---------------------------------------------------------------------------------------------------

// For one output, the range [low, high) of window rows or columns that lie inside the input.
struct window_range {
  int64_t low, high;
};
static window_range inside_of(int64_t start, int64_t size, int64_t kernel, int64_t dilation) {
  const int64_t low = start < 0 ? (-start + dilation - 1) / dilation : 0;
  const int64_t high = start < size ? (size - start + dilation - 1) / dilation : 0;
  return {low, high < kernel ? high : kernel};
}

// Compute the outputs from `column` on, one in each lane. The columns of their windows that lie inside are the same for all
// lanes.
template <class Lane>
static RL_INLINE void pool_lanes(Lane lane, const Pooling& o, const float* x, int64_t y, window_range rows,
                                 window_range columns, int64_t column, float* out, int64_t* places) {
  using V = decltype(lane.load(x));
  using I = like<V, int32_t>;
  const int64_t start = column * o.stride_width - o.pad_width;
  const I first = cast<int32_t, int64_t>(lane.index(start, o.stride_width));
  const int64_t first_row = y + rows.low * o.dilation_height;
  V best = splat<V>(-__builtin_inff());
  I place = first + splat<I>((int32_t)(first_row * o.width + columns.low * o.dilation_width));
  for (int64_t ky = rows.low; ky < rows.high; ++ky)
    for (int64_t kx = columns.low; kx < columns.high; ++kx) {
      const int64_t at = (y + ky * o.dilation_height) * o.width + kx * o.dilation_width;
      V value;
      if constexpr (Lane::size == 1) value = x[at + start];
      else value = load_stepped(x + at + start, o.stride_width);
      const auto better = logical_or(gt(value, best), isnan(value));
      best = where(better, value, best);
      place = where(better, first + splat<I>((int32_t)at), place);
    }
  lane.store(out, best);
  lane.store(places, cast<int64_t, int32_t>(place));
}

static void pool_row(const Pooling& o, const float* x, int64_t row, float* out, int64_t* places) {
  const int64_t y = row * o.stride_height - o.pad_height;
  const window_range rows = inside_of(y, o.height, o.kernel_height, o.dilation_height), all = {0, o.kernel_width};
  int64_t low = ceil_div(o.pad_width, o.stride_width);
  int64_t high = (o.width - (o.kernel_width - 1) * o.dilation_width + o.pad_width - 1) / o.stride_width + 1;
  high = o.width < (o.kernel_width - 1) * o.dilation_width + 1 ? 0 : high < o.out_width ? high : o.out_width;
  low = low < high ? low : high < 0 ? 0 : high;
  for (int64_t i = 0; i < o.out_width;) {
    if (i >= low && i + lanes <= high) {
      pool_lanes(vector_lane{}, o, x, y, rows, all, i, out + i, places + i);
      i += lanes;
    } else {
      const window_range columns = inside_of(i * o.stride_width - o.pad_width, o.width, o.kernel_width, o.dilation_width);
      pool_lanes(scalar_lane{}, o, x, y, rows, columns, i, out + i, places + i);
      ++i;
    }
  }
}

void max_pool(const Pooling* given, int64_t first, int64_t last) {
  const Pooling o = *given;
  for (int64_t plane = first; plane < last; ++plane)
    for (int64_t row = 0; row < o.out_height; ++row) {
      const int64_t at = (plane * o.out_height + row) * o.out_width;
      pool_row(o, o.x + plane * o.height * o.width, row, o.out + at, o.places + at);
    }
}

// ---- per channel ----------------------------------------------------------------------------------------------------

template <class F> static RL_INLINE void each_plane(const Channels& c, int64_t channel, const F& body) {
  for (int64_t image = 0; image < c.images; ++image) body((image * c.channels + channel) * c.count);
}

void channel_moments(const Channels* given, float* means, float* variances, int64_t first, int64_t last) {
  const Channels c = *given;
  const float total = (float)(c.images * c.count);
  for (int64_t channel = first; channel < last; ++channel) {
    accumulator<sum, float> sums, squares;
    each_plane(c, channel, [&](int64_t at) {
      for_each(c.count, [&](auto lane, long i) { sums.add(lane, lane.load(c.x + at + i)); });
    });
    const float mean = sums.finish() / total;
    each_plane(c, channel, [&](int64_t at) {
      for_each(c.count, [&](auto lane, long i) {
        const auto difference = lane.load(c.x + at + i) - mean;
        squares.add(lane, difference * difference);
      });
    });
    means[channel] = mean;
    variances[channel] = squares.finish() / total;
  }
}

void channel_products(const Channels* given, const float* grad, const float* means, float* sums, float* products,
                      int64_t first, int64_t last) {
  const Channels c = *given;
  for (int64_t channel = first; channel < last; ++channel) {
    accumulator<sum, float> total, product;
    const float mean = means[channel];
    each_plane(c, channel, [&](int64_t at) {
      for_each(c.count, [&](auto lane, long i) {
        const auto g = lane.load(grad + at + i);
        total.add(lane, g);
        product.add(lane, g * (lane.load(c.x + at + i) - mean));
      });
    });
    sums[channel] = total.finish();
    products[channel] = product.finish();
  }
}

void channel_affine(const Channels* given, const float* scales, const float* shifts, const float* other,
                    const float* other_scales, float* out, int64_t first, int64_t last) {
  const Channels c = *given;
  for (int64_t plane = first; plane < last; ++plane) {
    const int64_t channel = plane % c.channels, at = plane * c.count;
    const float scale = scales[channel], shift = shifts[channel];
    if (!other) {
      for_each(c.count, [&](auto lane, long i) { lane.store(out + at + i, lane.load(c.x + at + i) * scale + shift); });
      continue;
    }
    const float other_scale = other_scales[channel];
    for_each(c.count, [&](auto lane, long i) {
      lane.store(out + at + i, lane.load(c.x + at + i) * scale + (lane.load(other + at + i) * other_scale + shift));
    });
  }
}

}  // namespace rl
