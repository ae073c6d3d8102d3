// The gradient of a convolution's input, fp32, channels-last. Results go to an epilogue as in image.h, whose pixels and
// channels are the input's.
//
// Along a dimension, tap k of output j reads input position y if j * stride + k * dilation = y + pad. A phase is the set of
// positions y with the same remainder of y + pad modulo the stride: they share their taps, which are evenly spaced. So each
// phase is a convolution with stride 1 of the output's gradient with a part of the flipped weight, and no zeros are multiplied.
#pragma once

#include <rushlight/image.h>

namespace rl {

// One phase along one dimension. It has `count` input positions: begin, begin + stride, ... They use `taps` taps: first, first
// + step, ... At the first position the last tap meets output `from` (which may be negative); each earlier tap meets an output
// `spread` later.
struct gradient_phase {
  long begin, count, first, step, taps, spread, from;

  constexpr long last() const { return from + count - 1 + (taps - 1) * spread; }
  constexpr bool reads() const { return count > 0 && taps > 0; }
};

constexpr long common_divisor(long a, long b) {
  while (b) {
    const long rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

constexpr gradient_phase phase_of(long size, long kernel, long stride, long pad, long dilation, long remainder) {
  const long common = common_divisor(dilation, stride);
  gradient_phase p = {((remainder - pad) % stride + stride) % stride, 0, 0, stride / common, 0, dilation / common, 0};
  if (p.begin < size) p.count = (size - 1 - p.begin) / stride + 1;
  while (p.first < stride && p.first * dilation % stride != remainder) ++p.first;
  if (p.first < kernel && p.first < stride) p.taps = (kernel - 1 - p.first) / p.step + 1;
  p.from = (p.begin + pad - p.first * dilation) / stride - (p.taps - 1) * p.spread;
  return p;
}

constexpr gradient_phase phase_down(const conv_shape& s, long remainder) {
  return phase_of(s.height, s.kernel_height, s.stride_height, s.pad_height, s.dilation_height, remainder);
}
constexpr gradient_phase phase_across(const conv_shape& s, long remainder) {
  return phase_of(s.width, s.kernel_width, s.stride_width, s.pad_width, s.dilation_width, remainder);
}

// The range of outputs that all phases together read along a dimension: `count` outputs from `low`. Outputs outside of the
// image are zeros.
struct gradient_window {
  long low, count;
};
constexpr gradient_window window_of(long size, long kernel, long stride, long pad, long dilation) {
  long low = 0, high = 0;
  for (long remainder = 0; remainder < stride; ++remainder) {
    const gradient_phase p = phase_of(size, kernel, stride, pad, dilation, remainder);
    if (!p.reads()) continue;
    if (p.from < low) low = p.from;
    if (p.last() > high) high = p.last();
  }
  return {low, high - low + 1};
}
constexpr gradient_window window_down(const conv_shape& s) {
  return window_of(s.height, s.kernel_height, s.stride_height, s.pad_height, s.dilation_height);
}
constexpr gradient_window window_across(const conv_shape& s) {
  return window_of(s.width, s.kernel_width, s.stride_width, s.pad_width, s.dilation_width);
}

constexpr long gradient_copy_size(const conv_shape& s) { return window_down(s).count * window_across(s).count * s.outputs; }
constexpr long gradients_at_once(const conv_shape& s) {
  const long fit = (1L << 18) / gradient_copy_size(s);
  return fit < 1 ? 1 : fit < s.images ? fit : s.images;
}
// Bytes of scratch memory: first the copies of gradients with their borders, which all threads share, then for each of `threads`
// a table with the offset of each run (`filter_runs` in image.h).
constexpr long input_gradient_scratch_bytes(const conv_shape& s, long threads) {
  const long copies = (gradients_at_once(s) * gradient_copy_size(s) * (long)sizeof(float) + 63) / 64 * 64;
  return copies + threads * ((s.kernel_height * s.kernel_width * (long)sizeof(long) + 63) / 64 * 64);
}

// Pack the weight [O, C, kh, kw], read by strides, as panels of each phase, [ceil(C / NR)][taps of the phase, flipped][O][NR],
// phase after phase. Called by all threads of a region, or by one thread outside.
void pack_gradient_filter(const float* weight, image_strides at, const conv_shape& s, float* packed);

// grad is the gradient of the output, read by strides; packed comes from pack_gradient_filter; s is the convolution's shape,
// with one group. Ends with a barrier.
void conv2d_input_gradient(const float* grad, image_strides at, const float* packed, const conv_shape& s, void* scratch,
                           epilogue emit);

#ifndef RL_PREBUILT
// Pack one tap's weights for up to a vector of channels: out[o][0..lanes), NR apart.
RL_KERNEL void copy_tap(const float* from, const image_strides& at, long rows, long outputs, float* out) {
  for (long o = 0; o < outputs; ++o, out += tile_columns, from += at.image) {
    if (rows < lanes)
      for (long c = 0; c < lanes; ++c) out[c] = c < rows ? from[c * at.channel] : 0.0f;
    else if (at.channel == 1) vector_lane{}.store(out, vector_lane{}.load(from));
    else vector_lane{}.store(out, vector_lane{}.load_strided(from, at.channel));
  }
}

// Pack up to a vector of taps of as many channels, which are consecutive in memory; the next output's weights are `step` floats
// further. Tap t goes to to[t], NR apart. Whole vectors are read only up to `end`.
RL_KERNEL void copy_taps(const float* from, long step, long taps, long rows, long outputs, const float* end,
                         float* const* to) {
  for (long o = 0; o < outputs; ++o, from += step) {
    alignas(64) float copy[lanes * lanes + lanes] = {};
    const float* source = from;
    if (rows < lanes || end - from < lanes * taps + lanes) {
      __builtin_memcpy(copy, from, rows * taps * sizeof(float));
      source = copy;
    }
    vec<float> block[lanes];
    RL_UNROLL for (int c = 0; c < lanes; ++c) block[c] = vector_lane{}.load(source + c * taps);
    transpose(block);
    for (long t = 0; t < taps; ++t) vector_lane{}.store(to[t] + o * tile_columns, block[t]);
  }
}

RL_KERNEL void pack_gradient_filter(const float* weight, image_strides at, const conv_shape& s, float* packed) {
  const long taps = s.kernel_height * s.kernel_width, panels = (s.channels + tile_columns - 1) / tile_columns;
  const bool together = taps <= lanes && at.channel == taps && at.image == s.channels * taps;
  for (const long half : shared(2 * panels)) {
    const long first = half * lanes, left = s.channels - first, rows = left < 0 ? 0 : left < lanes ? left : lanes;
    const float* from = weight + (rows ? first * at.channel : 0);
    float *out = packed, *to[lanes];
    for (long phase = 0; phase < s.stride_height * s.stride_width; ++phase) {
      const gradient_phase down = phase_down(s, phase / s.stride_width), across = phase_across(s, phase % s.stride_width);
      const long depth = down.taps * across.taps * s.outputs;
      float* panel = out + half / 2 * tile_columns * depth + half % 2 * lanes;
      for (long i = 0; i < down.taps * across.taps; ++i, panel += s.outputs * tile_columns) {
        const long ky = down.first + (down.taps - 1 - i / across.taps) * down.step;
        const long kx = across.first + (across.taps - 1 - i % across.taps) * across.step;
        if (together) to[ky * s.kernel_width + kx] = panel;
        else copy_tap(from + ky * at.row + kx * at.column, at, rows, s.outputs, panel);
      }
      out += panels * tile_columns * depth;
    }
    if (together) copy_taps(from, at.image, taps, rows, s.outputs, weight + s.outputs * at.image, to);
  }
}

// Copy `count` images of gradients, channels-last, restricted to the rows and columns that the windows cover. All threads share
// the work; ends with a barrier.
RL_KERNEL void frame_gradients(const float* grad, const image_strides& at, const conv_shape& s, long count,
                               float* out) {
  const gradient_window down = window_down(s), across = window_across(s);
  const long height = s.out_height(), width = s.out_width(), outputs = s.outputs;
  for (const long line : shared(count * down.count)) {
    const long y = line % down.count + down.low;
    const float* from = grad + line / down.count * at.image + y * at.row;
    float* to = out + line * across.count * outputs;
    for (long i = 0; i < across.count; ++i, to += outputs) {
      const long x = i + across.low;
      if (y < 0 || y >= height || x < 0 || x >= width) {
        __builtin_memset(to, 0, outputs * sizeof(float));
      } else if (at.channel == 1) {
        for_each(outputs, [&](auto lane, long o) { lane.store(to + o, lane.load(from + x * at.column + o)); });
      } else {
        for_each(outputs, [&](auto lane, long o) {
          lane.store(to + o, lane.load_strided(from + x * at.column + o * at.channel, at.channel));
        });
      }
    }
  }
}

// Pass a strip's results to the epilogue, each with its input pixel.
RL_INLINE void emit_phase(const float* c, const strip_split& split, const strip& part, const conv_shape& s,
                          const gradient_phase& down, const gradient_phase& across, long images, long channel,
                          const epilogue& emit) {
  const long left = s.channels - channel, wide = left < tile_columns ? left : tile_columns;
  const long together = s.stride_height == 1 && s.stride_width == 1 ? part.rows : 1;  // consecutive pixels
  for (int r = 0; r < part.rows; r += (int)together) {
    long row = part.row, column = part.column + r;
    if (split.paired && r >= split.width) ++row, column -= split.width;
    const long y = down.begin + row * s.stride_height, x = across.begin + column * s.stride_width;
    emit(c + r * tile_columns, ((images + part.image) * s.height + y) * s.width + x, together, channel, wide);
  }
}

RL_KERNEL void conv2d_input_gradient(const float* grad, image_strides at, const float* packed, const conv_shape& s,
                                     void* scratch, epilogue emit) {
  const gradient_window window_y = window_down(s), window_x = window_across(s);
  const bool framed = at.channel != 1 || window_y.low || window_x.low || window_y.count > s.out_height() ||
                      window_x.count > s.out_width();
  const long chunk = framed ? gradients_at_once(s) : s.images, panels = (s.channels + tile_columns - 1) / tile_columns;
  const long space = input_gradient_scratch_bytes(s, 1) - input_gradient_scratch_bytes(s, 0);
  long* offsets = (long*)((char*)scratch + input_gradient_scratch_bytes(s, 0) + thread_index() * space);
  const image_strides own = at;
  if (framed) at = {gradient_copy_size(s), 1, window_x.count * s.outputs, s.outputs};
  alignas(64) float sums[max_group_blocks * strip_rows * tile_columns];
  for (long begin = 0; begin < s.images; begin += chunk) {
    const long images = s.images - begin < chunk ? s.images - begin : chunk;
    const float* source = grad + begin * own.image;
    if (framed) {
      frame_gradients(source, own, s, images, (float*)scratch);
      source = (const float*)scratch;
    }
    const float* panel = packed;
    for (long phase = 0; phase < s.stride_height * s.stride_width; ++phase) {
      const gradient_phase down = phase_down(s, phase / s.stride_width), across = phase_across(s, phase % s.stride_width);
      const conv_shape part = {images, s.outputs, down.count + (down.taps - 1) * down.spread,
                               across.count + (across.taps - 1) * across.spread, s.channels, down.taps, across.taps,
                               1, 1, 0, 0, down.spread, across.spread, 1};
      const strip_split split(across.count);
      const long strips = down.count && across.count ? images * split.of_image(down.count) : 0;
      const long group = group_size(strips, max_group_blocks), groups = (strips + group - 1) / group;
      filter_input in = {source, at, {}, offsets};
      const bool reads = down.reads() && across.reads();
      if (reads) {
        in.x += (down.from - window_y.low) * at.row + (across.from - window_x.low) * at.column;
        in.f = runs_of(part, at);
      } else {
        __builtin_memset(sums, 0, sizeof sums);
      }
      const long depth = reads ? in.f.runs * in.f.run : 0;
      bool found = !reads;  // whether the runs were found: at the first task, see parallel.h
      for (const long task : shared(panels * groups)) {  // panel by panel, so that a thread's panel stays cached
        const long channel = task / groups * tile_columns, first = task % groups * group;
        const long end = first + group < strips ? first + group : strips;
        if (!found) find_runs(part, at, in.f, offsets), found = true;
        if (reads) filter_strips(in, part, split, panel + channel * depth, first, end, sums);
        for (long i = first; i < end; ++i)
          emit_phase(sums + (i - first) * strip_rows * tile_columns, split, split.at(down.count, i), s, down, across, begin,
                     channel, emit);
      }
      panel += panels * tile_columns * down.taps * across.taps * s.outputs;
    }
  }
}

#endif  // RL_PREBUILT

}  // namespace rl
