// The gradient of the weight of a convolution with 3 x 3 kernels and stride 1 by Winograd's minimal filtering, F(3 x 3, 4 x 4).
// Blocks of 6 x 6 inputs and of 4 x 4 output gradients ("factors") are transformed to 36 places, and multiplied as 36 matrix
// products that sum over the blocks. This needs a quarter of the multiplications. At the end the sums are transformed to 3 x 3
// weights. The points are those of winograd.h.
//
// An infinity, a NaN or an overflow would spread over all taps: if one of the results is not finite, the whole gradient is
// computed by the plain sum (convolution_weight.h).
#pragma once

#include <rushlight/winograd.h>

namespace rl {

constexpr long winograd_weight_chunk = 128;  // at most this many blocks are transformed at a time

// A part of scratch memory: 36 arrays of `size` floats, with padding between them so that they do not compete for the same
// cache sets.
struct winograd_array {
  long size;

  constexpr long place() const { return size + 64 / (long)sizeof(float); }
  constexpr long floats() const { return winograd_places * place(); }
};
// The parts of scratch memory. Factors (grad, input) are [place][group of channels][block][NR]; sums are [place][group of
// outputs][group of channels][NR][NR].
struct winograd_weight_parts {
  long chunk, output_groups, channel_groups;
  winograd_array grad, input, sums;
  long filter;  // floats of the weights of one output

  constexpr long thread_floats() const { return filter + 16; }
  constexpr long floats(long threads) const {
    return grad.floats() + input.floats() + sums.floats() + threads * thread_floats();
  }
};
constexpr winograd_weight_parts parts_of_winograd_weight(const conv_shape& s) {
  const long blocks = s.images * ((s.out_height() + 3) / 4) * ((s.out_width() + 3) / 4);
  const long chunks = (blocks + winograd_weight_chunk - 1) / winograd_weight_chunk, chunk = chunks ? (blocks + chunks - 1) / chunks : 0;
  const long outputs = (s.outputs + tile_columns - 1) / tile_columns, channels = (s.channels + tile_columns - 1) / tile_columns;
  const long panel = chunk * tile_columns;
  return {chunk, outputs, channels, {outputs * panel}, {channels * panel}, {outputs * channels * tile_columns * tile_columns},
          (9 * s.channels + 15) / 16 * 16 + lanes};
}

#ifndef RL_PREBUILT
// ---- transforms ----------------------------------------------------------------------------------------------------

// Transform four gradients to six places.
template <class V> RL_INLINE void winograd_gradient(const V* g, int step, V* out, int out_step) {
  constexpr float p = winograd_p, q = winograd_q, p2 = winograd_p2, q2 = winograd_q2;
  const V g0 = g[0], g1 = g[step], g2 = g[2 * step], g3 = g[3 * step];
  const V even_p = g0 + p2 * g2, odd_p = p * (g1 + p2 * g3), even_q = g0 + q2 * g2, odd_q = q * (g1 + q2 * g3);
  out[0] = g0;
  out[out_step] = even_p + odd_p;
  out[2 * out_step] = even_p - odd_p;
  out[3 * out_step] = even_q + odd_q;
  out[4 * out_step] = even_q - odd_q;
  out[5 * out_step] = g3;
}

// Transform six places to three weights.
template <class V> RL_INLINE void winograd_weight(const V* m, int step, V* out, int out_step) {
  constexpr float p = winograd_p, q = winograd_q, p2 = winograd_p2, q2 = winograd_q2;
  constexpr float at_p = 1 / (2 * p2 * (p2 - q2)), at_q = 1 / (2 * q2 * (q2 - p2));
  const V sum_p = (m[step] + m[2 * step]) * at_p, gap_p = (m[step] - m[2 * step]) * at_p;
  const V sum_q = (m[3 * step] + m[4 * step]) * at_q, gap_q = (m[3 * step] - m[4 * step]) * at_q;
  out[0] = m[0] * (1 / (p2 * q2)) + sum_p + sum_q;
  out[out_step] = p * gap_p + q * gap_q;
  out[2 * out_step] = p2 * sum_p + q2 * sum_q + m[5 * step];
}

// Transform `Size` inputs (6) or gradients (4) to six places.
template <int Size, class V> RL_INLINE void to_places(const V* x, int step, V* out, int out_step) {
  if constexpr (Size == 6) winograd_input(x, step, out, out_step);
  else winograd_gradient(x, step, out, out_step);
}

// Transform one vector of channels of a block of Size x Size pixels to out[place][0..lanes).
template <int Size> RL_INLINE void transform_factor(const vec<float> (&x)[Size * Size], float* out, long place) {
  vec<float> half_way[6 * Size], v[6];
  RL_UNROLL for (int i = 0; i < Size; ++i) to_places<Size>(x + i, Size, half_way + i, Size);
  RL_UNROLL for (int y = 0; y < 6; ++y) {
    to_places<Size>(half_way + Size * y, 1, v, 1);
    RL_UNROLL for (int i = 0; i < 6; ++i) vector_lane{}.store(out + (6 * y + i) * place, v[i]);
  }
}

// One operand of the products: its pixels, and the array that its transformed blocks go to, out[place][group][block][NR].
struct winograd_factor {
  const float* x;
  const image_strides& at;
  long channels, height, width;
  float* out;
  long place, chunk;
};

// Load the block of Size x Size pixels at (row, column) of an image, with zeros outside, and transform it.
template <int Size>
__attribute__((noinline)) void gather_factor(const winograd_factor& f, long image, long row, long column, long block) {
  const float* from[Size * Size];
  bool inside[Size * Size];
  for (long i = 0; i < Size * Size; ++i) {
    const long y = row + i / Size, z = column + i % Size;
    inside[i] = y >= 0 && y < f.height && z >= 0 && z < f.width;
    from[i] = f.x + (inside[i] ? image * f.at.image + y * f.at.row + z * f.at.column : 0);
  }
  const long whole = (f.channels + tile_columns - 1) / tile_columns * tile_columns;
  for (long c = 0; c < whole; c += lanes) {
    vec<float> x[Size * Size] = {};
    const long left = f.channels - c;
    if (left >= lanes) {
      RL_UNROLL for (int i = 0; i < Size * Size; ++i)
        if (inside[i]) x[i] = vector_lane{}.load(from[i] + c);
    } else if (left > 0) {
      for (int i = 0; i < Size * Size; ++i)
        if (inside[i]) __builtin_memcpy(&x[i], from[i] + c, left * sizeof(float));
    }
    transform_factor<Size>(x, f.out + c / tile_columns * f.chunk * tile_columns + block * tile_columns + c % tile_columns, f.place);
  }
}

// ---- the sums ------------------------------------------------------------------------------------------------------

// Compute the sums over all blocks: sums[place][group of outputs][group of channels][NR][NR].
RL_KERNEL void winograd_weight_sums(const float* x, const image_strides& at, const float* grad, const image_strides& grad_at,
                                    const conv_shape& s, const winograd_weight_parts& parts, float* factors, float* sums) {
  const winograd_blocks blocks = blocks_of(s);
  const long total = s.images * blocks.of_image(), tile = tile_columns * tile_columns, panels = parts.channel_groups;
  float *grads = factors, *inputs = factors + parts.grad.floats();
  const winograd_factor from_grad = {grad, grad_at, s.outputs, s.out_height(), s.out_width(), grads, parts.grad.place(), parts.chunk};
  const winograd_factor from_input = {x, at, s.channels, s.height, s.width, inputs, parts.input.place(), parts.chunk};
  for (long begin = 0; begin < total; begin += parts.chunk) {
    const long count = smallest(parts.chunk, total - begin);
    for (const long i : shared(count)) {
      const long image = blocks.image(begin + i), row = blocks.row(begin + i), column = blocks.column(begin + i);
      gather_factor<4>(from_grad, image, row, column, i);
      gather_factor<6>(from_input, image, row - s.pad_height, column - s.pad_width, i);
    }
    for (const long task : shared(winograd_places * panels)) {
      const long place = task / panels, panel = task % panels;
      const float* columns = inputs + place * parts.input.place() + panel * parts.chunk * tile_columns;
      for (long group = 0; group < parts.output_groups; ++group) {
        const row_cut<float> cut(smallest((long)tile_columns, s.outputs - group * tile_columns));
        const float* rows = grads + place * parts.grad.place() + group * parts.chunk * tile_columns;
        float* to = sums + place * parts.sums.place() + (group * panels + panel) * tile;
        for (long i = 0; i < cut.count; ++i)
          cut.run(cut.at(i), rows, 1, tile_columns, columns, count, to + cut.at(i).first * tile_columns, begin != 0);
      }
    }
  }
}

// Return the offset of an output's sums for the first group of channels; the NR channels of a group are adjacent.
RL_INLINE long winograd_row(const winograd_weight_parts& parts, long output) {
  return (output / tile_columns * parts.channel_groups * tile_columns + output % tile_columns) * tile_columns;
}

// Transform a row of sums from 36 places to 9 weights per channel, in place: they overwrite the first 9 places. Return whether
// all are finite.
RL_KERNEL bool finish_winograd_row(float* sums, long place, long groups) {
  const vector_lane lane;
  vec<float> check = {};
  for (long group = 0; group < groups; ++group)
    for (long j = 0; j < tile_columns; j += lanes) {
      float* at = sums + group * tile_columns * tile_columns + j;
      vec<float> half_way[18], weights[3];
      RL_ROLLED for (int y = 0; y < 6; ++y) {
        vec<float> m[6];
        RL_UNROLL for (int i = 0; i < 6; ++i) m[i] = lane.load(at + (6 * y + i) * place);
        winograd_weight(m, 1, half_way + 3 * y, 1);
      }
      RL_UNROLL for (int i = 0; i < 3; ++i) {
        winograd_weight(half_way + i, 3, weights, 1);
        RL_UNROLL for (int y = 0; y < 3; ++y) {
          check += weights[y] * 0.0f;
          lane.store(at + (3 * y + i) * place, weights[y]);
        }
      }
    }
  const auto same_lanes = check == check;
  bool finite = true;
  for (int i = 0; i < lanes; ++i) finite &= same_lanes[i] != 0;
  return finite;
}
#endif  // RL_PREBUILT

}  // namespace rl
