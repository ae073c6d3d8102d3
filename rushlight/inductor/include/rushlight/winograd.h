// Convolutions with 3 x 3 kernels and stride 1 by Winograd's minimal filtering, F(4 x 4, 3 x 3) (Lavin and Gray 2016). Blocks
// of 6 x 6 inputs are transformed to 36 "places", multiplied as 36 matrix products of blocks and channels, and transformed to 4
// x 4 outputs. This needs a quarter of the multiplications. The points of interpolation are 0, +-5/8, +-3/2 and infinity, for
// which the error is about that of a direct sum (Barabasz et al. 2020 study the choice).
//
// The input is channels-last; results go to an epilogue as in image.h. An infinity, a NaN or an overflow would spread over its
// whole block, so the outputs of such a block are computed again directly from the unpacked weight.
#pragma once

#include <rushlight/image.h>

namespace rl {

constexpr int winograd_places = 36;

// Pack the weight [O, C, 3, 3], read by strides, as [ceil(O / NR)][36][C][NR]. Called by all threads of a region, or by one
// thread outside.
void pack_winograd(const float* weight, image_strides at, long outputs, long channels, float* packed);

// A task takes up to winograd_group blocks. If the weight is small, each thread transforms the inputs of its own blocks
// (private). If it is large, all threads share the transformed inputs of winograd_chunk blocks, and each task takes one panel
// of the weight.
constexpr long winograd_group = 28, winograd_chunk = 128;
constexpr bool winograd_shared(const conv_shape& s) {
  return s.channels * s.outputs * winograd_places * (long)sizeof(float) > 3L << 20;
}
constexpr long winograd_floats(const conv_shape& s) {
  const long blocks = winograd_shared(s) ? winograd_chunk : winograd_group;
  return winograd_places * s.channels * blocks;
}
constexpr long winograd_products() { return winograd_places * tile_columns * winograd_group; }
constexpr long winograd_scratch_bytes(const conv_shape& s, long threads) {
  const long inputs = winograd_floats(s) * (winograd_shared(s) ? 1 : threads);
  return (inputs + threads * winograd_products() + 64) * (long)sizeof(float);
}

// x is channels-last, read by strides; the weight [O, C, 3, 3] is given by strides and packed. Ends with a barrier.
void conv2d_winograd(const float* x, const image_strides& at, const float* weight, const image_strides& filter,
                     const float* packed, const conv_shape& s, void* scratch, epilogue emit);

#ifndef RL_PREBUILT
constexpr float winograd_p = 0.625f, winograd_q = 1.5f;
constexpr float winograd_p2 = winograd_p * winograd_p, winograd_q2 = winograd_q * winograd_q;

// ---- transforms ----------------------------------------------------------------------------------------------------

// Transform six inputs, `step` apart, to six places.
template <class V> RL_INLINE void winograd_input(const V* x, int step, V* out, int out_step) {
  constexpr float p = winograd_p, q = winograd_q, p2 = winograd_p2, q2 = winograd_q2;
  const V x0 = x[0], x1 = x[step], x2 = x[2 * step], x3 = x[3 * step], x4 = x[4 * step], x5 = x[5 * step];
  const V even_p = x4 - q2 * x2, odd_p = x3 - q2 * x1, even_q = x4 - p2 * x2, odd_q = x3 - p2 * x1;
  out[0] = p2 * q2 * x0 - (p2 + q2) * x2 + x4;
  out[out_step] = even_p + p * odd_p;
  out[2 * out_step] = even_p - p * odd_p;
  out[3 * out_step] = even_q + q * odd_q;
  out[4 * out_step] = even_q - q * odd_q;
  out[5 * out_step] = p2 * q2 * x1 - (p2 + q2) * x3 + x5;
}

// Transform six places to four outputs.
template <class V> RL_INLINE void winograd_output(const V* m, int step, V* out, int out_step) {
  constexpr float p = winograd_p, q = winograd_q, p2 = winograd_p2, q2 = winograd_q2;
  const V sum_p = m[step] + m[2 * step], gap_p = m[step] - m[2 * step];
  const V sum_q = m[3 * step] + m[4 * step], gap_q = m[3 * step] - m[4 * step];
  out[0] = m[0] + sum_p + sum_q;
  out[out_step] = p * gap_p + q * gap_q;
  out[2 * out_step] = p2 * sum_p + q2 * sum_q;
  out[3 * out_step] = p * p2 * gap_p + q * q2 * gap_q + m[5 * step];
}

// Transform three weights to six places.
template <class V> RL_INLINE void winograd_filter(const V* g, int step, V* out, int out_step) {
  constexpr float p = winograd_p, q = winograd_q, p2 = winograd_p2, q2 = winograd_q2;
  constexpr float at_p = 1 / (2 * p2 * (p2 - q2)), at_q = 1 / (2 * q2 * (q2 - p2));
  const V g0 = g[0], g1 = g[step], g2 = g[2 * step];
  const V even_p = g0 + p2 * g2, even_q = g0 + q2 * g2;
  out[0] = g0 * (1 / (p2 * q2));
  out[out_step] = (even_p + p * g1) * at_p;
  out[2 * out_step] = (even_p - p * g1) * at_p;
  out[3 * out_step] = (even_q + q * g1) * at_q;
  out[4 * out_step] = (even_q - q * g1) * at_q;
  out[5 * out_step] = g2;
}

constexpr long winograd_channels = 64;  // channels whose filters are gathered into one buffer before they are transformed

// Load the nine weights of `count` channels for `rows` <= lanes outputs: out[channel * channel_step + tap *
// tap_step][0..lanes).
RL_INLINE void gather_filters(const float* w, const image_strides& at, long rows, long count, float* out, long channel_step,
                              long tap_step) {
  for (long c = 0; c < count; ++c)
    for (long k = 0; k < 9; ++k) {
      const float* from = w + c * at.channel + k / 3 * at.row + k % 3 * at.column;
      float* to = out + c * channel_step + k * tap_step;
      if (rows == lanes) vector_lane{}.store(to, vector_lane{}.load_strided(from, at.image));
      else
        for (long o = 0; o < lanes; ++o) to[o] = o < rows ? from[o * at.image] : 0.0f;
    }
}

RL_KERNEL void pack_winograd(const float* weight, image_strides at, long outputs, long channels, float* packed) {
  const long halves = (outputs + tile_columns - 1) / tile_columns * 2;
  const bool plain = at.channel == 9 && at.column == 1, last = at.channel == 1 && at.column > 0;
  const long channel_step = last ? lanes : 9 * lanes, tap_step = last ? winograd_channels * lanes : lanes;
  for (const long half : shared(halves)) {
    const long first = half * lanes, left = outputs - first, rows = left < 0 ? 0 : left < lanes ? left : lanes;
    float* out = packed + half / 2 * tile_columns * winograd_places * channels + half % 2 * lanes;
    for (long c = 0; c < channels; c += winograd_channels) {
      alignas(64) float block[winograd_channels * 9 * lanes];
      const long count = channels - c < winograd_channels ? channels - c : winograd_channels;
      const float* from = weight + (rows ? first * at.image : 0) + c * at.channel;
      if (plain) {
        pack_transposed(from, at.image, rows, 9 * count, block, lanes);
      } else if (last) {
        for (long k = 0; k < 9; ++k)
          pack_transposed(from + k / 3 * at.row + k % 3 * at.column, at.image, rows, count, block + k * tap_step, lanes);
      } else {
        gather_filters(from, at, rows, count, block, channel_step, tap_step);
      }
      for (long i = 0; i < count; ++i) {
        vec<float> g[9], half_way[18], u[winograd_places];
        for (int k = 0; k < 9; ++k) g[k] = vector_lane{}.load(block + i * channel_step + k * tap_step);
        for (int x = 0; x < 3; ++x) winograd_filter(g + x, 3, half_way + x, 3);
        for (int y = 0; y < 6; ++y) winograd_filter(half_way + 3 * y, 1, u + 6 * y, 1);
        for (int k = 0; k < winograd_places; ++k)
          vector_lane{}.store(out + (k * channels + c + i) * tile_columns, u[k]);
      }
    }
  }
}

// The blocks of 4 x 4 outputs, numbered through all images: `high` x `wide` blocks in each image.
struct winograd_blocks {
  long high, wide;
  RL_INLINE long of_image() const { return high * wide; }
  RL_INLINE long image(long i) const { return i / of_image(); }
  RL_INLINE long row(long i) const { return i % of_image() / wide * 4; }
  RL_INLINE long column(long i) const { return i % wide * 4; }
};
constexpr winograd_blocks blocks_of(const conv_shape& s) {
  return {(s.out_height() + 3) / 4, (s.out_width() + 3) / 4};
}

// Transform one vector of channels of a block, from channel `c`. from[i] points at channel 0 of pixel i, or at zeros if
// inside[i] is false.
RL_KERNEL void winograd_transform(const float* const* from, const bool* inside, long c, float* out, long place) {
  const vector_lane lane;
  vec<float> x[winograd_places], half_way[winograd_places], v[6];
  RL_UNROLL for (int i = 0; i < winograd_places; ++i) x[i] = lane.load(from[i] + (inside[i] ? c : 0));
  RL_UNROLL for (int i = 0; i < 6; ++i) winograd_input(x + i, 6, half_way + i, 6);
  RL_UNROLL for (int y = 0; y < 6; ++y) {
    winograd_input(half_way + 6 * y, 1, v, 1);
    RL_UNROLL for (int i = 0; i < 6; ++i) lane.store(out + (6 * y + i) * place, v[i]);
  }
}

// Transform the block at (row, column) of one image to out[place][c]; places are `place` floats apart.
RL_KERNEL void winograd_gather(const float* x, const image_strides& at, const conv_shape& s, long row, long column,
                               float* out, long place) {
  alignas(64) static const float zeros[lanes] = {};
  const float* from[winograd_places];
  bool inside[winograd_places];
  for (long i = 0; i < winograd_places; ++i) {
    const long y = row - s.pad_height + i / 6, z = column - s.pad_width + i % 6;
    inside[i] = y >= 0 && y < s.height && z >= 0 && z < s.width;
    from[i] = inside[i] ? x + y * at.row + z * at.column : zeros;
  }
  const long rest = s.channels % lanes, whole = s.channels - rest;
  for (long c = 0; c < whole; c += lanes) winograd_transform(from, inside, c, out + c, place);
  if (rest) {
    alignas(64) float block[winograd_places * lanes] = {}, done[winograd_places * lanes];
    for (long i = 0; i < winograd_places; ++i) {
      __builtin_memcpy(block + i * lanes, from[i] + (inside[i] ? whole : 0), rest * sizeof(float));
      from[i] = block + i * lanes;
    }
    winograd_transform(from, inside, 0, done, lanes);
    for (long i = 0; i < winograd_places; ++i)
      __builtin_memcpy(out + i * place + whole, done + i * lanes, rest * sizeof(float));
  }
}

// ---- products ------------------------------------------------------------------------------------------------------

// A partition of blocks into tiles of at most strip_rows. Hidden visibility: every library has its own table of functions.
struct __attribute__((visibility("hidden"))) winograd_cut : row_cut<float> {
  RL_INLINE explicit winograd_cut(long rows) : row_cut(rows, strip_rows, tiles()) {}

 private:
  static RL_INLINE const tile_function<float>* tiles() {
    static constexpr tile_function<float> all[] = {RL_EACH_STRIP(RL_TILE_ADDRESS, float)};
    return all;
  }
};

// Compute one output of one channel directly from the unpacked weight.
RL_KERNEL float conv_at(const float* x, const image_strides& at, const conv_shape& s, const float* weight,
                        const image_strides& filter, long row, long column) {
  float total = 0.0f;
  for (long y = 0; y < 3; ++y)
    for (long z = 0; z < 3; ++z) {
      const long i = row - s.pad_height + y, j = column - s.pad_width + z;
      if (i < 0 || i >= s.height || j < 0 || j >= s.width) continue;
      for (long c = 0; c < s.channels; ++c) total += x[i * at.row + j * at.column + c] * weight[c * filter.channel + y * filter.row + z * filter.column];
    }
  return total;
}

// Transform the places of one block, m[place][0..NR) with `place` floats between places, to the outputs out[16][NR]. Return
// false if one of them is not finite.
RL_KERNEL bool winograd_scatter(const float* m, long place, float* out) {
  const vector_lane lane;
  vec<float> check = {};
  for (int j = 0; j < tile_columns; j += lanes) {
    vec<float> half_way[24], y[16];
    RL_ROLLED for (int i = 0; i < 6; ++i) {
      vec<float> column[6];
      RL_UNROLL for (int k = 0; k < 6; ++k) column[k] = lane.load(m + (6 * k + i) * place + j);
      winograd_output(column, 1, half_way + i, 6);
    }
    RL_ROLLED for (int i = 0; i < 4; ++i) winograd_output(half_way + 6 * i, 1, y + 4 * i, 1);
    RL_ROLLED for (int i = 0; i < 16; ++i) {
      check += y[i] * 0.0f;
      lane.store(out + i * tile_columns + j, y[i]);
    }
  }
  const auto same_lanes = check == check;
  bool finite = true;
  for (int i = 0; i < lanes; ++i) finite &= same_lanes[i] != 0;
  return finite;
}

// Hand the outputs of one block to the epilogue.
RL_KERNEL void winograd_emit(const float* x, const image_strides& at, const conv_shape& s, const float* weight,
                             const image_strides& filter, const float* m, long place, long block, long channel,
                             epilogue emit) {
  alignas(64) float out[16 * tile_columns];
  const winograd_blocks blocks = blocks_of(s);
  const long height = s.out_height(), width = s.out_width(), image = blocks.image(block);
  const long row = blocks.row(block), column = blocks.column(block), left = s.outputs - channel;
  const long wide = left < tile_columns ? left : tile_columns, across = width - column < 4 ? width - column : 4;
  const bool finite = winograd_scatter(m, place, out);
  for (long y = row; y < row + 4 && y < height; ++y) {
    float* values = out + (y - row) * 4 * tile_columns;
    if (!finite)
      for (long i = 0; i < across; ++i)
        for (long j = 0; j < wide; ++j)
          values[i * tile_columns + j] =
              conv_at(x + image * at.image, at, s, weight + (channel + j) * filter.image, filter, y, column + i);
    emit(values, (image * height + y) * width + column, across, channel, wide);
  }
}

// ---- the convolution -----------------------------------------------------------------------------------------------

// Multiply the transformed inputs v[36][..][C] of the cut's blocks by one panel of the weight: products[36][rows][NR]. If the
// weight is large (shared), prefetch the weights of the next place meanwhile.
RL_KERNEL void winograd_multiply(const float* v, long place, const winograd_cut& cut, const conv_shape& s,
                                 const float* panel, float* products) {
  const long channels = s.channels, bytes = channels * tile_columns * (long)sizeof(float);
  const long bringing = winograd_shared(s) ? winograd_places - 1 : 0;
  for (long i = 0; i < winograd_places; ++i)
    for (long j = 0; j < cut.count; ++j) {
      const row_block block = cut.at(j);
      const char* const weights = (const char*)panel + i * bytes;
      cut.run(block, v + i * place, channels, 1, (const float*)weights, channels,
              products + (i * cut.rows + block.first) * tile_columns, false,
              {weights + bytes + bytes * j / cut.count, i < bringing ? bytes / cut.count : 0});
    }
}

// Transform the inputs of `count` blocks from `first`: v[36][count][C].
RL_KERNEL void winograd_gather_all(const float* x, const image_strides& at, const conv_shape& s, long first,
                                   long count, float* v) {
  const winograd_blocks blocks = blocks_of(s);
  for (long i = 0; i < count; ++i)
    winograd_gather(x + blocks.image(first + i) * at.image, at, s, blocks.row(first + i), blocks.column(first + i),
                    v + i * s.channels, count * s.channels);
}

RL_KERNEL void conv2d_winograd(const float* x, const image_strides& at, const float* weight,
                               const image_strides& filter, const float* packed, const conv_shape& s, void* scratch,
                               epilogue emit) {
  const winograd_blocks blocks = blocks_of(s);
  const long total = s.images * blocks.of_image(), panels = (s.outputs + tile_columns - 1) / tile_columns;
  const long threads = thread_count(), thread = thread_index();
  const bool common = winograd_shared(s);
  float* v = (float*)scratch + (common ? 0 : thread * winograd_floats(s));
  float* products = (float*)scratch + winograd_floats(s) * (common ? 1 : threads) + thread * winograd_products();
  // Private: a task is a group of blocks with all panels. Shared: within each chunk of blocks, a task is a group and one panel.
  const long chunk = common ? winograd_chunk : total;
  for (long begin = 0; begin < total; begin += chunk) {
    const long count = total - begin < chunk ? total - begin : chunk;
    const long fewest = (count + winograd_group - 1) / winograd_group, even = (fewest + threads - 1) / threads * threads;
    const long groups = common ? fewest : even < count ? even : count;
    if (common) {
      for (const long i : shared(count))
        winograd_gather(x + blocks.image(begin + i) * at.image, at, s, blocks.row(begin + i), blocks.column(begin + i),
                        v + i * s.channels, count * s.channels);
    }
    for (const long task : shared(groups * (common ? panels : 1))) {
      const long first = count * (task % groups) / groups, own = count * (task % groups + 1) / groups - first;
      const long panel = task / groups, last = common ? panel + 1 : panels;
      if (!common) winograd_gather_all(x, at, s, begin + first, own, v);
      const float* inputs = v + (common ? first * s.channels : 0);
      const winograd_cut cut(own);
      for (long i = panel; i < last; ++i) {
        const long channel = i * tile_columns, place = (common ? count : own) * s.channels;
        winograd_multiply(inputs, place, cut, s, packed + channel * winograd_places * s.channels, products);
        for (long k = 0; k < own; ++k)
          winograd_emit(x, at, s, weight, filter, products + k * tile_columns, own * tile_columns, begin + first + k,
                        channel, emit);
      }
    }
  }
}
#endif  // RL_PREBUILT

}  // namespace rl
