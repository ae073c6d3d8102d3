// Two-dimensional convolution, forward, fp32, NCHW, as an implicit matrix product: the weight [O, C/g, kh, kw] is the left
// operand, read in place; panels of NR output pixels (im2col) are packed by each thread just before they are used. The rows of
// the epilogue (epilogue.h) are image * O + output channel; its columns are output pixels, row * out_width + column. Depthwise
// convolutions are computed directly, channel by channel.
#pragma once

#include <rushlight/gemm.h>

namespace rl {

struct conv_shape {
  long images, channels, height, width;
  long outputs, kernel_height, kernel_width;
  long stride_height, stride_width, pad_height, pad_width, dilation_height, dilation_width, groups;

  constexpr long out_height() const {
    return (height + 2 * pad_height - dilation_height * (kernel_height - 1) - 1) / stride_height + 1;
  }
  constexpr long out_width() const {
    return (width + 2 * pad_width - dilation_width * (kernel_width - 1) - 1) / stride_width + 1;
  }
  constexpr long group_channels() const { return channels / groups; }
  constexpr long depth() const { return group_channels() * kernel_height * kernel_width; }
  constexpr bool padded() const { return pad_height != 0 || pad_width != 0; }
  constexpr bool pointwise() const {
    return kernel_height == 1 && kernel_width == 1 && stride_height == 1 && stride_width == 1 && !padded();
  }
};

// Pixels of a panel that one kernel tap reads from one input row: panel[to + i] = plane[from + i * stride], i < count.
struct conv_span {
  long from;
  int to, count;
};

// Scratch memory of one thread: the panel and the spans of each kernel tap, or, for depthwise convolutions, one padded plane
// and one output row.
constexpr long conv_spans(const conv_shape& s) { return s.kernel_height * s.kernel_width * tile_columns; }
constexpr long conv2d_scratch_bytes(const conv_shape& s) {
  const long panel = s.depth() * tile_columns * (long)sizeof(float);
  const long taps = s.kernel_height * s.kernel_width;
  const long spans = conv_spans(s) * (long)sizeof(conv_span) + (taps + 1) * (long)sizeof(long);
  const long read_ahead = (s.stride_width + 5) * lanes + s.out_width();  // also covers the row of results
  const long plane = ((s.height + 2 * s.pad_height) * (s.width + 2 * s.pad_width) + read_ahead) * (long)sizeof(float);
  const long bytes = panel + spans > plane ? panel + spans : plane;
  return (bytes + 63) / 64 * 64;
}

void conv2d_product(const row_cut<float>& cut, const float* x, const float* weight, const conv_shape& s, void* own,
                    epilogue emit);
void conv2d_depthwise(const float* x, const float* weight, const conv_shape& s, void* own, epilogue emit);

// Integer division rounded up, for a numerator of any sign.
RL_INLINE long ceil_div(long a, long b) { return a > 0 ? (a + b - 1) / b : -(-a / b); }

#ifndef RL_PREBUILT
// Load every `stride`-th float from p; reads nothing beyond the last one needed.
RL_INLINE vec<float> load_stepped(const float* p, long stride) {
  const vector_lane lane;
  if (stride == 1) return lane.load(p);
  if (stride != 2) return lane.load_strided(p, stride);
  vec<int32_t> pick;
  RL_UNROLL for (int i = 0; i < lanes; ++i) pick[i] = i < lanes / 2 ? 2 * i : 2 * i + 1;
  return interleave(lane.load(p), lane.load(p + lanes - 1), pick);
}

// Copy a span. Lengths that are not a multiple of the vector end with a copy that overlaps the previous one.
RL_INLINE void copy_span(const float* from, long stride, float* to, int count) {
  if (count >= lanes) {
    int i = 0;
    for (; i + lanes <= count; i += lanes) vector_lane{}.store(to + i, load_stepped(from + i * stride, stride));
    if (i < count) vector_lane{}.store(to + count - lanes, load_stepped(from + (count - lanes) * stride, stride));
  } else if (stride == 1 && count >= 8) {
    __builtin_memcpy(to, from, 32);
    __builtin_memcpy(to + count - 8, from + count - 8, 32);
  } else if (stride == 1 && count >= 4) {
    __builtin_memcpy(to, from, 16);
    __builtin_memcpy(to + count - 4, from + count - 4, 16);
  } else {
    for (int i = 0; i < count; ++i) to[i] = from[i * stride];
  }
}

// Find the spans of pixels [first, first + count) for every kernel tap: starts[tap] .. starts[tap + 1] in `spans`.
RL_KERNEL void find_spans(const conv_shape& s, long first, long count, conv_span* spans, long* starts) {
  const long out_width = s.out_width();
  long used = 0, tap = 0;
  for (long ky = 0; ky < s.kernel_height; ++ky)
    for (long kx = 0; kx < s.kernel_width; ++kx) {
      starts[tap++] = used;
      for (long pixel = first; pixel < first + count;) {
        const long row = pixel / out_width, column = pixel % out_width, left = first + count - pixel;
        const long end = column + left < out_width ? column + left : out_width;
        const long y = row * s.stride_height - s.pad_height + ky * s.dilation_height;
        const long x = kx * s.dilation_width - s.pad_width;  // input column of output column 0
        const long low = ceil_div(-x, s.stride_width), high = ceil_div(s.width - x, s.stride_width);
        const long begin = column > low ? column : low, stop = end < high ? end : high;
        if (y >= 0 && y < s.height && begin < stop)
          spans[used++] = {y * s.width + x + begin * s.stride_width, (int)(pixel - first + begin - column),
                           (int)(stop - begin)};
        pixel += end - column;
      }
    }
  starts[tap] = used;
}

// Pack the im2col panel of pixels [first, first + count) of one group's channels, which begin at x.
RL_KERNEL void pack_pixels(const conv_shape& s, const float* x, long first, long count, void* scratch) {
  float* panel = (float*)scratch;
  conv_span* spans = (conv_span*)(panel + s.depth() * tile_columns);
  long* starts = (long*)(spans + conv_spans(s));
  find_spans(s, first, count, spans, starts);
  const long taps = s.kernel_height * s.kernel_width, plane = s.height * s.width;
  for (long c = 0; c < s.group_channels(); ++c, x += plane)
    for (long tap = 0; tap < taps; ++tap, panel += tile_columns) {
      vector_lane{}.store(panel, vec<float>{});
      vector_lane{}.store(panel + lanes, vec<float>{});
      for (long i = starts[tap]; i < starts[tap + 1]; ++i)
        copy_span(x + spans[i].from, s.stride_width, panel + spans[i].to, spans[i].count);
    }
}

RL_KERNEL void conv2d_product(const row_cut<float>& cut, const float* x, const float* weight, const conv_shape& s,
                              void* own, epilogue emit) {
  const long pixels = s.out_height() * s.out_width(), depth = s.depth(), outputs = cut.rows, blocks = cut.count;
  const long panels = (pixels + tile_columns - 1) / tile_columns;
  const long packs = s.images * s.groups * panels, wanted = 1 + 4L * thread_count() / (packs + 1);
  const long limit = depth > depth_block ? max_group_blocks : blocks, share = (blocks + wanted - 1) / wanted;
  const long group = group_size(blocks, share < limit ? share : limit), groups = (blocks + group - 1) / group;
  float* panel = (float*)own;
  long held = -1;
  for (const long task : shared(packs * groups)) {
    const long pack = task / groups, first = task % groups * group;
    const long last = first + group < blocks ? first + group : blocks;
    const long image = pack / panels / s.groups, part = pack / panels % s.groups, pixel = pack % panels * tile_columns;
    if (pack != held) {
      const float* source = x + (image * s.groups + part) * s.group_channels() * s.height * s.width;
      pack_pixels(s, source, pixel, pixels - pixel < tile_columns ? pixels - pixel : tile_columns, panel);
      held = pack;
    }
    multiply_group<float>(cut, first, last, weight + part * outputs * depth, depth, 1, panel, {panel, 0, blocks}, pixel,
                          pixels, depth, (image * s.groups + part) * outputs, emit);
  }
}

// Copy one input plane with its zero border.
RL_INLINE void pad_plane(const conv_shape& s, const float* x, float* out) {
  const long width = s.width + 2 * s.pad_width, height = s.height + 2 * s.pad_height;
  if (s.padded()) __builtin_memset(out, 0, width * height * sizeof(float));
  for (long y = 0; y < s.height; ++y)
    __builtin_memcpy(out + (y + s.pad_height) * width + s.pad_width, x + y * s.width, s.width * sizeof(float));
}

// Compute `Vectors` vectors of one output row; `at` is the first tap of the first pixel. Stride is the stride along a row, or
// 0 if it is not known at compile time.
template <int Vectors, int Stride>
RL_INLINE void depthwise_vectors(const conv_shape& s, const float* at, const float* weight, float* out) {
  const long width = s.width + 2 * s.pad_width, stride = Stride ? Stride : s.stride_width;
  vec<float> sum[Vectors] = {};
  for (long ky = 0; ky < s.kernel_height; ++ky)
    for (long kx = 0; kx < s.kernel_width; ++kx) {
      const float* tap = at + ky * s.dilation_height * width + kx * s.dilation_width;
      const float factor = *weight++;
      RL_UNROLL for (int j = 0; j < Vectors; ++j) sum[j] += factor * load_stepped(tap + j * lanes * stride, stride);
    }
  RL_UNROLL for (int j = 0; j < Vectors; ++j) vector_lane{}.store(out + j * lanes, sum[j]);
}

// Compute one output row in whole vectors: values beyond its end come from the next row, and are not used.
template <int Stride>
__attribute__((noinline)) void depthwise_row(const conv_shape& s, const float* plane, const float* weight, float* out) {
  long i = 0;
  for (; i + 3 * lanes < s.out_width(); i += 4 * lanes)
    depthwise_vectors<4, Stride>(s, plane + i * s.stride_width, weight, out + i);
  for (; i < s.out_width(); i += lanes) depthwise_vectors<1, Stride>(s, plane + i * s.stride_width, weight, out + i);
}

RL_KERNEL void conv2d_depthwise(const float* x, const float* weight, const conv_shape& s, void* own, epilogue emit) {
  const long taps = s.kernel_height * s.kernel_width, multiplier = s.outputs / s.groups, out_width = s.out_width();
  float* row = (float*)own;
  float* plane = row + (out_width + 4 * lanes) / lanes * lanes;
  const auto compute_row = s.stride_width == 1   ? depthwise_row<1>
                           : s.stride_width == 2 ? depthwise_row<2>
                                                 : depthwise_row<0>;
  for (const long task : shared(s.images * s.channels)) {
    const long image = task / s.channels, channel = task % s.channels;
    pad_plane(s, x + task * s.height * s.width, plane);
    for (long o = channel * multiplier; o < (channel + 1) * multiplier; ++o)
      for (long y = 0; y < s.out_height(); ++y) {
        compute_row(s, plane + y * s.stride_height * (s.width + 2 * s.pad_width), weight + o * taps, row);
        emit(row, image * s.outputs + o, 1, y * out_width, out_width);
      }
  }
}

#endif  // RL_PREBUILT

// x [N, C, H, W] and weight [O, C/g, kh, kw] are contiguous. scratch: conv2d_scratch_bytes(shape) per thread, aligned to 64.
// Called by all threads of a parallel region; ends with a barrier. A depthwise convolution gives the epilogue rows of pixels of
// any length, so create the epilogue with Multiple = 1.
RL_INLINE void conv2d(const float* x, const float* weight, const conv_shape& shape, void* scratch, const epilogue& emit) {
  void* own = (char*)scratch + thread_index() * conv2d_scratch_bytes(shape);
  if (shape.group_channels() == 1 && (shape.groups > 1 || shape.outputs == 1))
    return conv2d_depthwise(x, weight, shape, own, emit);
  conv_shape s = shape;
  if (s.pointwise()) s.width *= s.height, s.height = 1;  // treats an image as a single row
  conv2d_product(row_cut<float>(s.outputs / s.groups), x, weight, s, own, emit);
}

}  // namespace rl
