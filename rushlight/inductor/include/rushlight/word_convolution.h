// Convolutions of bfloat16, channels-last, as matrix products with sums in float: x is [images, height, width, channels], and
// weights are [outputs, kernel height, kernel width, channels]. They are convolutions of bytes with two channels for each one,
// whose panels hold pairs. Without tile registers, the gathered windows are multiplied as in word_gemm.h.
#pragma once

#include <rushlight/byte_convolution.h>

namespace rl {

// Return the shape of the convolution of bytes.
constexpr conv_shape in_bytes(conv_shape s) {
  s.channels *= (long)sizeof(bfloat16);
  return s;
}

// The bytes of a panel: words, and the initial sums for word_gemm.h, zeros.
constexpr long pair_panel_bytes(long depth) {
  return (byte_words(depth * (long)sizeof(bfloat16)) + 1) * tile_columns * (long)sizeof(int32_t);
}

constexpr long word_scratch_bytes(const conv_shape& s) { return byte_scratch_bytes(in_bytes(s)); }

// Pack a weight [outputs, depth]. Called by all threads of a parallel region.
inline void pack_word_layer(const bfloat16* weight, long depth, long outputs, bfloat16* packed) {
  for (const long panel : shared(byte_panels(outputs))) {
    bfloat16* const out = packed + panel * pair_panel_bytes(depth) / (long)sizeof(bfloat16);
    const long width = smallest(outputs - panel * tile_columns, (long)tile_columns);
    __builtin_memset((void*)out, 0, pair_panel_bytes(depth));
    pack_panel_words(weight + panel * tile_columns * depth, 1, depth, depth, width, out);
  }
}

// The epilogue gets output pixels and output channels. Called by all threads of a parallel region, and ends with a barrier;
// scratch: word_scratch_bytes(s) each.
void word_convolution(const conv_shape& s, const bfloat16* x, const bfloat16* packed, void* scratch, epilogue emit);

#ifndef RL_PREBUILT
// Multiply rows of a block by a panel without tile registers.
RL_INLINE void multiply_pairs(const char* rows, long row, row_block block, const bfloat16* panel, long depth, float* c) {
  const bfloat16* const a = (const bfloat16*)(rows + block.first * row);
  const long step = row / (long)sizeof(bfloat16);
  if (block.rows == 4) return word_tile<4>(a, step, panel, depth, c, read_ahead{});
  for (int r = 0; r < block.rows; ++r) word_tile<1>(a + r * step, step, panel, depth, c + r * tile_columns, read_ahead{});
}

RL_KERNEL void word_convolution_in_vectors(const conv_shape& s, const byte_input& in, const bfloat16* packed,
                                           const byte_scratch& own, const epilogue& emit) {
  const long rows = s.images * s.out_height() * s.out_width(), most = byte_block_rows(s), row = byte_row_bytes(s);
  const byte_tasks tasks((rows + most - 1) / most, s);
  long held = -1;
  for (const long task : shared(tasks.count())) {
    const long at = task / tasks.cuts, first = at * most, count = smallest(most, rows - first);
    if (at != held) gather_windows(s, in, 0, first, count, (uint8_t*)own.rest), held = at;
    const long from = task % tasks.cuts * tasks.share;
    for (long panel = from; panel < smallest(tasks.panels, from + tasks.share); ++panel) {
      const bfloat16* const weights = packed + panel * (row / byte_word + 1) * tile_columns * words<bfloat16>::size;
      for (long i = 0; i < count; i += 4) {
        alignas(64) float c[4 * tile_columns];
        const row_block block = {i, (int)smallest(4L, count - i)};
        multiply_pairs(own.rest, row, block, weights, row / (long)sizeof(bfloat16), c);
        emit(c, first + i, block.rows, panel * tile_columns, smallest(s.outputs - panel * tile_columns, (long)tile_columns));
      }
    }
  }
}

RL_KERNEL void word_convolution(const conv_shape& shape, const bfloat16* x, const bfloat16* packed, void* scratch, epilogue emit) {
  const conv_shape s = in_bytes(shape);
  const byte_input in = {(const uint8_t*)x, 0, 0};
  const byte_scratch own(s, scratch);
#ifdef RL_TILES
  if (s.images * s.out_height() * s.out_width() >= register_rows && has_tiles<bfloat16_pairs>())
    return convolve_in_tiles<bfloat16_pairs>(s, in, {(const char*)packed, pair_panel_bytes(shape.depth()), nullptr}, own, emit);
#endif
  word_convolution_in_vectors(s, in, packed, own, emit);
}
#endif  // RL_PREBUILT

}  // namespace rl
