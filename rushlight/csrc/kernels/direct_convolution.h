// Convolution without gathering windows: the product of tile.h whose right operand is read where it lies.
//
// Volumes get their border of zeros first. Where windows step by more than one, each volume is taken apart into phases: the
// elements whose coordinates have the same remainder by the step (Shi et al. 2016 call the inverse a pixel shuffle). Then the
// values that one tap of the kernel meets at 32 positions in a row of a padded plane lie side by side, wherever those begin,
// so a tile needs only the offset of each tap of each channel. Positions run over whole padded rows; the few that hang over
// a row's end are computed and dropped.
//
// The gradient of the input (a transposed convolution) is calculated by the same passes: results whose coordinates have the
// same remainder by the step read the same taps of the result's gradient, so each such phase of the results is one pass.
#pragma once

#include <rushlight/conv.h>

#include "variant.h"

namespace rl {

constexpr int64_t padded_floats = 4 << 20;  // of images that are padded at a time, so that they stay in the caches
constexpr double least_direct_use = 0.6;    // of the calculated positions; with fewer of them, windows are gathered
constexpr int64_t gathered_floats = 1 << 24;  // of the windows of an image, at most
constexpr int small_tile_rows = tile_rows == 12 ? 8 : 4;

// One dimension of a convolution.
struct conv_axis {
  int64_t size, kernel, stride, pad, dilation, out;

  RL_INLINE int64_t reach() const { return dilation * (kernel - 1) + 1; }
};
struct conv_axes {
  conv_axis depth, height, width;
};
static conv_axes axes_of(const Convolution& c) {
  return {{c.depth, c.kernel_depth, c.stride_depth, c.pad_depth, c.dilation_depth, c.out_depth},
          {c.height, c.kernel_height, c.stride_height, c.pad_height, c.dilation_height, c.out_height},
          {c.width, c.kernel_width, c.stride_width, c.pad_width, c.dilation_width, c.out_width}};
}

// How one dimension of what is read lies in scratch memory: element i of phase p is element i * step + p - before of `size`,
// or zero.
struct padded_axis {
  int64_t size, before, length, step, phases;

  RL_INLINE bool is_whole() const { return step == 1 && length == size; }
};
static padded_axis padded_forward(const conv_axis& a) {
  return {a.size, a.pad, a.out + (a.reach() - 1) / a.stride, a.stride, a.stride < a.reach() ? a.stride : a.reach()};
}
static padded_axis padded_backward(const conv_axis& a) {
  const int64_t low = (a.reach() - 1) / a.stride - a.pad / a.stride, before = low > 0 ? low : 0;
  const int64_t last = (a.size - 1 + a.pad) / a.stride, after = last >= a.out ? last - a.out + 1 : 0;
  return {a.out, before, before + a.out + after, 1, 1};
}

// What a convolution reads, [images, channels, phases, depth, height, width] after padding.
struct padded_volumes {
  const float* x;
  int64_t images, channels;
  padded_axis depth, height, width;

  RL_INLINE int64_t plane() const { return height.length * width.length; }
  RL_INLINE int64_t volume() const { return depth.length * plane(); }
  RL_INLINE int64_t phases() const { return depth.phases * height.phases * width.phases; }
  RL_INLINE int64_t channel() const { return phases() * volume(); }
  // Whether it can be read where it lies.
  RL_INLINE bool is_whole() const { return depth.is_whole() && height.is_whole() && width.is_whole(); }
  RL_INLINE int64_t images_at_once() const {
    const int64_t fit = padded_floats / (channels * channel());
    return fit < 1 ? 1 : fit < images ? fit : images;
  }
  RL_INLINE int64_t floats() const { return images_at_once() * channels * channel() + tile_columns; }
  // Where a tap finds the value for position 0 along each axis, `tap` being its distance from the window's first.
  RL_INLINE int64_t offset(int64_t down, int64_t along, int64_t across) const {
    const int64_t phase = (down % depth.step * height.phases + along % height.step) * width.phases + across % width.step;
    return phase * volume() + down / depth.step * plane() + along / height.step * width.length + across / width.step;
  }
};

static padded_volumes volumes_forward(const Convolution& c) {
  const conv_axes a = axes_of(c);
  return {c.x, c.images, c.channels, padded_forward(a.depth), padded_forward(a.height), padded_forward(a.width)};
}
static padded_volumes volumes_backward(const Convolution& c, const float* grad) {
  const conv_axes a = axes_of(c);
  return {grad, c.images, c.outputs, padded_backward(a.depth), padded_backward(a.height), padded_backward(a.width)};
}

// One row of a padded volume.
static void pad_row(const padded_axis& w, const float* from, int64_t phase, float* to) {
  const int64_t low = ceil_div(w.before - phase, w.step), high = ceil_div(w.size + w.before - phase, w.step);
  const int64_t first = low < 0 ? 0 : low < w.length ? low : w.length;
  const int64_t last = high < first ? first : high < w.length ? high : w.length;
  __builtin_memset(to, 0, first * sizeof(float));
  const float* source = from + first * w.step + phase - w.before;
  if (w.step == 1) __builtin_memcpy(to + first, source, (last - first) * sizeof(float));
  else copy_span(source, w.step, to + first, (int)(last - first));
  __builtin_memset(to + last, 0, (w.length - last) * sizeof(float));
}

// `images` images from number `image` on, taken apart and padded. Shared by all threads; ends with a barrier.
static void pad_volumes(const padded_volumes& v, int64_t image, int64_t images, float* out) {
  const int64_t size = v.depth.size * v.height.size * v.width.size;
  for (const long task : shared(images * v.channels * v.phases() * v.depth.length)) {
    const int64_t layer = task % v.depth.length, part = task / v.depth.length, phase = part % v.phases();
    const int64_t across = phase % v.width.phases, along = phase / v.width.phases % v.height.phases;
    const int64_t z = layer * v.depth.step + phase / v.width.phases / v.height.phases - v.depth.before;
    const float* from = v.x + (image * v.channels + part / v.phases()) * size + z * v.height.size * v.width.size;
    float* to = out + task * v.plane();
    for (int64_t row = 0; row < v.height.length; ++row, to += v.width.length) {
      const int64_t y = row * v.height.step + along - v.height.before;
      if (z < 0 || z >= v.depth.size || y < 0 || y >= v.height.size) __builtin_memset(to, 0, v.width.length * sizeof(float));
      else pad_row(v.width, from + y * v.width.size, across, to);
    }
  }
}

// ---- passes --------------------------------------------------------------------------------------------------------

// Results that read the same taps. Weights are [groups, outputs, depth]; position 0 reads element offsets[k] of its group's
// channels for k < depth. Steps are those of the results, of which `out` is the first.
struct direct_pass {
  int64_t groups, inputs, outputs, depth;  // channels of a group, and taps of all that it reads
  const float *weight, *bias;
  const int32_t* offsets;
  int64_t layers, rows, columns;
  float* out;
  int64_t channel_step, layer_step, row_step, column_step;
};

// Positions go by vectors. Where rows are whole vectors, each begins at a row's vector; else they run on over whole padded rows,
// and those past the end of a row are not stored.
struct position_vectors {
  int64_t width, rows, columns, in_row, count;  // in_row: 0 where vectors run on

  position_vectors(const direct_pass& p, int64_t width) : width(width), rows(p.rows), columns(p.columns), in_row(0) {
    count = ((rows - 1) * width + columns + lanes - 1) / lanes;
    const int64_t apart = (columns + lanes - 1) / lanes;
    if (columns < lanes || rows * apart > count) return;
    in_row = apart, count = rows * apart;
  }

  // The first position of vector i; the last vectors overlap those before.
  RL_INLINE int64_t at(int64_t i) const {
    if (i >= count) i = count - 1;
    if (in_row) return i / in_row * width + smallest(i % in_row * lanes, columns - lanes);
    const int64_t last = (rows - 1) * width + columns - lanes;
    return last < 0 ? i * lanes : smallest(i * lanes, last);
  }
};

// Row k of B lies at first + offsets[k] and at second + offsets[k], a vector each.
struct rows_by_offset {
  const float *first, *second;
  const int32_t* offsets;

  RL_INLINE void next() {}
  RL_INLINE void advance(long count) { offsets += count; }
};
template <int Rows, class A> RL_INLINE void add_product(vec<float> (&sum)[Rows][2], A& a, rows_by_offset& b, int k) {
  const int32_t offset = b.offsets[k];
  const vec<float> b0 = load_bytes<vec<float>>(b.first + offset), b1 = load_bytes<vec<float>>(b.second + offset);
  RL_UNROLL for (int r = 0; r < Rows; ++r) {
    const vec<float> x = splat<vec<float>>(a.read(r, k));
    sum[r][0] += x * b0;
    sum[r][1] += x * b1;
    RL_SUMS_NOW(sum[r], x, b0, b1);
  }
}

// c[r][v] (=, or +=) the products of weights `a` with the values at b[v] + offsets[k].
template <int Rows, int Vectors>
__attribute__((noinline)) static void offset_tile(const float* a, long a_row, const float* const* b, const int32_t* offsets,
                                                  long depth, vec<float> (*c)[Vectors], bool accumulate) {
  vec<float> sum[Rows][Vectors] = {};
  if constexpr (Vectors == 2) {
    rows_by_offset by_offset = {b[0], b[1], offsets};
    add_products(sum, rows_along<Rows>(a, a, a_row), by_offset, depth);
  } else {
    RL_ROLLED for (long k = 0; k < depth; ++k) {
      vec<float> value[Vectors];
      RL_UNROLL for (int v = 0; v < Vectors; ++v) value[v] = load_bytes<vec<float>>(b[v] + offsets[k]);
      RL_UNROLL for (int r = 0; r < Rows; ++r) {
        const vec<float> x = splat<vec<float>>(a[r * a_row + k]);
        RL_UNROLL for (int v = 0; v < Vectors; ++v) sum[r][v] += x * value[v];
      }
    }
  }
  RL_UNROLL for (int r = 0; r < Rows; ++r)
    RL_UNROLL for (int v = 0; v < Vectors; ++v) c[r][v] = accumulate ? c[r][v] + sum[r][v] : sum[r][v];
}

// A vector of positions: where it begins, and where its results go if they lie side by side.
struct stored_positions {
  int64_t first, to;
  bool together;
};
static stored_positions place_of(const direct_pass& p, int64_t width, int64_t first) {
  const int64_t row = first / width, column = first % width;
  return {first, row * p.row_step + column, p.column_step == 1 && column + lanes <= p.columns && row < p.rows};
}

// Stores those of a vector of positions that are results, one by one; `out` is that of position 0.
static void store_apart(const direct_pass& p, int64_t width, int64_t first, vec<float> values, float* out) {
  alignas(64) float value[lanes];
  __builtin_memcpy(value, &values, sizeof values);
  for (int64_t i = 0, run; i < lanes; i += run) {
    const int64_t y = (first + i) / width, x = (first + i) % width;
    run = smallest(width - x, lanes - i);
    const int64_t valid = y < p.rows ? smallest(p.columns - x, run) : 0;
    float* to = out + y * p.row_step + x * p.column_step;
    for (int64_t j = 0; j < valid; ++j) to[j * p.column_step] = value[i + j];
  }
}

template <int Rows, int Vectors>
static void direct_block(const direct_pass& p, int64_t width, const stored_positions* at, const float* weight,
                         const float* plane, const float* bias, float* out) {
  vec<float> sums[Rows][Vectors];
  const float* b[Vectors];
  for (int v = 0; v < Vectors; ++v) b[v] = plane + at[v].first;
  const long parts = p.depth > depth_block ? (p.depth + depth_block - 1) / depth_block : 1;
  for (long part = 0; part < parts; ++part) {
    const long k = p.depth * part / parts, end = p.depth * (part + 1) / parts;
    offset_tile<Rows, Vectors>(weight + k, p.depth, b, p.offsets + k, end - k, sums, part > 0);
  }
  for (int r = 0; r < Rows; ++r, out += p.channel_step) {
    const vec<float> shift = splat<vec<float>>(bias ? bias[r] : 0.0f);
    for (int v = 0; v < Vectors; ++v) {
      if (at[v].together) vector_lane{}.store(out + at[v].to, sums[r][v] + shift);
      else store_apart(p, width, at[v].first, sums[r][v] + shift, out);
    }
  }
}

// `images` images whose padded volumes begin at `planes`. Blocks of outputs are full, the last overlapping the one before.
template <int Rows, int Vectors>
static void direct_images(const direct_pass& p, const padded_volumes& v, int64_t image, int64_t images, const float* planes) {
  const position_vectors positions(p, v.width.length);
  const int64_t panels = (positions.count + Vectors - 1) / Vectors, packs = images * p.layers * p.groups * panels;
  const int64_t blocks = (p.outputs + Rows - 1) / Rows;
  // Outputs are split only as far as the threads need it: those of one panel read the same values.
  const int64_t wanted = 1 + 4L * thread_count() / packs, share = (blocks + wanted - 1) / wanted;
  const int64_t splits = (blocks + share - 1) / share;
  for (const long task : shared(packs * splits)) {
    const int64_t split = task % splits, pack = task / splits, panel = pack % panels, layer = pack / panels % p.layers;
    const int64_t group = pack / panels / p.layers % p.groups, local = pack / panels / p.layers / p.groups;
    const float* plane = planes + (local * v.channels + group * p.inputs) * v.channel() + layer * v.plane();
    float* out = p.out + ((image + local) * p.groups + group) * p.outputs * p.channel_step + layer * p.layer_step;
    stored_positions at[Vectors];
    for (int i = 0; i < Vectors; ++i) at[i] = place_of(p, v.width.length, positions.at(panel * Vectors + i));
    for (int64_t block = split * share; block < smallest((split + 1) * share, blocks); ++block) {
      const int64_t own = smallest(block * Rows, p.outputs - Rows), row = own + group * p.outputs;
      direct_block<Rows, Vectors>(p, v.width.length, at, p.weight + row * p.depth, plane,
                                  p.bias ? p.bias + row : nullptr, out + own * p.channel_step);
    }
  }
}

static void run_pass(const direct_pass& p, const padded_volumes& v, int64_t image, int64_t images, const float* planes) {
  if (p.layers <= 0 || p.rows <= 0 || p.columns <= 0) return;
  using images_function = decltype(&direct_images<1, 8>);
  constexpr struct {
    int rows;
    images_function run;
  } ways[] = {{tile_rows, direct_images<tile_rows, 2>}, {tile_rows - 1, direct_images<tile_rows - 1, 2>},
              {small_tile_rows, direct_images<small_tile_rows, 2>}, {4, direct_images<4, 2>}, {2, direct_images<2, 4>}};
  images_function run = direct_images<1, 8>;
  int64_t least = 2 * p.outputs;  // rows of all blocks, and one more for each; blocks may overlap, but have rows enough
  for (const auto& way : ways) {
    const int64_t cost = (p.outputs + way.rows - 1) / way.rows * (way.rows + 1);
    if (p.outputs >= way.rows && cost < least) least = cost, run = way.run;
  }
  run(p, v, image, images, planes);
}

// Runs passes over all images; those that need it are padded a few at a time, into `padded`.
template <class F> static void each_padded(const padded_volumes& v, bool pads, float* padded, const F& run) {
  const int64_t at_once = pads ? v.images_at_once() : v.images;
  for (int64_t image = 0; image < v.images; image += at_once) {
    const int64_t left = v.images - image, images = left < at_once ? left : at_once;
    if (pads) pad_volumes(v, image, images, padded);
    run(image, images, pads ? padded : v.x + image * v.channels * v.channel());
  }
}

// The part of the calculated positions that are results.
static double direct_use(int64_t rows, int64_t columns, int64_t width) {
  const int64_t positions = (rows - 1) * width + columns, panels = (positions + tile_columns - 1) / tile_columns;
  return rows <= 0 || columns <= 0 ? 1 : (double)(rows * columns) / (double)(panels * tile_columns);
}

constexpr int64_t in_whole_units(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// ---- the convolution -----------------------------------------------------------------------------------------------

static bool is_flat(const Convolution& c) {
  return c.kernel_depth == 1 && c.kernel_height == 1 && c.kernel_width == 1 && c.stride_depth == 1 && c.stride_height == 1 &&
         c.stride_width == 1 && !c.pad_depth && !c.pad_height && !c.pad_width;
}

// With a kernel of one tap the rows of a volume are one.
static Convolution flattened(Convolution c) {
  if (!is_flat(c)) return c;
  c.width *= c.height * c.depth, c.out_width *= c.out_height * c.out_depth;
  c.depth = c.height = c.out_depth = c.out_height = 1;
  return c;
}

static bool is_image(const Convolution& c) { return c.depth == 1 && c.kernel_depth == 1 && !c.pad_depth; }

static bool goes_directly(const Convolution& given) {
  const Convolution c = flattened(given);
  const padded_volumes v = volumes_forward(c);
  const int64_t taps = c.kernel_depth * c.kernel_height * c.kernel_width;
  if (c.channels / c.groups * v.channel() >= 1 << 30) return false;
  if (is_image(c) && ((c.groups > 1 && c.channels == c.groups) || c.outputs / c.groups < small_tile_rows)) return false;
  if (!is_image(c) && c.channels * taps * c.out_depth * c.out_height * c.out_width > gathered_floats) return true;
  return direct_use(c.out_height, c.out_width, v.width.length) >= least_direct_use;
}

static bool pads_forward(const Convolution& c, const padded_volumes& v) {
  return !v.is_whole() || (c.out_height - 1) * v.width.length + c.out_width < lanes;
}

static int64_t direct_scratch(const Convolution& given) {
  const Convolution c = flattened(given);
  const padded_volumes v = volumes_forward(c);
  const int64_t depth = c.channels / c.groups * c.kernel_depth * c.kernel_height * c.kernel_width;
  return in_whole_units(depth * (int64_t)sizeof(int32_t)) + (pads_forward(c, v) ? v.floats() * (int64_t)sizeof(float) : 0);
}

static void fill_offsets(const Convolution& c, const padded_volumes& v, int32_t* offsets) {
  for (int64_t channel = 0; channel < c.channels / c.groups; ++channel)
    for (int64_t kz = 0; kz < c.kernel_depth; ++kz)
      for (int64_t ky = 0; ky < c.kernel_height; ++ky)
        for (int64_t kx = 0; kx < c.kernel_width; ++kx)
          *offsets++ = (int32_t)(channel * v.channel() + v.offset(kz * c.dilation_depth, ky * c.dilation_height,
                                                                   kx * c.dilation_width));
}

static void direct_convolution(const Convolution& given) {
  const Convolution c = flattened(given);
  const padded_volumes v = volumes_forward(c);
  const int64_t inputs = c.channels / c.groups, depth = inputs * c.kernel_depth * c.kernel_height * c.kernel_width;
  int32_t* offsets = (int32_t*)c.scratch;
  float* padded = (float*)((char*)c.scratch + in_whole_units(depth * (int64_t)sizeof(int32_t)));
  const int64_t layer = c.out_height * c.out_width;
  const direct_pass pass = {c.groups, inputs, c.outputs / c.groups, depth, c.weight, c.bias, offsets, c.out_depth,
                            c.out_height, c.out_width, c.out, c.out_depth * layer, layer, c.out_width, 1};
#pragma omp single
  fill_offsets(c, v, offsets);
  each_padded(v, pads_forward(c, v), padded, [&](int64_t image, int64_t images, const float* planes) {
    run_pass(pass, v, image, images, planes);
  });
}

// ---- the gradient of the input -------------------------------------------------------------------------------------

// Results of one remainder along an axis: `count` of them, the first at `first`, which is position `start` of the padded
// gradient before taps' distances are taken off. Taps are numbers `tap`, `tap` + `tap_step`, ...; the first is `away` positions
// back, each further one `apart` more.
struct phase_axis {
  int64_t first, count, start, taps, tap, tap_step, away, apart;
};

static phase_axis phase_of(const conv_axis& a, const padded_axis& p, int64_t remainder) {
  phase_axis found = {0, 0, 0, 0, 0, 1, 0, 0};
  const int64_t position = ceil_div(a.pad - remainder, a.stride), first = position * a.stride + remainder - a.pad;
  found.first = first;
  found.count = first < a.size ? (a.size - 1 - first) / a.stride + 1 : 0;
  found.start = position + p.before;
  for (int64_t tap = 0; tap < a.kernel; ++tap) {
    if (tap * a.dilation % a.stride != remainder) continue;
    if (found.taps == 0) found.tap = tap, found.away = (tap * a.dilation - remainder) / a.stride;
    if (found.taps == 1) {
      found.tap_step = tap - found.tap;
      found.apart = (tap * a.dilation - remainder) / a.stride - found.away;
    }
    ++found.taps;
  }
  return found;
}

// The phase of all three axes, and the part of the packed weight and of the offsets that belongs to it.
struct gradient_pass {
  phase_axis depth, height, width;
  int64_t taps_before;

  RL_INLINE int64_t taps() const { return depth.taps * height.taps * width.taps; }
};

// body(pass) for all remainders.
template <class F> static void each_gradient_pass(const Convolution& c, const padded_volumes& v, const F& body) {
  const conv_axes a = axes_of(c);
  int64_t before = 0;
  for (int64_t z = 0; z < c.stride_depth; ++z)
    for (int64_t y = 0; y < c.stride_height; ++y)
      for (int64_t x = 0; x < c.stride_width; ++x) {
        const gradient_pass pass = {phase_of(a.depth, v.depth, z), phase_of(a.height, v.height, y),
                                    phase_of(a.width, v.width, x), before};
        before += pass.taps();
        body(pass);
      }
}

// Calls body(number, tap of the kernel, offset) for the taps of a pass.
template <class F> static void each_tap(const Convolution& c, const padded_volumes& v, const gradient_pass& p, const F& body) {
  int64_t number = 0;
  for (int64_t i = 0; i < p.depth.taps; ++i)
    for (int64_t j = 0; j < p.height.taps; ++j)
      for (int64_t k = 0; k < p.width.taps; ++k) {
        const int64_t kz = p.depth.tap + i * p.depth.tap_step, ky = p.height.tap + j * p.height.tap_step;
        const int64_t offset = v.offset(p.depth.start - p.depth.away - i * p.depth.apart,
                                        p.height.start - p.height.away - j * p.height.apart,
                                        p.width.start - p.width.away - k * p.width.apart);
        body(number++, (kz * c.kernel_height + ky) * c.kernel_width + p.width.tap + k * p.width.tap_step, offset);
      }
}

constexpr int64_t packed_outputs = 16;  // whose taps are written side by side, a line of the caches each

// The weight as [passes][channels][outputs / groups][taps]. Shared by all threads.
static void pack_gradient_weight(const Convolution& c, const padded_volumes& v, float* packed) {
  const int64_t taps = c.kernel_depth * c.kernel_height * c.kernel_width, inputs = c.channels / c.groups;
  const int64_t outputs = c.outputs / c.groups, blocks = (outputs + packed_outputs - 1) / packed_outputs;
  for (const long task : shared(c.groups * blocks)) {
    const int64_t group = task / blocks, first = task % blocks * packed_outputs;
    const int64_t last = smallest(first + packed_outputs, outputs);
    each_gradient_pass(c, v, [&](const gradient_pass& p) {
      each_tap(c, v, p, [&](int64_t number, int64_t tap, int64_t) {
        for (int64_t i = 0; i < inputs; ++i) {
          float* to = packed + (c.channels * p.taps_before + (group * inputs + i) * p.taps()) * outputs + number;
          for (int64_t o = first; o < last; ++o)
            to[o * p.taps()] = c.weight[((group * outputs + o) * inputs + i) * taps + tap];
        }
      });
    });
  }
}

static void fill_gradient_offsets(const Convolution& c, const padded_volumes& v, int32_t* offsets) {
  const int64_t outputs = c.outputs / c.groups;
  each_gradient_pass(c, v, [&](const gradient_pass& p) {
    each_tap(c, v, p, [&](int64_t number, int64_t, int64_t offset) {
      int32_t* to = offsets + p.taps_before * outputs + number;
      for (int64_t o = 0; o < outputs; ++o) to[o * p.taps()] = (int32_t)(o * v.channel() + offset);
    });
  });
}

static int64_t count_of_taps(const Convolution& c) {
  return c.kernel_depth * c.kernel_height * c.kernel_width * (c.outputs / c.groups);
}

static bool gradient_goes_directly(const Convolution& c) {
  const padded_volumes v = volumes_backward(c, nullptr);
  if (c.outputs / c.groups * v.channel() >= 1 << 30) return false;
  if (c.channels * count_of_taps(c) / (c.outputs / c.groups) * c.out_depth * c.out_height * c.out_width > gathered_floats)
    return true;
  const int64_t rows = c.height / c.stride_height, columns = c.width / c.stride_width;
  return direct_use(rows, columns, v.width.length) >= least_direct_use;
}

static int64_t direct_gradient_scratch(const Convolution& c) {
  const padded_volumes v = volumes_backward(c, nullptr);
  return in_whole_units(c.channels * count_of_taps(c) * (int64_t)sizeof(float)) +
         in_whole_units(count_of_taps(c) * (int64_t)sizeof(int32_t)) + v.floats() * (int64_t)sizeof(float);
}

static void direct_gradient(const Convolution& c, const float* grad, float* to_x) {
  const padded_volumes v = volumes_backward(c, grad);
  float* weight = (float*)c.scratch;
  int32_t* offsets = (int32_t*)((char*)weight + in_whole_units(c.channels * count_of_taps(c) * (int64_t)sizeof(float)));
  float* padded = (float*)((char*)offsets + in_whole_units(count_of_taps(c) * (int64_t)sizeof(int32_t)));
  const int64_t outputs = c.outputs / c.groups;
#pragma omp single
  fill_gradient_offsets(c, v, offsets);
  pack_gradient_weight(c, v, weight);
  const int64_t layer = c.height * c.width;
  each_padded(v, true, padded, [&](int64_t image, int64_t images, const float* planes) {
    each_gradient_pass(c, v, [&](const gradient_pass& p) {
      const direct_pass pass = {c.groups, outputs, c.channels / c.groups, p.taps() * outputs,
                                weight + c.channels * p.taps_before * outputs, c.bias, offsets + p.taps_before * outputs,
                                p.depth.count, p.height.count, p.width.count,
                                to_x + p.depth.first * layer + p.height.first * c.width + p.width.first, c.depth * layer,
                                c.stride_depth * layer, c.stride_height * c.width, c.stride_width};
      run_pass(pass, v, image, images, planes);
    });
  });
}

}  // namespace rl
