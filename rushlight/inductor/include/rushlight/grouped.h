// Convolutions of channels-last images in groups of a few channels, fp32, and the gradient of their input. Lanes are output
// channels. If several groups share a vector, a pixel's vector of input channels is permuted so that each lane gets the next
// channel of its own group; if a group fills whole vectors, its input channels are broadcast one by one. Rows, ring buffers and
// results are as in depthwise.h.
#pragma once

#include <rushlight/depthwise.h>
#include <rushlight/image.h>

namespace rl {

// The `Channels` parameter of channelwise_images for groups. For the gradient of the input, `inputs` are the output's channels.
struct group_channels {
  long groups, inputs, outputs;
  long together;  // groups in a vector; 0 if a group has vectors to itself

  constexpr group_channels(long groups, long inputs, long outputs)
      : groups(groups), inputs(inputs), outputs(outputs), together(lanes / largest(inputs, outputs)) {}
  constexpr group_channels(const conv_shape& s, bool forward)
      : group_channels(s.groups, (forward ? s.channels : s.outputs) / s.groups, (forward ? s.outputs : s.channels) / s.groups) {}

  // A block of up to two vectors of channels, from input channel `from` and output channel `first`. Vector v reads reads[v]
  // channels and computes gives[v].
  struct block {
    long from, first, reads[2], gives[2];
  };
  constexpr long pitch() const { return together ? tile_columns : (inputs + lanes - 1) / lanes * lanes; }
  constexpr long tap() const { return inputs * tile_columns; }
  constexpr long panels() const { return (outputs + tile_columns - 1) / tile_columns; }
  constexpr long blocks() const { return together ? (groups + 2 * together - 1) / (2 * together) : groups * panels(); }

  RL_INLINE block at(long i) const {
    if (together) {
      const long group = i * 2 * together, left = groups - group;
      const long low = smallest(left, together), high = largest(0L, smallest(left - together, together));
      return {group * inputs, group * outputs, {low * inputs, high * inputs}, {low * outputs, high * outputs}};
    }
    const long group = i / panels(), column = i % panels() * tile_columns, left = smallest(outputs - column, tile_columns);
    const long low = smallest(left, lanes);
    return {group * inputs, group * outputs + column, {inputs, 0}, {low, left - low}};
  }

  // Return the offset in the weight of a lane's filter, at channel 0 of its group; -1 for an idle lane.
  RL_INLINE long weight_of(const block& b, long lane, bool forward, long taps) const {
    if (lane % lanes >= b.gives[lane / lanes]) return -1;
    const long channel = b.first + lane / lanes * (together ? together * outputs : lanes) + lane % lanes;
    const long group = channel / outputs, place = channel % outputs;
    return (forward ? channel * inputs : group * inputs * outputs + place) * taps;
  }

  // Copy the block's channels of `count` pixels after `before` zero pixels, and fill with zeros up to `total` pixels.
  RL_INLINE void copy(const block& b, const float* from, long pixel, long before, long count, long total, float* to) const;
  RL_INLINE void results(const block& b, const tap_row* rows, long count, const depthwise_line& line, float* out) const;

  static constexpr bool reads_in_place(const block&, const image_strides&, const conv_shape&) { return false; }
  RL_INLINE void results_in_place(const block&, const tap_row*, long, const conv_shape&, long, float*) const {}

  RL_INLINE void emit(const block& b, const float* results, long row, long rows, epilogue emit) const {
    if (b.gives[0] == lanes || !b.gives[1]) return emit(results, row, rows, b.first, b.gives[0] + b.gives[1]);
    emit(results, row, rows, b.first, b.gives[0]);
    emit(results + lanes, row, rows, b.first + b.gives[0], b.gives[1]);
  }
};

constexpr long grouped_floats(const conv_shape& s, bool forward) {
  const depthwise_geometry g = forward ? depthwise_forward(s) : depthwise_backward(s);
  return depthwise_floats(g, s, group_channels(s, forward).pitch());
}
constexpr long grouped_scratch_bytes(const conv_shape& s, long threads) {
  return threads * grouped_floats(s, true) * (long)sizeof(float);
}
constexpr long grouped_input_scratch_bytes(const conv_shape& s, long threads) {
  return threads * grouped_floats(s, false) * (long)sizeof(float);
}

// Pack the weight [C, C / groups, kh, kw], contiguous, as [blocks][kh][kw][input channels of a group][NR], for the forward or
// for the gradient of the input, whose `inputs` are the output's channels. Called by all threads of a region, or by one thread
// outside.
inline void pack_groups(const float* weight, long groups, long inputs, long outputs, long taps, bool forward, float* packed) {
  const group_channels channels(groups, inputs, outputs);
  const long step = forward ? taps : outputs * taps;
  for (const long i : shared(channels.blocks())) {
    const group_channels::block block = channels.at(i);
    for (long lane = 0; lane < tile_columns; ++lane) {
      const long from = channels.weight_of(block, lane, forward, taps);
      float* to = packed + i * taps * channels.tap() + lane;
      for (long tap = 0; tap < taps; ++tap)
        for (long j = 0; j < channels.inputs; ++j, to += tile_columns) *to = from < 0 ? 0 : weight[from + j * step + tap];
    }
  }
}

// ---- rows ----------------------------------------------------------------------------------------------------------

RL_INLINE void group_channels::copy(const block& b, const float* from, long pixel, long before, long count, long total,
                                    float* to) const {
  const long step = pitch();
  if (before > total) before = total;
  if (count > total - before) count = total - before;
  __builtin_memset(to, 0, before * step * sizeof(float));
  to += before * step;
  from += b.from;
  if (!together || b.reads[0] == lanes) {
    const long wide = b.reads[0] + b.reads[1];
    for (long i = 0; i < count; ++i, from += pixel, to += step)
      for_each(wide, [&](auto lane, long c) { lane.store(to + c, lane.load(from + c)); });
  } else {
    for (long i = 0; i < count; ++i, from += pixel, to += step) {
      for_each(b.reads[0], [&](auto lane, long c) { lane.store(to + c, lane.load(from + c)); });
      for_each(b.reads[1], [&](auto lane, long c) { lane.store(to + lanes + c, lane.load(from + b.reads[0] + c)); });
    }
  }
  __builtin_memset(to, 0, (total - before - count) * step * sizeof(float));
}

// Reads for each lane channel j of the lane's own group: by a permutation if groups share a vector, else by a broadcast.
template <bool Shared> struct group_reader {
  vec<int32_t> pick;

  RL_INLINE vec<float> operator()(const float* at, int vector, long) const {
    return permute(load_bytes<vec<float>>(at + vector * lanes), pick);
  }
  RL_INLINE void advance() { pick += 1; }
};
template <> struct group_reader<false> {
  vec<int32_t> pick;

  RL_INLINE vec<float> operator()(const float* at, int, long j) const { return splat<vec<float>>(at[j]); }
  RL_INLINE void advance() {}
};

template <int Pixels, int Vectors, bool Shared>
__attribute__((noinline)) void group_tile(const tap_row* rows, long count, const depthwise_line& line, long depth,
                                          vec<int32_t> pick, long x, float* out) {
  vec<float> sum[Pixels][Vectors] = {};
  const long pixel = line.pixel;
  for (long i = 0; i < count; ++i) {
    const float *at = rows[i].at + line.first + x * pixel, *tap = rows[i].weight + line.weight;
    for (long k = 0; k < line.columns; ++k, at += line.column_step, tap += line.weight_step) {
      const float* weight = tap;
      group_reader<Shared> read = {pick};
      for (long j = 0; j < depth; ++j, weight += tile_columns, read.advance())
        RL_UNROLL for (int v = 0; v < Vectors; ++v) {
          const vec<float> factor = load_bytes<vec<float>>(weight + v * lanes);
          RL_UNROLL for (int p = 0; p < Pixels; ++p) sum[p][v] += read(at + p * pixel, v, j) * factor;
        }
    }
  }
  out += line.out + x * line.out_pixel;
  RL_UNROLL for (int p = 0; p < Pixels; ++p)
    RL_UNROLL for (int v = 0; v < Vectors; ++v) vector_lane{}.store(out + p * line.out_pixel + v * lanes, sum[p][v]);
}

template <int Vectors, bool Shared>
RL_INLINE void group_results(const tap_row* rows, long count, const depthwise_line& line, long depth, vec<int32_t> pick,
                             float* out) {
  each_tile_of_row(line.width, [&](auto pixels, long x) {
    group_tile<pixels.value, Vectors, Shared>(rows, count, line, depth, pick, x, out);
  });
}

// Rows of A for two groups, one in each vector of results: the second vector reads its channels `lanes` further.
template <int Rows> struct rows_of_two : rows_along<Rows> {
  using rows_along<Rows>::rows_along;
};
template <int Rows, class B> RL_INLINE void add_product(vec<float> (&sum)[Rows][2], rows_of_two<Rows>& a, B& b, int k) {
  const float* const at = b.read(k);
  const vec<float> b0 = load_bytes<vec<float>>(at), b1 = load_bytes<vec<float>>(at + lanes);
  RL_UNROLL for (int r = 0; r < Rows; ++r) {
    sum[r][0] += splat<vec<float>>(a.read(r, k)) * b0;
    sum[r][1] += splat<vec<float>>(a.read(r, k + lanes)) * b1;
  }
}

// A function that computes some pixels of a row, beginning at `x`.
using group_function = void (*)(const tap_row* rows, long count, const depthwise_line& line, long depth, vec<int32_t> pick,
                                long x, float* out);

// Compute two vectors of results of one group, or of two groups with one vector each (OfTwo).
template <int Pixels, bool OfTwo>
__attribute__((noinline)) void wide_group_tile(const tap_row* rows, long count, const depthwise_line& line, long depth,
                                               vec<int32_t>, long x, float* out) {
  vec<float> sum[Pixels][2] = {};
  for (long i = 0; i < count; ++i) {
    const float *at = rows[i].at + line.first + x * line.pixel, *weight = rows[i].weight + line.weight;
    for (long k = 0; k < line.columns; ++k, at += line.column_step, weight += line.weight_step) {
      panel_rows<float> panel = {weight};
      if constexpr (OfTwo) add_products(sum, rows_of_two<Pixels>(at, at, line.pixel), panel, depth);
      else add_products(sum, rows_along<Pixels>(at, at, line.pixel), panel, depth);
    }
  }
  out += line.out + x * line.out_pixel;
  RL_UNROLL for (int p = 0; p < Pixels; ++p)
    RL_UNROLL for (int v = 0; v < 2; ++v) vector_lane{}.store(out + p * line.out_pixel + v * lanes, sum[p][v]);
}

// Compute one vector that groups share, with three adjacent taps: a pixel's channels are permuted once for all taps that read
// it.
template <int Pixels, int Step>
__attribute__((noinline)) void three_tap_tile(const tap_row* rows, long count, const depthwise_line& line, long depth,
                                              vec<int32_t> pick, long x, float* out) {
  vec<float> sum[Pixels] = {};
  for (long i = 0; i < count; ++i) {
    const float *at = rows[i].at + line.first + x * line.pixel, *tap = rows[i].weight + line.weight;
    vec<int32_t> channel = pick;
    for (long j = 0; j < depth; ++j, tap += tile_columns, channel += 1) {
      vec<float> weight[3];
      RL_UNROLL for (int k = 0; k < 3; ++k) weight[k] = load_bytes<vec<float>>(tap + k * line.weight_step);
      const float* from = at;
      RL_UNROLL for (int q = 0; q < (Pixels - 1) * Step + 3; ++q, from += line.column_step) {
        const vec<float> value = permute(load_bytes<vec<float>>(from), channel);
        RL_UNROLL for (int k = 0; k < 3; ++k)
          if (q >= k && (q - k) % Step == 0 && (q - k) / Step < Pixels) sum[(q - k) / Step] += value * weight[k];
      }
    }
  }
  out += line.out + x * line.out_pixel;
  RL_UNROLL for (int p = 0; p < Pixels; ++p) vector_lane{}.store(out + p * line.out_pixel, sum[p]);
}

// Tables of tile functions, one for every number of pixels. Hidden visibility: every library has its own.
enum group_way { OF_ONE_GROUP, OF_TWO_GROUPS, THREE_TAPS, THREE_TAPS_BY_TWO };
#define RL_WIDE_GROUP_ADDRESS(pixels, two) wide_group_tile<pixels, two>,
#define RL_THREE_TAP_ADDRESS(pixels, step) three_tap_tile<pixels, step>,
__attribute__((visibility("hidden"))) RL_INLINE const group_function* group_tiles(group_way way) {
  static constexpr group_function tiles[][strip_rows] = {
      {RL_EACH_STRIP(RL_WIDE_GROUP_ADDRESS, false)}, {RL_EACH_STRIP(RL_WIDE_GROUP_ADDRESS, true)},
      {RL_EACH_STRIP(RL_THREE_TAP_ADDRESS, 1)}, {RL_EACH_STRIP(RL_THREE_TAP_ADDRESS, 2)}};
  return tiles[way];
}

// Compute a row in tiles of nearly equal size.
RL_INLINE void even_group_results(group_way way, const tap_row* rows, long count, const depthwise_line& line, long depth,
                                  vec<int32_t> pick, float* out) {
  const group_function* const tiles = group_tiles(way);
  const row_blocks blocks(line.width, strip_rows);
  for (long i = 0; i < blocks.count; ++i) {
    const row_block block = blocks.at(i);
    tiles[block.rows - 1](rows, count, line, depth, pick, block.first, out);
  }
}

RL_INLINE void group_channels::results(const block& b, const tap_row* rows, long count, const depthwise_line& line,
                                       float* out) const {
  alignas(64) int32_t first[lanes];
  for (long lane = 0; lane < lanes; ++lane) first[lane] = lane < together * outputs ? lane / outputs * inputs : 0;
  const vec<int32_t> pick = load_bytes<vec<int32_t>>(first);
  const int vectors = b.gives[1] ? 2 : 1;
  if (together <= 1 && vectors == 2)
    return even_group_results(together ? OF_TWO_GROUPS : OF_ONE_GROUP, rows, count, line, inputs, pick, out);
  if (!together) return group_results<1, false>(rows, count, line, inputs, pick, out);
  const long step = line.columns == 3 && line.column_step ? line.pixel / line.column_step : 0;
  if (step * line.column_step == line.pixel && (step == 1 || step == 2)) {
    depthwise_line own = line;
    for (int v = 0; v < vectors; ++v, own.first += lanes, own.weight += lanes, own.out += lanes)
      even_group_results(step == 1 ? THREE_TAPS : THREE_TAPS_BY_TWO, rows, count, own, inputs, pick, out);
    return;
  }
  if (vectors == 2) group_results<2, true>(rows, count, line, inputs, pick, out);
  else group_results<1, true>(rows, count, line, inputs, pick, out);
}

RL_EXTERN(void channelwise_images(const group_channels&, const float*, const image_strides&, const float*, const conv_shape&, bool,
                                 float*, epilogue))

// x is channels-last by strides; packed comes from pack_groups; scratch has grouped_scratch_bytes. Ends with a barrier.
RL_INLINE void conv2d_grouped(const float* x, const image_strides& at, const float* packed, const conv_shape& s, void* scratch,
                              epilogue emit) {
  channelwise_images(group_channels(s, true), x, at, packed, s, true, (float*)scratch, emit);
}

// grad is the gradient of the output, channels-last by strides; s is the convolution's shape. Ends with a barrier.
RL_INLINE void grouped_input_gradient(const float* grad, const image_strides& at, const float* packed, const conv_shape& s,
                                      void* scratch, epilogue emit) {
  channelwise_images(group_channels(s, false), grad, at, packed, s, false, (float*)scratch, emit);
}

}  // namespace rl
