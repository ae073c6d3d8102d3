// Convolution, the gradient of its input, and the weight gradient of depthwise convolutions over images.
#include <rushlight/reduce.h>
#include <rushlight/volume.h>

#include "variant.h"

namespace rl {

constexpr double min_use = 0.6;  // if fewer of the computed positions are results, windows are gathered instead
constexpr int64_t max_gathered_floats = 1 << 24;  // larger windows are not gathered
constexpr double max_floats = 1e12;  // limits padded volumes, so that products of their sizes fit into 64 bits

static conv_shape shape_of_convolution(const Convolution& c) {
  return {c.images, c.channels, c.height, c.width, c.outputs, c.kernel_height, c.kernel_width, c.stride_height,
          c.stride_width, c.pad_height, c.pad_width, c.dilation_height, c.dilation_width, c.groups};
}

static volume_shape volume_of(const Convolution& c) {
  return {c.images, c.channels, c.outputs, c.groups,
          {c.depth, c.kernel_depth, c.stride_depth, c.pad_depth, c.dilation_depth},
          {c.height, c.kernel_height, c.stride_height, c.pad_height, c.dilation_height},
          {c.width, c.kernel_width, c.stride_width, c.pad_width, c.dilation_width}};
}

static bool is_image(const Convolution& c) { return c.depth == 1 && c.kernel_depth == 1 && !c.pad_depth; }

// Whether enough of the positions that volume.h would compute are results. A padded row of `width` has `columns` results.
static bool uses_positions(int64_t rows, int64_t columns, int64_t width) {
  const int64_t positions = (rows - 1) * width + columns, panels = (positions + tile_columns - 1) / tile_columns;
  return rows > 0 && columns > 0 && (double)(rows * columns) >= min_use * (double)(panels * tile_columns);
}

static double floats_of(const padded_volumes& v) {
  return (double)v.images * v.channels * v.phases() * v.depth.length * v.height.length * v.width.length;
}

// Whether convolve_volumes computes this convolution.
static bool uses_volume_kernel(const Convolution& c) {
  const volume_shape s = flattened(volume_of(c));
  const padded_volumes v = volumes_forward(s);
  if (floats_of(v) > max_floats) return false;
  if (is_image(c) && ((c.groups > 1 && c.channels == c.groups) || s.outputs_of_group() < small_tile_rows)) return false;
  if (!is_image(c) && c.channels * s.taps() * s.out() > max_gathered_floats) return true;
  return uses_positions(s.height.out(), s.width.out(), v.width.length);
}

int64_t convolution_scratch(const Convolution* c, int threads) {
  if (uses_volume_kernel(*c)) return volume_scratch_bytes(volume_of(*c), threads);
  return is_image(*c) ? conv2d_scratch_bytes(shape_of_convolution(*c)) * threads : 0;
}

void convolution(const Convolution* given) {
  const Convolution c = *given;
  const int64_t pixels = c.out_depth * c.out_height * c.out_width;
  const auto emit = [&](auto lane, long image, long output, long pixel, auto value) {
    if (c.bias) value += c.bias[output];
    lane.store(c.out + (image * c.outputs + output) * pixels + pixel, value);
  };
  const batched_epilogue to(emit, c.outputs);
  if (uses_volume_kernel(c)) convolve_volumes(c.x, c.weight, volume_of(c), c.scratch, to);
  else conv2d(c.x, c.weight, shape_of_convolution(c), c.scratch, to);
}

static bool gradient_uses_volume_kernel(const Convolution& c) {
  const volume_shape s = volume_of(c);
  const padded_volumes v = volumes_backward(s);
  if (floats_of(v) > max_floats || c.stride_width > max_interleaved_phases) return false;
  return c.channels * s.taps() * s.out() > max_gathered_floats ||
         uses_positions(c.height / c.stride_height, c.width / c.stride_width, v.width.length);
}

static int64_t packed_gradient_bytes(const Convolution& c) {
  return in_lines(c.channels * c.outputs / c.groups * volume_of(c).taps() * (int64_t)sizeof(float));
}

int64_t convolution_input_scratch(const Convolution* c, int threads) {
  if (!gradient_uses_volume_kernel(*c)) return 0;
  return packed_gradient_bytes(*c) + volume_input_scratch_bytes(volume_of(*c), threads);
}

void convolution_input(const Convolution* given, const float* grad, float* to_x) {
  const Convolution c = *given;
  const int64_t pixels = c.depth * c.height * c.width;
  const auto emit = [&](auto lane, long image, long channel, long pixel, auto value) {
    if (c.bias) value += c.bias[channel];
    lane.store(to_x + (image * c.channels + channel) * pixels + pixel, value);
  };
  float* packed = (float*)c.scratch;
  pack_volume_gradient(c.weight, volume_of(c), packed);
  volume_input_gradient(grad, packed, volume_of(c), (char*)packed + packed_gradient_bytes(c),
                        batched_epilogue(emit, c.channels));
}

// Find the range [low, high) of output columns whose tap lies inside a row of the input.
static void columns_inside(const Convolution& c, int64_t tap, int64_t* low, int64_t* high) {
  const int64_t shift = tap * c.dilation_width - c.pad_width;
  *low = ceil_div(-shift, c.stride_width);
  *high = ceil_div(c.width - shift, c.stride_width);
  *low = *low < 0 ? 0 : *low;
  *high = *high > c.out_width ? c.out_width : *high;
}

// Return the dot product of one plane's gradient with the inputs under one tap.
static float tap_sum(const Convolution& c, const float* x, const float* grad, int64_t ky, int64_t kx) {
  int64_t low, high;
  columns_inside(c, kx, &low, &high);
  accumulator<sum, float> total;
  for (int64_t row = 0; row < c.out_height; ++row) {
    const int64_t y = row * c.stride_height - c.pad_height + ky * c.dilation_height;
    if (y < 0 || y >= c.height || low >= high) continue;
    const float* from = x + y * c.width + low * c.stride_width + kx * c.dilation_width - c.pad_width;
    const float* with = grad + row * c.out_width + low;
    for_each(high - low, [&](auto lane, long i) {
      total.add(lane, lane.load_strided(from + i * c.stride_width, c.stride_width) * lane.load(with + i));
    });
  }
  return total.finish();
}

void depthwise_weight(const Convolution* given, const float* grad, float* to_weight, int64_t first, int64_t last) {
  const Convolution c = *given;
  const int64_t taps = c.kernel_height * c.kernel_width, plane = c.height * c.width, pixels = c.out_height * c.out_width;
  for (int64_t channel = first; channel < last; ++channel)
    for (int64_t tap = 0; tap < taps; ++tap) {
      float total = 0;
      for (int64_t image = 0; image < c.images; ++image) {
        const int64_t at = image * c.channels + channel;
        total += tap_sum(c, c.x + at * plane, grad + at * pixels, tap / c.kernel_width, tap % c.kernel_width);
      }
      to_weight[channel * taps + tap] = total;
    }
}

}  // namespace rl
