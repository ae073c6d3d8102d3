// Quantized weights as panels of bytes, for products with many rows: the lanes of a vector hold four elements each of eight
// rows of W, so that sums over a part need no sums across lanes. A panel is unpacked on demand, for some rows of W and 512
// elements of each, so that it stays in the first-level cache.
#pragma once

#include <rushlight/byte_rows.h>
#include <rushlight/pack.h>

namespace rl {

constexpr int panel_columns = 8;     // rows of W in a panel: one per word of a vector
constexpr int panel_elements = 512;  // elements of each row in a panel
constexpr int vectors_of_tile = tile_columns / panel_columns, together = vectors_of_tile < 2 ? vectors_of_tile : 2;

// The 32 elements ("part") of eight rows of W.
template <class Layout> struct panel_part {
  part_unsigned integers[part_size / 4];
  quad_floats scales[Layout::scales], offsets;
};

// Transpose eight rows of eight 32-bit words: row i becomes word i of each.
RL_INLINE void transpose_words(part_unsigned* rows) {
  const quads lane = {0, 1, 2, 3, 4, 5, 6, 7};
  quads block[8];
  __builtin_memcpy(block, rows, sizeof block);
  RL_UNROLL for (int step = 1; step < 8; step *= 2) {
    const quads odd = (lane & step) != 0;
    const quads to_low = odd ? lane + (8 - step) : lane, to_high = odd ? lane + 8 : lane + step;
    RL_UNROLL for (int i = 0; i < 8; ++i) {
      if (i & step) continue;
      const quads low = block[i], high = block[i + step];
#ifdef __clang__
      RL_UNROLL for (int j = 0; j < 8; ++j) {
        block[i][j] = to_low[j] < 8 ? low[to_low[j]] : high[to_low[j] - 8];
        block[i + step][j] = to_high[j] < 8 ? low[to_high[j]] : high[to_high[j] - 8];
      }
#else
      block[i] = __builtin_shuffle(low, high, to_low);
      block[i + step] = __builtin_shuffle(low, high, to_high);
#endif
    }
  }
  __builtin_memcpy(rows, block, sizeof block);
}

// Unpack blocks of eight rows of W to parts that are `step` apart; rows from `columns` on repeat the last one.
template <class Layout>
__attribute__((noinline)) void pack_blocks(const uint8_t* w, long row_bytes, long columns, long blocks, panel_part<Layout>* out,
                                           long step) {
  constexpr int parts = Layout::elements / part_size;
  for (long block = 0; block < blocks; ++block, w += Layout::nbytes, out += parts * step) {
    for (int i = 0; i < panel_columns; ++i) {
      const auto put = [&](int part, auto integers, auto scale) __attribute__((always_inline)) {
        panel_part<Layout>& to = out[part * step];
        to.integers[i] = (part_unsigned)integers;
        for (int s = 0; s < Layout::scales; ++s) {
          if constexpr (same<decltype(scale), float>) to.scales[s][i] = scale;
          else to.scales[s][i] = scale[s * panel_columns / Layout::scales];
        }
      };
      Layout::each(w + (i < columns ? i : columns - 1) * row_bytes, put, [&](int first, auto offsets) __attribute__((always_inline)) {
        if constexpr (same<decltype(offsets), float>) out[first * step].offsets[i] = offsets * 8;
        else
          for (int part = 0; part < parts; ++part) out[part * step].offsets[i] = offsets[part];
      });
    }
    for (int part = 0; part < parts; ++part) transpose_words(out[part * step].integers);
  }
}

// Add to sums[r][v] the products of a part of a row of A with that part of eight rows of W, times the scale of the row's part.
template <class Layout, int Rows>
RL_INLINE void add_part(const panel_part<Layout>* w, const int8_t* const* rows, long at, const float* const* scales, long part,
                        quad_floats (&sums)[Rows][together]) {
  constexpr int steps = part_size / 4 / Layout::scales, most = steps_of(Layout::largest), run = steps < most ? steps : most;
  RL_UNROLL for (int s = 0; s < Layout::scales; ++s) {
    quads dots[Rows][together] = {};
    RL_UNROLL for (int first = s * steps; first < (s + 1) * steps; first += run) {
      few_products made[Rows][together] = {};
      RL_UNROLL for (int step = first; step < first + run; ++step) {
        part_unsigned size[together];
        RL_UNROLL for (int v = 0; v < together; ++v)
          size[v] = Layout::has_offset ? w[v].integers[step] : size_of((part_bytes)w[v].integers[step]);
        RL_UNROLL for (int r = 0; r < Rows; ++r) {
          const auto four = (part_bytes)(dwords{} + load_bytes<uint32_t>(rows[r] + at + 4 * step));
          RL_UNROLL for (int v = 0; v < together; ++v)
            add_products(made[r][v], size[v],
                         Layout::has_offset ? four : signed_like(four, (part_bytes)w[v].integers[step]));
        }
      }
      RL_UNROLL for (int r = 0; r < Rows; ++r)
        RL_UNROLL for (int v = 0; v < together; ++v) dots[r][v] += in_quads(made[r][v]);
    }
    RL_UNROLL for (int r = 0; r < Rows; ++r)
      RL_UNROLL for (int v = 0; v < together; ++v)
        sums[r][v] += __builtin_convertvector(dots[r][v], quad_floats) * (w[v].scales[s] * scales[r][part]);
  }
}

// Add to c[r][j] the products of `Rows` rows of A with panels of W that begin at `element`; rows from `rows` on repeat the last
// one.
template <class Layout, int Rows>
RL_INLINE void panel_tile(const byte_rows& a, long first, long rows, long element, long parts, const panel_part<Layout>* w,
                          float* c) {
  const int8_t* integers[Rows];
  const float *scales[Rows], *totals[Rows];
  quad_floats sums[Rows][together];
  RL_UNROLL for (int r = 0; r < Rows; ++r) {
    const long row = r < rows ? r : rows - 1;
    integers[r] = a.integers_at(first + row, element);
    scales[r] = a.scales_at(first + row, element);
    totals[r] = a.sums_at(first + row, element);
    RL_UNROLL for (int v = 0; v < together; ++v) sums[r][v] = load_bytes<quad_floats>(c + row * tile_columns + v * panel_columns);
  }
  for (long part = 0; part < parts; ++part, w += vectors_of_tile) {
    add_part<Layout, Rows>(w, integers, part * part_size, scales, part, sums);
    if constexpr (Layout::has_offset)
      RL_UNROLL for (int r = 0; r < Rows; ++r)
        RL_UNROLL for (int v = 0; v < together; ++v) sums[r][v] += w[v].offsets * totals[r][part];
  }
  RL_UNROLL for (int r = 0; r < Rows; ++r)
    RL_UNROLL for (int v = 0; v < together; ++v)
      if (r < rows) __builtin_memcpy(c + r * tile_columns + v * panel_columns, &sums[r][v], sizeof sums[r][v]);
}

// Compute c = the products of some rows of A with tile_columns rows of W, of which `columns` exist.
template <class Layout>
__attribute__((noinline)) void many_rows(const byte_rows& a, long first, long rows, const uint8_t* w, long row_bytes,
                                          long columns, float* c) {
  constexpr int tile = RL_LANES == 16 ? 4 : 2;
  alignas(64) panel_part<Layout> panel[panel_elements / part_size * vectors_of_tile];
  __builtin_memset(c, 0, rows * tile_columns * sizeof *c);
  for (long element = 0; element < a.depth; element += panel_elements) {
    const long depth = smallest(a.depth - element, (long)panel_elements), used = (columns + panel_columns - 1) / panel_columns;
    const uint8_t* const blocks = w + element / Layout::elements * Layout::nbytes;
    for (long v = 0; v < vectors_of_tile; ++v) {
      const long column = smallest(v, used - 1) * panel_columns;
      pack_blocks<Layout>(blocks + column * row_bytes, row_bytes, columns - column, depth / Layout::elements, panel + v,
                          vectors_of_tile);
    }
    for (long v = 0; v < used; v += together)
      for (long r = 0; r < rows; r += tile)
        panel_tile<Layout, tile>(a, first + r, smallest(rows - r, (long)tile), element, depth / part_size, panel + v,
                                 c + r * tile_columns + v * panel_columns);
  }
}

}  // namespace rl
