// The table of kernels of one instruction set ("variant"), as function pointers. The files *_kernels.cpp are compiled once for
// each set, each time with the header library under another namespace (for example -Drl=rl_avx512), so that the linker cannot
// replace a function of one set by another's. They must not use the C++ standard library.
#pragma once

#include <stdint.h>

#include "kernels.h"

// The types in which pointwise operators compute.
enum Native { NATIVE_FLOAT32, NATIVE_FLOAT64, NATIVE_INT32, NATIVE_INT64, NATIVE_BOOL, NATIVE_COUNT };

// Compute `count` contiguous elements.
typedef void (*PointwiseSpan)(void* out, const void* const* inputs, int64_t count, const double* parameters);
typedef void (*CastSpan)(void* out, const void* input, int64_t count);

// Reductions. DEVIATION sums the squares of differences from a mean, OFFSET the differences themselves; FIND returns the first
// index of the value that `mean` points to.
enum Reduction {
  REDUCE_SUM, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN, REDUCE_ANY, REDUCE_ALL, REDUCE_ARGMAX, REDUCE_ARGMIN,
  REDUCE_DEVIATION, REDUCE_OFFSET, REDUCE_FIND, REDUCTION_COUNT
};
// Reduce `count` contiguous elements to one value.
typedef void (*RowReduction)(const void* in, int64_t count, void* out, const void* mean);
// Reduce to `width` values, each from `count` elements that are `stride` elements apart.
typedef void (*ColumnReduction)(const void* in, int64_t count, int64_t stride, int64_t width, void* out,
                                const void* mean);
constexpr int64_t REDUCED_WIDTH = 512;  // the largest width that a ColumnReduction takes at once

// Softmax over rows of `count` elements that are `inner` apart, float32. A forward kernel reads one input, a backward kernel
// the gradient and the result.
typedef void (*SoftmaxRows)(const float* const* in, float* out, int64_t count, int64_t inner, int64_t width);
enum Softmax { SOFTMAX, LOG_SOFTMAX, SOFTMAX_BACKWARD, LOG_SOFTMAX_BACKWARD, SOFTMAX_COUNT };

// Rows of layer normalisation, float32; weight and bias may be null.
struct LayerNorm {
  const float *x, *weight, *bias;
  float *out, *mean, *rstd;
  int64_t width;
  float eps;
};
struct LayerNormBackward {
  const float *grad, *x, *weight, *mean, *rstd;
  float *to_x, *to_weight, *to_bias;  // null if not wanted; the kernel adds to to_weight and to_bias
  int64_t width;
};

// c = alpha a b + beta addend, float32, by element strides; run by all threads of a parallel region.
struct Product {
  int64_t batches, rows, columns, depth;
  const float *a, *b, *addend;  // addend may be null
  int64_t a_batch, a_row, a_column, b_batch, b_row, b_column, addend_batch, addend_row, addend_column;
  float* c;
  int64_t c_batch, c_row;
  float alpha, beta;
  void* scratch;  // product_scratch(product) bytes for each thread
};

// A convolution over row-major float32 volumes: out[images, outputs, ...] = x * weight + bias (may be null). An image is a
// volume with a depth of 1.
struct Convolution {
  int64_t images, channels, depth, height, width, outputs, kernel_depth, kernel_height, kernel_width;
  int64_t stride_depth, stride_height, stride_width, pad_depth, pad_height, pad_width;
  int64_t dilation_depth, dilation_height, dilation_width, groups;
  int64_t out_depth, out_height, out_width;
  const float *x, *weight, *bias;
  float* out;
  void* scratch;  // its size is that of the *_scratch functions below; all threads of a parallel region run the kernel
};

// Two-dimensional max pooling of planes, float32.
struct Pooling {
  int64_t planes, height, width, out_height, out_width;
  int64_t kernel_height, kernel_width, stride_height, stride_width, pad_height, pad_width, dilation_height, dilation_width;
  const float* x;
  float* out;
  int64_t* places;
};

// Adaptive pooling of [planes, height, width, channels], or the backward of mean pooling, where x is the output's gradient and
// out the input's.
enum AdaptiveKind { ADAPTIVE_MAX, ADAPTIVE_MEAN, ADAPTIVE_MEAN_BACKWARD };
struct AdaptivePool {
  int kind, is_double;
  int64_t planes, height, width, channels, out_height, out_width;
  const void* x;
  void* out;
  int64_t* places;  // indices of the largest elements in their planes
};

// A row-major float32 array [images, channels, count] for functions that work channel by channel.
struct Channels {
  int64_t images, channels, count;
  const float* x;
};

// Attention over [batches, heads, length, width] by element strides (batch, head, row, column).
struct Attention {
  int64_t batches, heads, rows, keys, width;
  const float *q, *k, *v;
  float *out, *sums;  // sums: the log-sum-exp, [batches, heads, rows], contiguous
  int64_t q_strides[4], k_strides[4], v_strides[4], out_strides[4], mask_strides[4];
  const void* mask;  // float, or bool if mask_is_bool; may be null
  int mask_is_bool, causal;
  float scale;
};

// The gradients of attention for query, key and value, given the forward's `out` and `sums`.
struct AttentionGradients {
  const float* grad;
  float *to_q, *to_k, *to_v;
  int64_t grad_strides[4], to_q_strides[4], to_k_strides[4], to_v_strides[4];
  void* scratch;  // attention_scratch(operands) bytes for each thread
};

// Recurrent layers, numbered as torch numbers its modes. The tables hold the number of gates, and the number of values per
// hidden unit and step that the workspace saves.
enum { RNN_RELU, RNN_TANH, LSTM, GRU, RECURRENT_COUNT };
constexpr int64_t recurrent_gates[] = {1, 1, 4, 3}, recurrent_saved[] = {0, 0, 5, 4};

// A recurrent layer in one direction, row-major float32; run by all threads of a parallel region.
struct Recurrent {
  int kind, reverse;
  int64_t steps, batch, hidden;
  const float *weight, *gates;  // [gates hidden, hidden]; [steps, batch, gates hidden]: what the input adds to the gates
  const float *state, *cell;    // the initial state, [batch, hidden]; cell is for an LSTM only
  const float* bias;            // GRU only: bias added to weight @ state, [gates hidden]
  float *output, *last_cell;    // output [steps, batch, hidden]; last_cell [batch, hidden] for an LSTM
  float* workspace;             // [steps, batch, saved hidden]; null where nothing is saved
  void* scratch;                // recurrent_scratch(gates, hidden) bytes
};
// Gradients of the two parts of the gates, from the input and from the state; they differ only for a GRU. On entry, grad_state
// (and carried, for an LSTM) hold the gradients of the last state and cell; on return, those of the initial state and cell.
struct RecurrentGradients {
  const float* grad_output;  // [steps, batch, hidden], may be null
  float *into_gates, *into_hidden, *grad_state, *carried;
};

// Block-quantized weights: `columns` rows of `row_bytes` bytes, each with `depth` elements, in a layout numbered as in GGUF
// files; and `rows` rows of floats to multiply them with.
struct BlockOperands {
  int layout;
  int64_t rows, columns, depth, row_bytes;
  const float* x;
  const uint8_t* blocks;
  float* out;
  void* scratch;  // block_scratch(operands) bytes
};

struct ByteLayer;  // these are in bytes.h
struct ByteFunction;
struct BytePool;

struct Variant {
  const char* name;
  const PointwiseSpan (*pointwise)[NATIVE_COUNT];  // [RL_POINTWISE_COUNT]
  const CastSpan (*cast)[RL_DTYPE_COUNT];          // [from][to]; NULL if the cast needs an intermediate type
  // Transpose 4-byte items: out[r * out_stride + c] = in[c][r]; rows of `in` are in_stride bytes apart.
  void (*transpose_tile)(const void* in, int64_t in_stride, int64_t rows, int64_t columns, void* out, int64_t out_stride);
  void (*stream)(void* out, const void* input, int64_t bytes);  // non-temporal stores; both pointers aligned to 64
  void (*optimizer)(int code, const double* options, const RlParameter* parameter, int64_t first, int64_t last);
  // Update a whole parameter; `sums` has room for two values of the parameter's dtype for each column.
  void (*adafactor)(const RlAdafactor* options, const RlParameter* parameter, void* sums);
  const RowReduction (*reduce_row)[RL_DTYPE_COUNT];        // [REDUCTION_COUNT][element type]
  const ColumnReduction (*reduce_columns)[RL_DTYPE_COUNT];
  const SoftmaxRows* softmax;  // [SOFTMAX_COUNT]
  void (*layer_norm)(const LayerNorm* operands, int64_t first, int64_t last);
  void (*layer_norm_backward)(const LayerNormBackward* operands, int64_t first, int64_t last);
  void (*product)(const Product* product);
  int64_t (*product_scratch)(const Product* product);
  void (*convolution)(const Convolution* operands);
  int64_t (*convolution_scratch)(const Convolution* operands, int threads);  // 0: no kernel for this convolution
  // Compute the gradient of the input from that of the output; `bias` belongs to the input's channels.
  void (*convolution_input)(const Convolution* operands, const float* grad, float* to_x);
  int64_t (*convolution_input_scratch)(const Convolution* operands, int threads);
  void (*max_pool)(const Pooling* operands, int64_t first, int64_t last);  // over planes [first, last)
  // Compute rows [first, last) of `out`, counted through all planes. `scratch` has room for two rows of float64 of the larger
  // width, and for a pair of integers for each output in a row.
  void (*adaptive_pool)(const AdaptivePool* operands, void* scratch, int64_t first, int64_t last);
  void (*channel_moments)(const Channels* x, float* mean, float* variance, int64_t first, int64_t last);
  // Compute for each channel the sum of gradients, and the sum of their products with the deviation of x from the mean.
  void (*channel_products)(const Channels* x, const float* grad, const float* mean, float* sums, float* products,
                           int64_t first, int64_t last);
  // Compute out = x scale + shift (+ other other_scale, unless null), for planes (image, channel).
  void (*channel_affine)(const Channels* x, const float* scale, const float* shift, const float* other,
                         const float* other_scale, float* out, int64_t first, int64_t last);
  int (*attention)(const Attention* operands);  // 0 for widths without a kernel; all threads of a parallel region call it
  int (*attention_backward)(const Attention* operands, const AttentionGradients* gradients);  // like `attention`
  int64_t (*attention_scratch)(const Attention* operands);
  void (*recurrent)(const Recurrent* operands);
  void (*recurrent_backward)(const Recurrent* operands, const RecurrentGradients* gradients);
  int64_t (*recurrent_scratch)(int64_t gates, int64_t hidden);
  // Compute the weight gradient of a depthwise convolution, for channels [first, last); `grad` is the output's gradient.
  void (*depthwise_weight)(const Convolution* operands, const float* grad, float* to_weight, int64_t first, int64_t last);
  // 0 for unknown layouts, or if depth is not a multiple of the block size.
  int64_t (*block_row_bytes)(int layout, int64_t depth);
  int64_t (*block_scratch)(const BlockOperands* operands);
  void (*block_product)(const BlockOperands* operands);  // all threads of a parallel region call it
  void (*block_elements)(const BlockOperands* operands);
  int64_t (*packed_bytes)(int64_t depth, int64_t columns);
  // All threads of a parallel region call it.
  void (*pack_layer)(const int8_t* weight, int64_t depth, int64_t columns, void* packed);
  int64_t (*byte_layer_scratch)(const ByteLayer* operands);  // bytes of scratch memory per thread
  void (*byte_layer)(const ByteLayer* operands);
  void (*byte_function)(const ByteFunction* operands, int64_t first, int64_t last);  // over elements [first, last)
  // Pool rows [first, last), counted through the results of all images.
  void (*byte_pool)(const BytePool* operands, int64_t first, int64_t last);
  void (*float_limits)(const float* x, int64_t count, float* limits);                // writes the minimum and the maximum
};

extern "C" {
extern const Variant rushlight_variant_baseline;
extern const Variant rushlight_variant_avx2;
extern const Variant rushlight_variant_avx512;
}

// Return the chosen instruction set, and the number of threads that `work` elements justify.
const Variant* rushlight_variant();
int rushlight_threads_for(int64_t work);
