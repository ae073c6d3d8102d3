// Two-dimensional convolution, forward, fp32, with channels-last results: a matrix product of pixels by output channels, with
// output channels in the lanes. The input may be channels-last or channels-first. Results go to an epilogue (epilogue.h),
//
//     emit(lane, pixel, channel, value)      pixel = (image * out_height + row) * out_width + column
//
// Weights are packed once into panels of NR output channels (pack_filter). A is the input, read in place, or a padded copy. K
// is divided into runs whose elements are evenly spaced in memory, and a table holds the offset of each run. For a few output
// channels ("thin"), lanes go along K instead. Winograd's algorithm for 3 x 3 kernels is in winograd.h.
#pragma once

#include <rushlight/conv.h>
#include <rushlight/epilogue.h>
#include <rushlight/reduce.h>

namespace rl {

// Element strides of an [N, C, H, W] tensor.
struct image_strides {
  long image, channel, row, column;
};

// The order of K: (ky, kx, c) for channels-last inputs, so that the channels of adjacent taps form one run; (c, ky, kx), the
// order of the weight itself, for others.
enum class filter_order { taps_outside, channels_outside };

constexpr int strip_rows = tile_rows == 12 ? 14 : 6;  // output pixels of a tile
constexpr long panel_part_bytes = 1 << 18;  // this much of a panel stays in the second-level cache
// Lanes go along K for convolutions with at most this many outputs and at most this K.
constexpr long max_thin_outputs = 4, max_thin_depth = 4096;

// ---- packing -------------------------------------------------------------------------------------------------------

// Pack the weight [O, C, kh, kw], contiguous, as panels, [ceil(O / NR)][K][NR]. Called by all threads of a region, or by one
// thread outside.
void pack_filter(const float* weight, long outputs, long channels, long taps, filter_order order, float* packed);

// Copy `count` images with a border of zeros, as [count, H + 2 ph, W + 2 pw, C] if `last`, else as [count, C, H + 2 ph, W + 2
// pw]. All threads share the work; ends with a barrier.
void pad_images(const float* x, const image_strides& at, const conv_shape& s, long count, bool last, float* out);

#ifndef RL_PREBUILT
// Transpose the [C * taps] weights of `rows` <= lanes outputs, contiguous at w, to [C * taps][lanes], in blocks. Calls
// put(first channel, offset, count, block) for each block.
template <class Put>
RL_INLINE void transpose_filter(const float* w, long row_stride, long rows, long channels, long taps, const Put& put) {
  constexpr long most = 1024;
  alignas(64) float block[most * lanes];
  const long step = taps < most ? most / taps : 1;
  for (long c = 0; c < channels; c += step) {
    const long count = channels - c < step ? channels - c : step;
    for (long from = 0; from < count * taps; from += most) {  // a single iteration, unless a kernel has very many taps
      const long depth = count * taps - from < most ? count * taps - from : most;
      pack_transposed(w + c * taps + from, row_stride, rows, depth, block, lanes);
      put(c, from, depth, block);
    }
  }
}

RL_KERNEL void pack_filter(const float* weight, long outputs, long channels, long taps, filter_order order, float* packed) {
  const long depth = channels * taps, halves = (outputs + tile_columns - 1) / tile_columns * 2;
  for (const long half : shared(halves)) {
    const long first = half * lanes, left = outputs - first, rows = left < 0 ? 0 : left < lanes ? left : lanes;
    float* out = packed + half / 2 * tile_columns * depth + half % 2 * lanes;
    transpose_filter(weight + (rows ? first * depth : 0), depth, rows, channels, taps,
                     [&](long c, long from, long count, const float* block) {
                       for (long k = 0; k < count; ++k) {
                         const long channel = c + (from + k) / taps, tap = (from + k) % taps;
                         const long at = order == filter_order::taps_outside ? tap * channels + channel
                                                                             : channel * taps + tap;
                         vector_lane{}.store(out + at * tile_columns, vector_lane{}.load(block + k * lanes));
                       }
                     });
  }
}

// ---- the input -----------------------------------------------------------------------------------------------------

RL_KERNEL void pad_images(const float* x, const image_strides& at, const conv_shape& s, long count, bool last, float* out) {
  const long height = s.height + 2 * s.pad_height, width = s.width + 2 * s.pad_width;
  const long outer = last ? 1 : s.channels, inner = last ? s.channels : 1;
  for (const long row : shared(count * outer * height)) {
    const long y = row % height - s.pad_height, channel = row / height % outer, image = row / height / outer;
    const float* from = x + image * at.image + channel * at.channel + y * at.row;
    float* to = out + row * width * inner;
    if (y < 0 || y >= s.height) {
      __builtin_memset(to, 0, width * inner * sizeof(float));
      continue;
    }
    __builtin_memset(to, 0, s.pad_width * inner * sizeof(float));
    to += s.pad_width * inner;
    if (at.column == inner && (inner == 1 || at.channel == 1)) {
      __builtin_memcpy(to, from, s.width * inner * sizeof(float));
    } else {
      for (long i = 0; i < s.width; ++i)
        for_each(inner, [&](auto lane, long c) {
          lane.store(to + i * inner + c, lane.load_strided(from + i * at.column + c * at.channel, at.channel));
        });
    }
    __builtin_memset(to + s.width * inner, 0, s.pad_width * inner * sizeof(float));
  }
}

#endif  // RL_PREBUILT

// The division of K into runs, and the strides to find an element of A.
struct filter_runs {
  long runs, run;       // K = runs * run
  long column, pixel;  // strides along a run, and between adjacent output pixels of a row
  bool last;            // the filter_order of the weights
};

inline filter_runs runs_of(const conv_shape& s, const image_strides& at) {
  const bool last = at.channel == 1 || s.channels == 1;
  if (!last) return {s.channels * s.kernel_height, s.kernel_width, s.dilation_width * at.column,
                     s.stride_width * at.column, false};
  const bool joined = s.kernel_width == 1 || (s.dilation_width == 1 && at.column == s.channels);
  return {joined ? s.kernel_height : s.kernel_height * s.kernel_width, joined ? s.kernel_width * s.channels : s.channels,
          1, s.stride_width * at.column, true};
}

#ifndef RL_PREBUILT
RL_KERNEL void find_runs(const conv_shape& s, const image_strides& at, const filter_runs& f, long* offsets) {
  for (long i = 0; i < f.runs; ++i) {
    if (!f.last) {
      offsets[i] = i / s.kernel_height * at.channel + i % s.kernel_height * s.dilation_height * at.row;
    } else {
      const long wide = f.runs / s.kernel_height;
      offsets[i] = i / wide * s.dilation_height * at.row + i % wide * s.dilation_width * at.column;
    }
  }
}

#endif  // RL_PREBUILT

// ---- tiles ---------------------------------------------------------------------------------------------------------

// Compute c[r][0..NR) = (or += if `accumulate`) the sum over some runs of A times one panel. The first half of the rows begins
// at `a`, the second at `a_second`; rows are `pixel` apart.
template <int Rows>
__attribute__((noinline)) void filter_tile(const float* a, const float* a_second, long pixel, long column,
                                           const long* offsets, long runs, long run, const float* b, float* c,
                                           bool accumulate) {
  constexpr int half = (Rows + 1) / 2;
  vec<float> sum[Rows][2] = {};
  panel_rows<float> panel = {b};
  if (column == 1)
    for (long i = 0; i < runs; ++i)
      add_products(sum, rows_along<Rows, half>(a + offsets[i], a_second + offsets[i], pixel), panel, run);
  else
    for (long i = 0; i < runs; ++i)
      add_products(sum, rows_apart<Rows, half>(a + offsets[i], a_second + offsets[i], pixel, column), panel, run);
  write_sums(sum, c, accumulate);
}

// Expand use(pixels, ...) for every number of pixels that a strip can have.
#ifdef RL_TALL_TILES
#define RL_EACH_STRIP(use, ...) RL_EACH_TILE(use, __VA_ARGS__) use(13, __VA_ARGS__) use(14, __VA_ARGS__)
#else
#define RL_EACH_STRIP(use, ...) RL_EACH_TILE(use, __VA_ARGS__)
#endif

#define RL_EXTERN_STRIP(rows, ...)                                                                                        \
  RL_EXTERN(void filter_tile<rows>(const float*, const float*, long, long, const long*, long, long, const float*, float*, bool))
RL_EACH_STRIP(RL_EXTERN_STRIP)

// The output pixels of one tile ("strip"): `rows` pixels from (image, row, column); in a paired strip the second half is in the
// next row.
struct strip {
  long image, row, column;
  int rows;
};

// A partition of output rows of `width` pixels into strips of nearly equal size, at most strip_rows. A row has `in_row` strips:
// the first `large_count` have `large` pixels, the others `small`. Two short rows share a strip (paired); an odd last row is
// alone. Hidden visibility: every library has its own table of tile functions.
struct __attribute__((visibility("hidden"))) strip_split {
  using tile_function = decltype(&filter_tile<1>);
  long width, in_row, large_count;
  int large, small;
  bool paired;
  tile_function large_tile, small_tile;

  explicit strip_split(long width);

  RL_INLINE long of_image(long height) const { return paired ? (height + 1) / 2 : height * in_row; }

  RL_INLINE strip at(long height, long index) const {
    const long image = index / of_image(height), i = index % of_image(height);
    if (paired) return {image, 2 * i, 0, 2 * i + 1 < height ? large : small};
    const long row = i / in_row, part = i % in_row;
    if (part < large_count) return {image, row, part * large, large};
    return {image, row, large_count * large + (part - large_count) * small, small};
  }

  RL_INLINE void run(int rows, const float* a, const float* second, long pixel, long column, const long* offsets,
                     long runs, long run, const float* b, float* c, bool accumulate) const {
    (rows == large ? large_tile : small_tile)(a, second, pixel, column, offsets, runs, run, b, c, accumulate);
  }
};

// ---- the convolution -----------------------------------------------------------------------------------------------

constexpr long padded_image_size(const conv_shape& s) {
  return s.padded() ? (s.height + 2 * s.pad_height) * (s.width + 2 * s.pad_width) * s.channels : 0;
}
constexpr long images_at_once(const conv_shape& s) {
  const long size = padded_image_size(s), fit = size ? (1L << 18) / size : s.images;
  return fit < 1 ? 1 : fit < s.images ? fit : s.images;
}
// Bytes shared by all threads: padded images, and for each of `threads` a table of runs.
constexpr long filter_scratch_bytes(const conv_shape& s, long threads) {
  const long images = (images_at_once(s) * padded_image_size(s) * (long)sizeof(float) + 63) / 64 * 64;
  const long longest = s.channels > s.kernel_width ? s.channels : s.kernel_width;
  return images + threads * ((longest * s.kernel_height * (long)sizeof(long) + 63) / 64 * 64);
}

// x is read by strides; the packed weight is in the order that runs_of returns (for the padded copy, if there is one). Ends
// with a barrier.
void conv2d_direct(const float* x, image_strides at, const float* packed, const conv_shape& s, void* scratch, epilogue emit);

#ifndef RL_PREBUILT
#define RL_STRIP_ADDRESS(rows, ...) filter_tile<rows>,
RL_KERNEL strip_split::strip_split(long width) : width(width) {
  static constexpr tile_function tiles[] = {RL_EACH_STRIP(RL_STRIP_ADDRESS)};
  static_assert(sizeof tiles / sizeof *tiles == strip_rows, "a tile for every number of pixels");
  paired = width > 1 && 2 * width <= strip_rows;
  in_row = width ? (width + strip_rows - 1) / strip_rows : 1;
  large = (int)(paired ? 2 * width : width ? (width + in_row - 1) / in_row : 1);
  large_count = width - in_row * (large - 1);
  small = paired ? (int)width : large_count < in_row && large > 1 ? large - 1 : large;
  large_tile = tiles[large - 1];
  small_tile = tiles[small - 1];
}

// The left operand of filter_strips, with its table of runs in scratch memory.
struct filter_input {
  const float* x;
  image_strides at;
  filter_runs f;
  const long* offsets;
};

// The taps [first, last) of one dimension that read inside an image of `size` at some position of [begin, end]. It is empty if
// first >= last.
struct tap_range {
  long first, last;

  RL_INLINE tap_range(long begin, long end, long taps, long dilation, long size)
      : first(end < 0 ? (dilation - 1 - end) / dilation : 0), last(begin < size ? (size - 1 - begin) / dilation + 1 : 0) {
    if (last > taps) last = taps;
  }

  RL_INLINE long count() const { return first < last ? last - first : 0; }

  // If the range is empty, make it one tap, which reads zeros from the border.
  RL_INLINE void keep_one() {
    if (first >= last) first = 0, last = 1;
  }
};

// Multiply the strips [first, last), at most max_group_blocks, by one panel of weights, in parts that stay cached: sums[strip -
// first] [strip_rows][NR]. Taps that lie in the border for a whole strip are skipped.
RL_KERNEL void filter_strips(const filter_input& in, const conv_shape& s, const strip_split& split, const float* panel,
                             long first, long last, float* sums) {
  const filter_runs& f = in.f;
  const long run_bytes = f.run * tile_columns * (long)sizeof(float);
  const long together = panel_part_bytes / run_bytes < 1 ? 1 : panel_part_bytes / run_bytes;
  const long height = s.out_height(), down = s.stride_height * in.at.row;
  const bool leaves_out = s.padded() && f.last;
  const long in_row = leaves_out ? f.runs / s.kernel_height : f.runs;  // runs in a row of taps, or all runs
  for (long from = 0; from < f.runs; from += together) {
    const long end = f.runs - from < together ? f.runs : from + together;
    for (long i = first; i < last; ++i) {
      const strip part = split.at(height, i);
      const float* a = in.x + part.image * in.at.image + part.row * down + part.column * f.pixel;
      const bool pair = split.paired && part.rows > split.width;
      const float* second = pair ? a + down : a + (part.rows + 1) / 2 * f.pixel;
      float* to = sums + (i - first) * strip_rows * tile_columns;
      const auto add = [&](long run, long past, bool accumulate) {
        split.run(part.rows, a, second, f.pixel, f.column, in.offsets + run, past - run, f.run,
                  panel + run * f.run * tile_columns, to, accumulate);
      };
      if (!leaves_out) {
        add(from, end, from > 0);
        continue;
      }
      const long y = part.row * s.stride_height - s.pad_height, x = part.column * s.stride_width - s.pad_width;
      const long columns = (pair ? split.width : part.rows) - 1;
      tap_range rows(y, y + pair * s.stride_height, s.kernel_height, s.dilation_height, s.height);
      tap_range across = in_row > 1 ? tap_range(x, x + columns * s.stride_width, in_row, s.dilation_width, s.width)
                                    : tap_range(0, 0, 1, 1, 1);
      rows.keep_one();
      across.keep_one();
      const bool whole = across.last - across.first == in_row;
      const long begin = rows.first * in_row + across.first;  // the first run that is added
      for (long row = rows.first; row < rows.last; row = whole ? rows.last : row + 1) {
        const long run = row * in_row + across.first;
        const long past = whole ? rows.last * in_row : row * in_row + across.last;
        const long low = run < from ? from : run, high = past < end ? past : end;
        if (low < high) add(low, high, low > begin);
      }
    }
  }
}

// Compute to[pixel][output] = the sum over `rows` times `across` runs of A, `down` and `right` apart, times their weights.
// Weights of adjacent runs are contiguous; those of the next row are `weights_down` apart, those of the next output `depth`
// apart.
template <int Pixels, int Outputs>
__attribute__((noinline)) void thin_tile(const float* a, long pixel, long rows, long down, long across, long right, long run,
                                         const float* weights, long weights_down, long depth, float* to) {
  vec<float> sum[Pixels][Outputs] = {};
  for (long y = 0; y < rows; ++y, a += down, weights += weights_down)
    for (long x = 0; x < across; ++x) {
      const float *from = a + x * right, *by = weights + x * run;
      for (long k = 0; k < run; k += lanes) {
        vec<float> weight[Outputs];
        RL_UNROLL for (int o = 0; o < Outputs; ++o) weight[o] = vector_lane{}.load(by + o * depth + k);
        RL_UNROLL for (int p = 0; p < Pixels; ++p) {
          const vec<float> value = vector_lane{}.load(from + p * pixel + k);
          RL_UNROLL for (int o = 0; o < Outputs; ++o) sum[p][o] += value * weight[o];
        }
      }
    }
  RL_UNROLL for (int p = 0; p < Pixels; ++p)
    RL_UNROLL for (int o = 0; o < Outputs; ++o) to[p * tile_columns + o] = rl::reduce_lanes<rl::sum>(sum[p][o]);
}

// Whether lanes go along K, because the output channels would fill at most half of a vector. Such convolutions need no padded
// copy.
inline bool is_thin(const conv_shape& s, const image_strides& at) {
  return s.outputs <= max_thin_outputs && at.channel == 1 && s.channels % lanes == 0 && s.depth() <= max_thin_depth;
}

// Compute the convolution with `Outputs` output channels and lanes along K.
template <int Outputs>
__attribute__((noinline)) void thin_images(const float* images, const image_strides& at, const float* panel,
                                           const conv_shape& s, epilogue emit) {
  constexpr int pixels = Outputs == 1 ? 8 : 12 / Outputs;  // as many sums as fit into registers
  const long depth = s.depth(), height = s.out_height(), width = s.out_width(), weights_down = s.kernel_width * s.channels;
  const long down = s.dilation_height * at.row, right = s.dilation_width * at.column, pixel = s.stride_width * at.column;
  const bool joined = right == s.channels;  // the taps of a row are one run
  alignas(64) float weights[Outputs * max_thin_depth], sums[pixels * tile_columns];
  for (long k = 0; k < depth; ++k)
    for (int o = 0; o < Outputs; ++o) weights[o * depth + k] = panel[k * tile_columns + o];
  for (const long row : shared(s.images * height)) {
    const long top = row % height * s.stride_height - s.pad_height;
    const tap_range rows(top, top, s.kernel_height, s.dilation_height, s.height);
    const float* a = images + row / height * at.image + (top + rows.first * s.dilation_height) * at.row;
    for (long x = 0, done; x < width; x += done) {
      const long left = x * s.stride_width - s.pad_width, end = left + (pixels - 1) * s.stride_width;
      const tap_range none_after(end, end, s.kernel_width, s.dilation_width, s.width);
      const bool whole = left >= 0 && none_after.count() == s.kernel_width && x + pixels <= width;
      const tap_range columns(left, left, s.kernel_width, s.dilation_width, s.width);
      const long count = columns.count();
      done = whole ? pixels : 1;
      (whole ? thin_tile<pixels, Outputs> : thin_tile<1, Outputs>)(
          a + (left + columns.first * s.dilation_width) * at.column, pixel, count ? rows.count() : 0, down, joined ? 1 : count,
          right, joined ? count * s.channels : s.channels,
          weights + rows.first * weights_down + columns.first * s.channels, weights_down, depth, sums);
      emit(sums, row * width + x, done, 0, Outputs);
    }
  }
}

RL_KERNEL void conv2d_direct(const float* x, image_strides at, const float* packed, const conv_shape& s, void* scratch,
                             epilogue emit) {
  if (is_thin(s, at)) {
    static_assert(max_thin_outputs == 4);
    const auto thin = s.outputs == 1 ? thin_images<1> : s.outputs == 2 ? thin_images<2> : s.outputs == 3 ? thin_images<3>
                                                                                                         : thin_images<4>;
    return thin(x, at, packed, s, emit);
  }
  const strip_split split(s.out_width());
  const long chunk = images_at_once(s), panels = (s.outputs + tile_columns - 1) / tile_columns;
  float* padded = (float*)scratch;
  const long space = filter_scratch_bytes(s, 1) - filter_scratch_bytes(s, 0);
  long* offsets = (long*)((char*)scratch + filter_scratch_bytes(s, 0) + thread_index() * space);
  const bool last = at.channel == 1 || s.channels == 1;
  const image_strides own = at;
  if (s.padded()) {
    const long width = s.width + 2 * s.pad_width, height = s.height + 2 * s.pad_height;
    at = last ? image_strides{height * width * s.channels, 1, width * s.channels, s.channels}
              : image_strides{height * width * s.channels, height * width, width, 1};
  }
  const filter_runs f = runs_of(s, at);
  bool found = false;  // whether the runs were found: at the first task, see parallel.h
  alignas(64) float sums[max_group_blocks * strip_rows * tile_columns];
  const long height = s.out_height(), width = s.out_width();
  for (long begin = 0; begin < s.images; begin += chunk) {
    const long images = s.images - begin < chunk ? s.images - begin : chunk;
    filter_input in = {x + begin * own.image, at, f, offsets};
    if (s.padded()) {
      pad_images(in.x, own, s, images, last, padded);
      in.x = padded;
    }
    const long pixels = begin * height * width;
    const long strips = images * split.of_image(height);
    const long group = group_size(strips, max_group_blocks), groups = (strips + group - 1) / group;
    for (const long task : shared(panels * groups)) {  // panel by panel, so that a thread's panel stays cached
      const long channel = task / groups * tile_columns, first = task % groups * group;
      const long end = first + group < strips ? first + group : strips;
      const long left = s.outputs - channel, wide = left < tile_columns ? left : tile_columns;
      if (!found) find_runs(s, at, f, offsets), found = true;
      filter_strips(in, s, split, packed + channel * f.runs * f.run, first, end, sums);
      for (long i = first; i < end; ++i) {
        const strip part = split.at(height, i);
        const long pixel = pixels + (part.image * height + part.row) * width + part.column;
        emit(sums + (i - first) * strip_rows * tile_columns, pixel, part.rows, channel, wide);
      }
    }
  }
}

#endif  // RL_PREBUILT

}  // namespace rl
