// Sizes of convolutions over volumes, and the layout of their padded inputs: volumes with a border of zeros, split into phases
// by the stride of the windows.
#pragma once

#include <rushlight/conv.h>

namespace rl {

// One dimension of a convolution.
struct volume_axis {
  long size, kernel, stride, pad, dilation;

  constexpr long reach() const { return dilation * (kernel - 1) + 1; }
  constexpr long out() const { return (size + 2 * pad - reach()) / stride + 1; }
};

struct volume_shape {
  long images, channels, outputs, groups;
  volume_axis depth, height, width;

  constexpr long taps() const { return depth.kernel * height.kernel * width.kernel; }
  constexpr long steps() const { return depth.stride * height.stride * width.stride; }
  constexpr long inputs_of_group() const { return channels / groups; }
  constexpr long outputs_of_group() const { return outputs / groups; }
  // The elements of one channel: of the input, then of the output.
  constexpr long size() const { return depth.size * height.size * width.size; }
  constexpr long out() const { return depth.out() * height.out() * width.out(); }
};

constexpr long max_padded_floats = 4 << 20;  // images are padded in groups of about this many floats, which stay in the caches
// the largest stride along a row in the gradient of an input: its phases are computed together
constexpr long max_interleaved_phases = 16;
// Convolutions with fewer outputs per group than this use volume kernels with small tiles.
constexpr int small_tile_rows = tile_rows == 12 ? 8 : 4;

// The layout of one input dimension in scratch memory: element i of phase p is input element i * step + p - before, or zero if
// that lies outside [0, size).
struct padded_axis {
  long size, before, length, step, phases;

  constexpr bool is_whole() const { return step == 1 && length == size; }
};
constexpr padded_axis padded_forward(const volume_axis& a) {
  return {a.size, a.pad, a.out() + (a.reach() - 1) / a.stride, a.stride, smallest(a.stride, a.reach())};
}
constexpr padded_axis padded_backward(const volume_axis& a) {
  const long before = largest(0L, (a.reach() - 1) / a.stride - a.pad / a.stride);
  const long after = largest(0L, (a.size - 1 + a.pad) / a.stride - a.out() + 1);
  return {a.out(), before, before + a.out() + after, 1, 1};
}

// The padded input of a convolution, [images, channels, phases, depth, height, width]. A row of results has `row` positions.
struct padded_volumes {
  long images, channels;
  padded_axis depth, height, width;
  long row;

  constexpr long plane() const { return height.length * width.length; }
  constexpr long volume() const { return depth.length * plane(); }
  constexpr long phases() const { return depth.phases * height.phases * width.phases; }
  constexpr long channel() const { return phases() * volume(); }
  constexpr long size() const { return depth.size * height.size * width.size; }
  // Whether the input can be read in place, without padding. A row's positions have to fill a vector, or reads would pass the
  // end.
  constexpr bool is_whole() const { return depth.is_whole() && height.is_whole() && width.is_whole() && row >= lanes; }
  constexpr long images_at_once() const {
    return is_whole() ? images : largest(1L, smallest(max_padded_floats / (channels * channel()), images));
  }
  constexpr long bytes() const {
    return is_whole() ? 0 : (images_at_once() * channels * channel() + tile_columns) * (long)sizeof(float);
  }
  // Return the offset of a tap's value at position 0, given the tap's distance from the window's first tap along each axis.
  RL_INLINE long offset(long down, long along, long across) const {
    const long phase = (down % depth.step * height.phases + along % height.step) * width.phases + across % width.step;
    return phase * volume() + down / depth.step * plane() + along / height.step * width.length + across / width.step;
  }
};

constexpr padded_volumes volumes_forward(const volume_shape& s) {
  return {s.images, s.channels, padded_forward(s.depth), padded_forward(s.height), padded_forward(s.width), s.width.out()};
}
constexpr padded_volumes volumes_backward(const volume_shape& s) {
  const long row = (s.width.size - 1 + s.width.pad) / s.width.stride - s.width.pad / s.width.stride + 1;
  return {s.images, s.outputs, padded_backward(s.depth), padded_backward(s.height), padded_backward(s.width), row};
}

// If a convolution has a single tap and reads its input in place, treat each volume as one row.
constexpr volume_shape flattened(volume_shape s) {
  const bool plain = s.taps() == 1 && s.steps() == 1 && s.depth.pad == 0 && s.height.pad == 0 && s.width.pad == 0;
  if (!plain) return s;
  s.width.size = s.size();
  s.depth.size = s.height.size = 1;
  return s;
}

// Round up to whole cache lines.
constexpr long in_lines(long bytes) { return (bytes + 63) / 64 * 64; }

// The bytes of scratch memory: the padded volumes, and the offsets of all taps for each thread.
constexpr long volume_scratch_bytes(const volume_shape& s, long threads) {
  return in_lines(volumes_forward(s).bytes()) + threads * in_lines(s.inputs_of_group() * s.taps() * (long)sizeof(long));
}
constexpr long volume_input_scratch_bytes(const volume_shape& s, long threads) {
  return in_lines(volumes_backward(s).bytes()) + threads * in_lines(s.outputs_of_group() * s.taps() * (long)sizeof(long));
}

// Pad `images` images from x on, and split them into phases. The work is shared by all threads; ends with a barrier.
void pad_volumes(const padded_volumes& v, const float* x, long images, float* out);

#ifndef RL_PREBUILT
// Write one row of a padded volume.
RL_INLINE void pad_row(const padded_axis& w, const float* from, long phase, float* to) {
  const long first = largest(0L, smallest(ceil_div(w.before - phase, w.step), w.length));
  const long last = largest(first, smallest(ceil_div(w.size + w.before - phase, w.step), w.length));
  __builtin_memset(to, 0, first * sizeof(float));
  const float* source = from + first * w.step + phase - w.before;
  if (w.step == 1) __builtin_memcpy(to + first, source, (last - first) * sizeof(float));
  else copy_span(source, w.step, to + first, (int)(last - first));
  __builtin_memset(to + last, 0, (w.length - last) * sizeof(float));
}

RL_KERNEL void pad_volumes(const padded_volumes& v, const float* x, long images, float* out) {
  const padded_axis &d = v.depth, &h = v.height, &w = v.width;
  for (const long task : shared(images * v.channels * v.phases() * d.length)) {
    const long layer = task % d.length, part = task / d.length, phase = part % v.phases();
    const long across = phase % w.phases, along = phase / w.phases % h.phases;
    const long z = layer * d.step + phase / w.phases / h.phases - d.before;
    const float* from = x + part / v.phases() * v.size() + z * h.size * w.size;
    float* to = out + task * v.plane();
    for (long row = 0; row < h.length; ++row, to += w.length) {
      const long y = row * h.step + along - h.before;
      if (z < 0 || z >= d.size || y < 0 || y >= h.size) __builtin_memset(to, 0, w.length * sizeof(float));
      else pad_row(w, from + y * w.size, across, to);
    }
  }
}
#endif  // RL_PREBUILT

}  // namespace rl
