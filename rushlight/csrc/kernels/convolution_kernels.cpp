// Convolution, the gradient of its input, and the weight's gradient of depthwise ones over images.
#include <rushlight/conv.h>
#include <rushlight/reduce.h>

#include "direct_convolution.h"

namespace rl {

static conv_shape shape_of_convolution(const Convolution& c) {
  return {c.images, c.channels, c.height, c.width, c.outputs, c.kernel_height, c.kernel_width, c.stride_height,
          c.stride_width, c.pad_height, c.pad_width, c.dilation_height, c.dilation_width, c.groups};
}

int64_t convolution_scratch(const Convolution* c, int threads) {
  if (goes_directly(*c)) return direct_scratch(*c);
  return is_image(*c) ? conv2d_scratch_bytes(shape_of_convolution(*c)) * threads : 0;
}

void convolution(const Convolution* given) {
  const Convolution c = *given;
  if (goes_directly(c)) return direct_convolution(c);
  const long pixels = c.out_height * c.out_width;
  const auto emit = [&](auto lane, long image, long output, long pixel, auto value) {
    if (c.bias) value += c.bias[output];
    lane.store(c.out + (image * c.outputs + output) * pixels + pixel, value);
  };
  conv2d(c.x, c.weight, shape_of_convolution(c), c.scratch, batched_epilogue(emit, c.outputs));
}

int64_t convolution_input_scratch(const Convolution* c) {
  return gradient_goes_directly(*c) ? direct_gradient_scratch(*c) : 0;
}

void convolution_input(const Convolution* c, const float* grad, float* to_x) { direct_gradient(*c, grad, to_x); }

// The output columns whose tap lies inside a row of the input: [low, high).
static void inside(const Convolution& c, int64_t tap, int64_t* low, int64_t* high) {
  const int64_t shift = tap * c.dilation_width - c.pad_width;
  *low = ceil_div(-shift, c.stride_width);
  *high = ceil_div(c.width - shift, c.stride_width);
  *low = *low < 0 ? 0 : *low;
  *high = *high > c.out_width ? c.out_width : *high;
}

// The products of one plane's gradient with what one tap meets, added up.
static float tap_sum(const Convolution& c, const float* x, const float* grad, int64_t ky, int64_t kx) {
  int64_t low, high;
  inside(c, kx, &low, &high);
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
