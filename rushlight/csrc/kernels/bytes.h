// Operands of the kernels over bytes. They are separate from variant.h because few files need them.
#pragma once

#include "kernels.h"

// A quantized layer over [images, height, width, channels]: a convolution. A linear layer is a convolution over one row of
// pixels.
struct ByteLayer {
  int64_t images, height, width, channels, out_height, out_width, outputs;
  int64_t kernel_height, kernel_width, stride_height, stride_width, pad_height, pad_width, dilation_height, dilation_width,
      groups;
  const void* x;
  const void* packed;        // the packed panels of each group, or null
  const int16_t* depthwise;  // the weight of a depthwise layer, [taps, channels]; else null
  const float *bias, *multiplier;  // [outputs]
  void* out;
  int is_signed, out_kind, relu;  // out_kind: RL_UINT8, RL_INT8 or RL_FLOAT32
  int32_t zero_point, out_zero;
  void* scratch;
};

// Elementwise functions of bytes. Binary ones use `scales` and `zeros` of both inputs.
enum ByteCode { BYTES_QUANTIZE, BYTES_DEQUANTIZE, BYTES_ADD, BYTES_MULTIPLY, BYTES_RESCALE, BYTES_LOOKUP };
struct ByteFunction {
  int code, is_signed, relu;
  const void* inputs[2];  // for a table look-up: bytes, and the table
  void* out;
  float scales[2], inverse;  // inverse: multiplies the result before rounding
  int32_t zeros[2], out_zero;
};

// Pooling of bytes [images, height, width, channels].
struct BytePool {
  int64_t height, width, channels, out_height, out_width;
  int64_t kernel[2], stride[2], pad[2], dilation[2], divisor;  // divisor: for means; 0 for the window's size
  int is_mean, is_signed, adaptive, counts_padding;
  int32_t zero_point;
  const void* x;
  void* out;
};
