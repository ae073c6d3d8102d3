// Convolution with stride 1 without gathering: the product of tile.h whose right operand is read where it lies.
//
// Planes get their zero border first. Then the values that one kernel tap meets at 32 positions in a row of the padded
// plane lie side by side, wherever those begin, so a tile needs only the offset of each tap of each channel. Positions run
// over whole padded rows; the few that hang over a row's end are computed and dropped.
#pragma once

#include <rushlight/conv.h>

#include "variant.h"

namespace rl {

constexpr int64_t padded_floats = 4 << 20;  // of images that are padded at a time, so that they stay in the caches
constexpr int small_tile_rows = tile_rows == 12 ? 8 : 4;

struct direct_shape {
  int64_t width, plane, positions, panels, depth, inputs, outputs, images_at_once;
};

static bool is_flat(const Convolution& c) {
  return c.kernel_height == 1 && c.kernel_width == 1 && !c.pad_height && !c.pad_width;
}

static direct_shape direct_shape_of(const Convolution& c) {
  direct_shape s;
  s.width = c.width + 2 * c.pad_width;
  s.plane = s.width * (c.height + 2 * c.pad_height);
  s.positions = (c.out_height - 1) * s.width + c.out_width;
  s.panels = (s.positions + tile_columns - 1) / tile_columns;
  s.inputs = c.channels / c.groups;
  s.outputs = c.outputs / c.groups;
  s.depth = s.inputs * c.kernel_height * c.kernel_width;
  s.images_at_once = padded_floats / (c.channels * s.plane);
  s.images_at_once = s.images_at_once < 1 ? 1 : s.images_at_once < c.images ? s.images_at_once : c.images;
  return s;
}

static bool goes_directly(const Convolution& c) {
  if (c.stride_height != 1 || c.stride_width != 1 || (c.groups > 1 && c.channels == c.groups)) return false;
  const direct_shape s = direct_shape_of(c);
  return s.positions >= tile_columns && 4 * c.out_width >= 3 * s.width && s.outputs >= small_tile_rows &&
         s.inputs * s.plane < 1 << 30;
}

static int64_t direct_scratch(const Convolution& c) {
  const direct_shape s = direct_shape_of(c);
  return (s.depth + (is_flat(c) ? 0 : s.images_at_once * c.channels * s.plane)) * (int64_t)sizeof(float) + 128;
}

// Row k of B lies at b + offsets[k].
struct rows_by_offset {
  const float* b;
  const int32_t* offsets;

  RL_INLINE const float* read(int k) const { return b + offsets[k]; }
  RL_INLINE void next() {}
  RL_INLINE void advance(long count) { offsets += count; }
};

// As tile.h's tile.
template <int Rows>
__attribute__((noinline)) static void offset_tile(const float* a, long a_row, rows_by_offset b, long depth, float* c,
                                                  bool accumulate) {
  vec<float> sum[Rows][2] = {};
  add_products(sum, rows_along<Rows>(a, a, a_row), b, depth);
  write_sums(sum, c, accumulate);
}

// Where parts of a panel go: `count` values from `from` on to pixel `to` of the result.
struct panel_segment {
  int64_t from, to, count;
};

static int find_segments(const Convolution& c, const direct_shape& s, int64_t first, panel_segment* segments) {
  int used = 0;
  for (int64_t j = 0; j < tile_columns;) {
    const int64_t row = (first + j) / s.width, column = (first + j) % s.width, left = tile_columns - j;
    const int64_t run = s.width - column < left ? s.width - column : left;
    const int64_t valid = c.out_width - column < run ? c.out_width - column : run;
    if (valid > 0 && row < c.out_height) segments[used++] = {j, row * c.out_width + column, valid};
    j += run;
  }
  return used;
}

template <int Rows>
static void direct_block(const Convolution& c, const direct_shape& s, const float* weight, const float* b,
                         const int32_t* offsets, const float* bias, const panel_segment* segments, int count, float* out) {
  alignas(64) float sums[Rows * tile_columns];
  const long parts = (s.depth + depth_block - 1) / depth_block;
  for (long part = 0; part < parts; ++part) {
    const long k = s.depth * part / parts, end = s.depth * (part + 1) / parts;
    offset_tile<Rows>(weight + k, s.depth, {b, offsets + k}, end - k, sums, part > 0);
  }
  const int64_t pixels = c.out_height * c.out_width;
  for (int r = 0; r < Rows; ++r) {
    float* row = sums + r * tile_columns;
    if (bias)
      for (int j = 0; j < tile_columns; ++j) row[j] += bias[r];
    for (int i = 0; i < count; ++i)
      __builtin_memcpy(out + r * pixels + segments[i].to, row + segments[i].from, segments[i].count * sizeof(float));
  }
}

// One panel of positions, and the outputs [first, last) of a group; full blocks, the last overlapping the one before.
template <int Rows>
static void direct_panel(const Convolution& c, const direct_shape& s, int64_t image, int64_t group, int64_t panel,
                         int64_t first, int64_t last, const float* planes, const int32_t* offsets) {
  panel_segment segments[tile_columns];
  const int64_t wanted = panel * tile_columns, end = s.positions - tile_columns, start = wanted < end ? wanted : end;
  const int count = find_segments(c, s, start, segments);
  for (int64_t output = first; output < last; output += Rows) {
    const int64_t at = (output + Rows <= s.outputs ? output : s.outputs - Rows) + group * s.outputs;
    direct_block<Rows>(c, s, c.weight + at * s.depth, planes + start, offsets, c.bias ? c.bias + at : nullptr, segments,
                       count, c.out + (image * c.outputs + at) * c.out_height * c.out_width);
  }
}

static void fill_offsets(const Convolution& c, const direct_shape& s, int32_t* offsets) {
  for (int64_t channel = 0; channel < s.inputs; ++channel)
    for (int64_t ky = 0; ky < c.kernel_height; ++ky)
      for (int64_t kx = 0; kx < c.kernel_width; ++kx)
        *offsets++ = (int32_t)(channel * s.plane + ky * c.dilation_height * s.width + kx * c.dilation_width);
}

template <int Rows> static void direct_images(const Convolution& c, const direct_shape& s, int64_t image, int64_t images,
                                              const float* planes, const int32_t* offsets) {
  const int64_t packs = images * c.groups * s.panels, blocks = (s.outputs + Rows - 1) / Rows;
  // Outputs are split only as far as the threads need it: those of one panel read the same values.
  const int64_t wanted = 1 + 4L * thread_count() / packs, share = (blocks + wanted - 1) / wanted;
  const int64_t splits = (blocks + share - 1) / share;
  for (const long task : shared(packs * splits)) {
    const int64_t split = task % splits, pack = task / splits, panel = pack % s.panels;
    const int64_t group = pack / s.panels % c.groups, local = pack / s.panels / c.groups;
    const int64_t first = split * share * Rows, end = (split + 1) * share * Rows;
    direct_panel<Rows>(c, s, image + local, group, panel, first, end < s.outputs ? end : s.outputs,
                       planes + (local * c.channels + group * s.inputs) * s.plane, offsets);
  }
}

static void direct_convolution(Convolution c) {
  if (is_flat(c)) {  // the rows of an image are one
    c.width *= c.height, c.out_width *= c.out_height;
    c.height = c.out_height = 1;
  }
  const direct_shape s = direct_shape_of(c);
  const conv_shape padding = {c.images, c.channels, c.height, c.width, 0, 0, 0, 1, 1, c.pad_height, c.pad_width, 1, 1, 1};
  int32_t* offsets = (int32_t*)c.scratch;
  float* padded = (float*)((char*)c.scratch + (s.depth * sizeof(int32_t) + 63) / 64 * 64);
#pragma omp single
  fill_offsets(c, s, offsets);
  const bool fits = s.outputs % tile_rows == 0 || s.outputs % small_tile_rows != 0;
  for (int64_t image = 0; image < c.images; image += s.images_at_once) {
    const int64_t left = c.images - image, images = left < s.images_at_once ? left : s.images_at_once;
    const float* planes = c.x + image * c.channels * s.plane;
    if (!is_flat(c)) {
      planes = padded;
      for (const long plane : shared(images * c.channels))
        pad_plane(padding, c.x + (image * c.channels + plane) * c.height * c.width, padded + plane * s.plane);
    }
    if (fits && s.outputs >= tile_rows) direct_images<tile_rows>(c, s, image, images, planes, offsets);
    else direct_images<small_tile_rows>(c, s, image, images, planes, offsets);
  }
}

}  // namespace rl
