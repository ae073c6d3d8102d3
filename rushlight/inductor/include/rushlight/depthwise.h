// Depthwise convolution of channels-last images, fp32, and its gradients. Lanes are channels. Results go to an epilogue as in
// image.h; those of the weight's gradient as in convolution_weight.h.
//
// The outer loop takes a panel's width of channels at a time. The source rows that a row of results reads are copied, with zero
// padding, into a ring buffer in which the pixels of these channels are contiguous: each row is copied once and then read from
// the first-level cache. If channels come in whole vectors and pixels do not compete for cache sets, taps read the source in
// place instead and skip the border. The gradient of the input is computed in the same way, once for each phase of
// convolution_input.h (positions that share taps).
#pragma once

#include <rushlight/convolution_input.h>

namespace rl {

constexpr long cache_set_stride = 256;  // in floats: pixels at this distance share a quarter of the sets of a first-level cache
constexpr int depthwise_pixels = tile_rows == 12 ? 8 : 4;  // pixels of a tile

// A row of the source in the ring, and the weights of the taps that read it.
struct tap_row {
  const float *at, *weight;
};

// Results of a row that use the same taps: `width` results, the first at `out`; each sums over `columns` columns of the ring.
// Steps and offsets are in floats.
struct depthwise_line {
  long first, columns, column_step, weight, weight_step, pixel, width, out, out_pixel;
};

// For row y of the results, tap row k reads source row (y * stride + offset + k * spread) / divisor, if that is an integer. The
// ring holds `columns` columns of the source, after `margin` zeros.
struct depthwise_geometry {
  long rows, columns, height, width;  // sizes of the results (rows, columns) and of the source
  long stride, offset, spread, divisor, reach;  // a row of the results reads `reach` rows of the source at most
  long margin, across, lines;

  // Return the source row that tap row k of result row y reads, or -1 if there is none.
  RL_INLINE long source_row(long y, long k) const {
    const long at = y * stride + offset + k * spread;
    return at < 0 || at % divisor || at / divisor >= height ? -1 : at / divisor;
  }
};

constexpr depthwise_geometry depthwise_forward(const conv_shape& s) {
  const long reach_down = s.dilation_height * (s.kernel_height - 1), reach = s.dilation_width * (s.kernel_width - 1);
  return {s.out_height(), s.out_width(), s.height, s.width, s.stride_height, -s.pad_height, s.dilation_height, 1,
          reach_down + 1, s.pad_width, (s.out_width() - 1) * s.stride_width + reach + 1, 1};
}
constexpr depthwise_geometry depthwise_backward(const conv_shape& s) {
  const gradient_window window = window_across(s);
  const long reach = s.dilation_height * (s.kernel_height - 1) / s.stride_height;
  return {s.height, s.width, s.out_height(), s.out_width(), 1, s.pad_height, -s.dilation_height, s.stride_height,
          reach + 1, -window.low, window.count, s.stride_width};
}

// Return the line for the forward. A pixel takes `pitch` floats of the ring, and the weights of a tap take `tap` floats.
RL_INLINE depthwise_line forward_line(const conv_shape& s, long pitch, long tap) {
  return {0, s.kernel_width, s.dilation_width * pitch, 0, tap, s.stride_width * pitch, s.out_width(), 0, tile_columns};
}
RL_INLINE depthwise_line backward_line(const conv_shape& s, long phase, long pitch, long tap) {
  const gradient_phase p = phase_across(s, phase);
  return {p.taps ? (p.from - window_across(s).low) * pitch : 0, p.taps, p.spread * pitch,
          p.taps ? (p.first + (p.taps - 1) * p.step) * tap : 0, -p.step * tap, pitch, p.count, p.begin * tile_columns,
          s.stride_width * tile_columns};
}

// Scratch memory of a thread in floats: the ring, a row of results, and tables of rows and lines.
constexpr long depthwise_floats(const depthwise_geometry& g, const conv_shape& s, long pitch = tile_columns) {
  const long tables = s.kernel_height * (long)sizeof(tap_row) + g.reach * (long)sizeof(long) +
                      g.lines * (long)sizeof(depthwise_line);
  return (g.reach * g.across * pitch + g.columns * tile_columns + 15) / 16 * 16 + (tables + 63) / 64 * 16;
}
constexpr long depthwise_scratch_bytes(const conv_shape& s, long threads) {
  return threads * depthwise_floats(depthwise_forward(s), s) * (long)sizeof(float);
}
constexpr long depthwise_input_scratch_bytes(const conv_shape& s, long threads) {
  return threads * depthwise_floats(depthwise_backward(s), s) * (long)sizeof(float);
}

// Pack the weight [C, 1, kh, kw], contiguous, as [ceil(C / NR)][kh][kw][NR]. Called by all threads of a region, or by one
// thread outside.
inline void pack_depthwise(const float* weight, long channels, long taps, float* packed) {
  const long halves = (channels + tile_columns - 1) / tile_columns * 2;
  for (const long half : shared(halves)) {
    const long first = half * lanes, left = channels - first, rows = left < 0 ? 0 : left < lanes ? left : lanes;
    pack_transposed(weight + (rows ? first * taps : 0), taps, rows, taps,
                    packed + half / 2 * tile_columns * taps + half % 2 * lanes, tile_columns);
  }
}

// ---- rows ----------------------------------------------------------------------------------------------------------

// Copy `wide` channels of `count` pixels after `before` zero pixels, and fill with zeros up to `total` pixels.
RL_KERNEL void fill_row(const float* from, long pixel, long wide, long before, long count, long total, float* to) {
  if (before > total) before = total;
  if (count > total - before) count = total - before;
  __builtin_memset(to, 0, before * tile_columns * sizeof(float));
  to += before * tile_columns;
  if (wide == tile_columns) {
    for (long i = 0; i < count; ++i, from += pixel, to += tile_columns) {
      vector_lane{}.store(to, vector_lane{}.load(from));
      vector_lane{}.store(to + lanes, vector_lane{}.load(from + lanes));
    }
  } else {
    for (long i = 0; i < count; ++i, from += pixel, to += tile_columns)
      for_each(wide, [&](auto lane, long c) { lane.store(to + c, lane.load(from + c)); });
  }
  __builtin_memset(to, 0, (total - before - count) * tile_columns * sizeof(float));
}

// A ring buffer of source rows; the source is channels-last by strides and begins at x. held[slot] is the row in a slot, or -1.
struct row_ring {
  const float* x;
  image_strides at;
  float* rows;
  long* held;

  RL_INLINE void clear(const depthwise_geometry& g) {
    for (long i = 0; i < g.reach; ++i) held[i] = -1;
  }
  template <class F> RL_INLINE const float* row(const depthwise_geometry& g, long y, long pitch, const F& copy) {
    const long slot = y % g.reach;
    float* to = rows + slot * g.across * pitch;
    if (held[slot] != y) {
      copy(x + y * at.row, to);
      held[slot] = y;
    }
    return to;
  }
};

template <int Pixels, int Vectors>
__attribute__((noinline)) void depthwise_tile(const tap_row* rows, long count, const depthwise_line& line, long x, float* out) {
  vec<float> sum[Pixels][Vectors] = {};
  const long pixel = line.pixel, column = line.column_step, tap = line.weight_step;
  for (long i = 0; i < count; ++i) {
    const float *at = rows[i].at + line.first + x * pixel, *weight = rows[i].weight + line.weight;
    for (long k = 0; k < line.columns; ++k, at += column, weight += tap)
      RL_UNROLL for (int v = 0; v < Vectors; ++v) {
        const vec<float> factor = load_bytes<vec<float>>(weight + v * lanes);
        RL_UNROLL for (int p = 0; p < Pixels; ++p)
          sum[p][v] += load_bytes<vec<float>>(at + p * pixel + v * lanes) * factor;
      }
  }
  out += line.out + x * line.out_pixel;
  RL_UNROLL for (int p = 0; p < Pixels; ++p)
    RL_UNROLL for (int v = 0; v < Vectors; ++v) vector_lane{}.store(out + p * line.out_pixel + v * lanes, sum[p][v]);
}

template <int N> struct pixel_count {
  static constexpr int value = N;
};

// Call tile(pixel_count, first) for tiles that cover a row; if a few pixels are left at the end, the last tile overlaps the one
// before.
template <class F> RL_INLINE void each_tile_of_row(long width, const F& tile) {
  for (long x = 0; x < width;) {
    const long left = width - x;
    if (left >= depthwise_pixels || (left > 4 && width >= depthwise_pixels)) {
      tile(pixel_count<depthwise_pixels>{}, left < depthwise_pixels ? width - depthwise_pixels : x);
      x += depthwise_pixels;
    } else if (left >= 4 || (left == 3 && width >= 4)) {
      tile(pixel_count<4>{}, left < 4 ? width - 4 : x);
      x += 4;
    } else if (left >= 2) {
      tile(pixel_count<2>{}, x);
      x += 2;
    } else {
      tile(pixel_count<1>{}, x++);
    }
  }
}

// Compute a row of results whose taps read the source in place, `column` floats from pixel to pixel; rows[i].at is the start of
// a row.
template <int Vectors>
RL_INLINE void depthwise_in_place(const tap_row* rows, long count, const conv_shape& s, long column, long tap, float* out) {
  const long step = s.stride_width, spread = s.dilation_width, width = s.out_width(), reach = spread * (s.kernel_width - 1);
  const long room = s.width - 1 - reach + s.pad_width;  // the last column with all taps inside
  const long high = room < 0 ? 0 : smallest(room / step + 1, width), low = smallest((s.pad_width + step - 1) / step, high);
  const auto line = [&](long first, long taps) {
    return depthwise_line{(first * spread - s.pad_width) * column, taps, spread * column, first * tap, tap, step * column, width,
                          0, tile_columns};
  };
  const auto edge = [&](long x) {
    const long left = x * step - s.pad_width, first = left < 0 ? (-left + spread - 1) / spread : 0;
    const long last = left < s.width ? smallest(s.kernel_width, (s.width - 1 - left) / spread + 1) : 0;
    depthwise_tile<1, Vectors>(rows, count, line(first, largest(0L, last - first)), x, out);
  };
  for (long x = 0; x < low; ++x) edge(x);
  const depthwise_line inside = line(0, s.kernel_width);
  each_tile_of_row(high - low, [&](auto pixels, long x) {
    depthwise_tile<pixels.value, Vectors>(rows, count, inside, low + x, out);
  });
  for (long x = high; x < width; ++x) edge(x);
}

template <int Vectors>
RL_INLINE void depthwise_results(const tap_row* rows, long count, const depthwise_line& line, float* out) {
  each_tile_of_row(line.width, [&](auto pixels, long x) { depthwise_tile<pixels.value, Vectors>(rows, count, line, x, out); });
}

// ---- the convolution and the gradient of its input -----------------------------------------------------------------

// Return how many rows of results to compute together, so that the source rows they read stay in the second-level cache.
RL_INLINE long depthwise_band(const depthwise_geometry& g, long channels) {
  const long row = g.width * channels * g.stride / g.divisor, fit = (1L << 17) / (row ? row : 1);
  const long most = fit < 8 ? 8 : fit, bands = (g.rows + most - 1) / most;
  return (g.rows + bands - 1) / bands;
}

// The channels of a depthwise convolution in blocks of a panel's width: the `Channels` parameter of channelwise_images.
struct depthwise_channels {
  long channels;

  struct block {
    long first, wide;
  };
  static constexpr long pitch() { return tile_columns; }
  static constexpr long tap() { return tile_columns; }
  RL_INLINE long blocks() const { return (channels + tile_columns - 1) / tile_columns; }
  RL_INLINE block at(long i) const {
    const long first = i * tile_columns, left = channels - first;
    return {first, left < tile_columns ? left : tile_columns};
  }
  // Copy `count` pixels after `before` zero pixels, and fill with zeros up to `total` pixels.
  RL_INLINE void copy(const block& b, const float* from, long pixel, long before, long count, long total, float* to) const {
    fill_row(from + b.first, pixel, b.wide, before, count, total, to);
  }
  RL_INLINE void results(const block& b, const tap_row* rows, long count, const depthwise_line& line, float* out) const {
    if (b.wide > lanes) depthwise_results<2>(rows, count, line, out);
    else depthwise_results<1>(rows, count, line, out);
  }
  // Whether to read the source in place: pixels must not compete for cache sets, and few results may touch the border, because
  // those are computed one by one.
  RL_INLINE bool reads_in_place(const block& b, const image_strides& at, const conv_shape& s) const {
    const bool is_inside = !s.pad_width || 3 * s.dilation_width * (s.kernel_width - 1) <= s.width;
    return b.wide % lanes == 0 && at.column % cache_set_stride != 0 && is_inside;
  }
  RL_INLINE void results_in_place(const block& b, const tap_row* rows, long count, const conv_shape& s, long column,
                                  float* out) const {
    if (b.wide > lanes) depthwise_in_place<2>(rows, count, s, column, tap(), out);
    else depthwise_in_place<1>(rows, count, s, column, tap(), out);
  }
  RL_INLINE void emit(const block& b, const float* results, long row, long rows, epilogue emit) const {
    emit(results, row, rows, b.first, b.wide);
  }
};

// Compute the convolution, or the gradient of its input if not `forward`. `Channels` defines the blocks of channels, the layout
// of their pixels in the ring, and the computation of the results.
template <class Channels>
__attribute__((noinline)) void channelwise_images(const Channels& channels, const float* x, const image_strides& at,
                                                  const float* packed, const conv_shape& s, bool forward, float* scratch,
                                                  epilogue emit) {
  const depthwise_geometry g = forward ? depthwise_forward(s) : depthwise_backward(s);
  const long pitch = channels.pitch(), tap = channels.tap(), blocks = channels.blocks();
  scratch += thread_index() * depthwise_floats(g, s, pitch);
  float* results = scratch + g.reach * g.across * pitch;
  tap_row* rows = (tap_row*)(results + g.columns * tile_columns);
  depthwise_line* lines = (depthwise_line*)(rows + s.kernel_height);
  row_ring ring = {x, at, scratch, (long*)(lines + g.lines)};
  bool lined = false;  // whether the table of lines was made: at the first task, see parallel.h
  const long band = depthwise_band(g, s.channels), bands = (g.rows + band - 1) / band;
  for (const long task : shared(s.images * bands * blocks)) {
    const long number = task % blocks, image = task / blocks / bands;
    const long first = task / blocks % bands * band, last = first + band < g.rows ? first + band : g.rows;
    const auto block = channels.at(number);
    const float* weights = packed + number * s.kernel_height * s.kernel_width * tap;
    for (long i = 0; !lined && i < g.lines; ++i)
      lines[i] = forward ? forward_line(s, pitch, tap) : backward_line(s, i, pitch, tap);
    lined = true;
    ring.x = x + image * at.image;
    ring.clear(g);
    const bool in_place = forward && channels.reads_in_place(block, at, s);
    for (long y = first; y < last; ++y) {
      long count = 0;
      for (long k = 0; k < s.kernel_height; ++k) {
        const long source = g.source_row(y, k);
        if (source < 0) continue;
        if (in_place) {
          rows[count++] = {ring.x + source * at.row + block.first, weights + k * s.kernel_width * tap};
          continue;
        }
        const float* row = ring.row(g, source, pitch, [&](const float* from, float* to) {
          channels.copy(block, from, at.column, g.margin, g.width, g.across, to);
        });
        rows[count++] = {row, weights + k * s.kernel_width * tap};
      }
      if (in_place) channels.results_in_place(block, rows, count, s, at.column, results);
      else
        for (long i = 0; i < g.lines; ++i) channels.results(block, rows, count, lines[i], results);
      channels.emit(block, results, (image * g.rows + y) * g.columns, g.columns, emit);
    }
  }
}

RL_EXTERN(void channelwise_images(const depthwise_channels&, const float*, const image_strides&, const float*, const conv_shape&,
                                 bool, float*, epilogue))

// x is channels-last by strides; packed comes from pack_depthwise; scratch has depthwise_scratch_bytes. Ends with a barrier.
RL_INLINE void conv2d_channelwise(const float* x, const image_strides& at, const float* packed, const conv_shape& s,
                                  void* scratch, epilogue emit) {
  channelwise_images(depthwise_channels{s.channels}, x, at, packed, s, true, (float*)scratch, emit);
}

// grad is the gradient of the output, channels-last by strides; s is the convolution's shape. Ends with a barrier.
RL_INLINE void channelwise_input_gradient(const float* grad, const image_strides& at, const float* packed,
                                          const conv_shape& s, void* scratch, epilogue emit) {
  channelwise_images(depthwise_channels{s.channels}, grad, at, packed, s, false, (float*)scratch, emit);
}

// ---- the gradient of the weight ------------------------------------------------------------------------------------

// A thread's scratch memory: that of a forward convolution, the sums of a panel's channels, and one filter.
constexpr long depthwise_weight_floats(const conv_shape& s) {
  const long taps = s.kernel_height * s.kernel_width;
  return depthwise_floats(depthwise_forward(s), s) + taps * tile_columns + (taps + 15) / 16 * 16;
}
constexpr long depthwise_weight_scratch_bytes(const conv_shape& s, long threads) {
  return threads * depthwise_weight_floats(s) * (long)sizeof(float);
}

// x and grad are channels-last by strides. Each thread computes its own channels. Ends with a barrier.
void channelwise_weight_gradient(const float* x, const image_strides& at, const float* grad, const image_strides& grad_at,
                                 const conv_shape& s, void* memory, epilogue emit);

#ifndef RL_PREBUILT
// Add a row's products to the sums of `Taps` adjacent taps, `spread` apart.
template <int Taps>
__attribute__((noinline)) void depthwise_sums(const float* x, long pixel, long spread, const float* grad, long width, float* sums) {
  vec<float> sum[Taps][2];
  RL_UNROLL for (int t = 0; t < Taps; ++t)
    RL_UNROLL for (int v = 0; v < 2; ++v) sum[t][v] = load_bytes<vec<float>>(sums + t * tile_columns + v * lanes);
  for (long i = 0; i < width; ++i, x += pixel, grad += tile_columns)
    RL_UNROLL for (int v = 0; v < 2; ++v) {
      const vec<float> factor = load_bytes<vec<float>>(grad + v * lanes);
      RL_UNROLL for (int t = 0; t < Taps; ++t) sum[t][v] += load_bytes<vec<float>>(x + t * spread + v * lanes) * factor;
    }
  RL_UNROLL for (int t = 0; t < Taps; ++t)
    RL_UNROLL for (int v = 0; v < 2; ++v) vector_lane{}.store(sums + t * tile_columns + v * lanes, sum[t][v]);
}

RL_INLINE void depthwise_row_sums(const conv_shape& s, const float* x, const float* grad, float* sums) {
  const long pixel = s.stride_width * tile_columns, spread = s.dilation_width * tile_columns, width = s.out_width();
  for (long k = 0; k < s.kernel_width;) {
    const long left = s.kernel_width - k, take = left == 1 || left == 2 ? left : left == 4 || left > 6 ? 4 : 3;
    const auto add = take == 4 ? depthwise_sums<4> : take == 3 ? depthwise_sums<3> : take == 2 ? depthwise_sums<2>
                                                                                               : depthwise_sums<1>;
    add(x + k * spread, pixel, spread, grad, width, sums + k * tile_columns);
    k += take;
  }
}

RL_KERNEL void channelwise_weight_gradient(const float* x, const image_strides& at, const float* grad,
                                           const image_strides& grad_at, const conv_shape& s, void* memory,
                                           epilogue emit) {
  const depthwise_geometry g = depthwise_forward(s);
  const long taps = s.kernel_height * s.kernel_width;
  float* scratch = (float*)memory + thread_index() * depthwise_weight_floats(s);
  float* of_grad = scratch + g.reach * g.across * tile_columns;
  float *sums = scratch + depthwise_floats(g, s), *filter = sums + taps * tile_columns;
  row_ring ring = {x, at, scratch, (long*)(of_grad + g.columns * tile_columns)};
  bool cleared = false;  // whether the scratch memory was cleared: at the first task, see parallel.h
  for (const long block : shared((s.channels + tile_columns - 1) / tile_columns)) {
    const long channel = block * tile_columns, left = s.channels - channel;
    const long wide = left < tile_columns ? left : tile_columns;
    if (!cleared) __builtin_memset(scratch, 0, (g.reach * g.across + g.columns) * tile_columns * sizeof(float));
    cleared = true;
    __builtin_memset(sums, 0, taps * tile_columns * sizeof(float));
    for (long image = 0; image < s.images; ++image) {
      ring.x = x + image * at.image + channel;
      ring.clear(g);
      for (long y = 0; y < g.rows; ++y) {
        const float* row_of_grad = grad + image * grad_at.image + y * grad_at.row + channel;
        fill_row(row_of_grad, grad_at.column, wide, 0, g.columns, g.columns, of_grad);
        for (long k = 0; k < s.kernel_height; ++k) {
          const long row = g.source_row(y, k);
          if (row < 0) continue;
          const float* held = ring.row(g, row, tile_columns, [&](const float* from, float* to) {
            fill_row(from, at.column, wide, g.margin, g.width, g.across, to);
          });
          depthwise_row_sums(s, held, of_grad, sums + k * s.kernel_width * tile_columns);
        }
      }
    }
    for (long c = 0; c < wide; ++c) {
      for (long tap = 0; tap < taps; ++tap) filter[tap] = sums[tap * tile_columns + c];
      for (long j = 0; j < taps; j += tile_columns)
        emit(filter + j, channel + c, 1, j, taps - j < tile_columns ? taps - j : tile_columns);
    }
  }
}
#endif  // RL_PREBUILT

}  // namespace rl
