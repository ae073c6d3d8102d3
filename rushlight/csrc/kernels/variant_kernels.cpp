// The kernel table of one instruction set.
#include "variant.h"

namespace rl {
extern const PointwiseSpan pointwise_table[RL_POINTWISE_COUNT][NATIVE_COUNT];
extern const CastSpan cast_table[RL_DTYPE_COUNT][RL_DTYPE_COUNT];
void transpose_tile(const void*, int64_t, int64_t, int64_t, void*, int64_t);
void stream(void*, const void*, int64_t);
void optimizer(int, const double*, const RlParameter*, int64_t, int64_t);
void adafactor(const RlAdafactor*, const RlParameter*, void*);
extern const RowReduction row_table[REDUCTION_COUNT][RL_DTYPE_COUNT];
extern const ColumnReduction column_table[REDUCTION_COUNT][RL_DTYPE_COUNT];
extern const SoftmaxRows softmax_table[SOFTMAX_COUNT];
void layer_norm_rows(const LayerNorm*, int64_t, int64_t);
void layer_norm_backward_rows(const LayerNormBackward*, int64_t, int64_t);
void product(const Product*);
int64_t product_scratch(const Product*);
void convolution(const Convolution*);
int64_t convolution_scratch(const Convolution*, int);
void convolution_input(const Convolution*, const float*, float*);
int64_t convolution_input_scratch(const Convolution*, int);
void max_pool(const Pooling*, int64_t, int64_t);
void adaptive_pool(const AdaptivePool*, void*, int64_t, int64_t);
void channel_moments(const Channels*, float*, float*, int64_t, int64_t);
void channel_products(const Channels*, const float*, const float*, float*, float*, int64_t, int64_t);
void channel_affine(const Channels*, const float*, const float*, const float*, const float*, float*, int64_t, int64_t);
int attention_any(const Attention*);
int attention_backward_any(const Attention*, const AttentionGradients*);
int64_t attention_scratch(const Attention*);
void recurrent(const Recurrent*);
void recurrent_backward(const Recurrent*, const RecurrentGradients*);
int64_t recurrent_scratch(int64_t, int64_t);
void depthwise_weight(const Convolution*, const float*, float*, int64_t, int64_t);
int64_t block_row_bytes(int, int64_t);
int64_t block_scratch(const BlockOperands*);
void block_product(const BlockOperands*);
void block_elements(const BlockOperands*);
int64_t packed_bytes(int64_t, int64_t);
void pack_layer(const int8_t*, int64_t, int64_t, void*);
int64_t byte_layer_scratch(const ByteLayer*);
void byte_layer(const ByteLayer*);
void byte_function(const ByteFunction*, int64_t, int64_t);
void byte_pool(const BytePool*, int64_t, int64_t);
void float_limits(const float*, int64_t, float*);
}  // namespace rl

#define RL_JOIN2(a, b) a##b
#define RL_JOIN(a, b) RL_JOIN2(a, b)
#define RL_TEXT2(a) #a
#define RL_TEXT(a) RL_TEXT2(a)

extern "C" const Variant RL_JOIN(rushlight_variant_, RL_VARIANT) = {
    RL_TEXT(RL_VARIANT), rl::pointwise_table, rl::cast_table, rl::transpose_tile, rl::stream, rl::optimizer, rl::adafactor,
    rl::row_table, rl::column_table, rl::softmax_table, rl::layer_norm_rows, rl::layer_norm_backward_rows, rl::product,
    rl::product_scratch, rl::convolution, rl::convolution_scratch, rl::convolution_input, rl::convolution_input_scratch,
    rl::max_pool, rl::adaptive_pool, rl::channel_moments, rl::channel_products, rl::channel_affine, rl::attention_any, rl::attention_backward_any,
    rl::attention_scratch, rl::recurrent, rl::recurrent_backward, rl::recurrent_scratch, rl::depthwise_weight,
    rl::block_row_bytes, rl::block_scratch, rl::block_product, rl::block_elements,
    rl::packed_bytes, rl::pack_layer, rl::byte_layer_scratch, rl::byte_layer, rl::byte_function,
    rl::byte_pool, rl::float_limits,
};
