// The operands of kernels of bytes, apart from variant.h because few files know them.
#pragma once

#include "kernels.h"

// A layer of bytes over [images, height, width, channels]: a convolution, of which a linear layer is one over a row of pixels.
struct ByteLayer {
  int64_t images, height, width, channels, out_height, out_width, outputs;
  int64_t kernel_height, kernel_width, stride_height, stride_width, pad_height, pad_width, dilation_height, dilation_width,
      groups;
  const void* x;
  const void* packed;        // the panels of each group, or null
  const int16_t* depthwise;  // the weight [taps, channels] of a layer with one channel in each group
  const float *bias, *multiplier;  // [outputs]
  void* out;
  int is_signed, out_kind, relu;  // out_kind: RL_UINT8, RL_INT8 or RL_FLOAT32
  int32_t zero_point, out_zero;
  void* scratch;
};

// Functions of bytes, element by element. Those that combine two take what lies between them from `scales` and `zeros`.
enum ByteCode { BYTES_QUANTIZE, BYTES_DEQUANTIZE, BYTES_ADD, BYTES_MULTIPLY, BYTES_RESCALE, BYTES_LOOKUP };
struct ByteFunction {
  int code, is_signed, relu;
  const void* inputs[2];  // of a look-up: bytes, and the table
  void* out;
  float scales[2], inverse;  // inverse: by which the result is multiplied before it is rounded
  int32_t zeros[2], out_zero;
};

// Pooling of bytes [images, height, width, channels].
struct BytePool {
  int64_t height, width, channels, out_height, out_width;
  int64_t kernel[2], stride[2], pad[2], dilation[2], divisor;  // divisor: of means, 0 for the window's size
  int is_mean, is_signed, adaptive, counts_padding;
  int32_t zero_point;
  const void* x;
  void* out;
};
