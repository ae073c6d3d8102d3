// Convolution over volumes (images with a depth), fp32, row-major [N, C, D, H, W], and the gradient of its input. Lanes go
// along the positions of a row: it is for few output channels, which would fill vectors of channels badly. It is the product of
// tile.h with the right operand read in place.
//
// Volumes first get their border of zeros. If windows step by more than one, each volume is split into phases: the elements
// whose coordinates have the same remainder by the step. Then the values that one tap of the kernel reads at adjacent positions
// are contiguous, so a tile needs only the offset of each tap of each channel. Vectors of positions run over whole padded rows;
// results beyond a row's end are computed and dropped.
//
// The gradient of the input (a transposed convolution) uses the same passes: elements whose coordinates have the same remainder
// by the step read the same taps of the results' gradient, so each such phase is one pass, and phases along a row are
// interleaved.
//
// Rows of the epilogue (epilogue.h) are image * outputs + output, its columns are elements of a volume.
#pragma once

#include <rushlight/epilogue.h>
#include <rushlight/volume_shape.h>

namespace rl {

// x [N, C, D, H, W] and weight [O, C / groups, kd, kh, kw], both contiguous. scratch: volume_scratch_bytes, aligned to 64.
// Called by all threads of a parallel region; ends with a barrier.
void convolve_volumes(const float* x, const float* weight, const volume_shape& s, void* scratch, epilogue emit);

// The same for the results' gradient [N, O, ...]; packed: pack_volume_gradient's. Strides along a row are at most
// most_interleaved.
void volume_input_gradient(const float* grad, const float* packed, const volume_shape& s, void* scratch, epilogue emit);

// Packs the weight [O, C / groups, taps] as [phases][C][O / groups][taps of the phase]. Called by all threads of a region, or
// by one.
void pack_volume_gradient(const float* weight, const volume_shape& s, float* packed);

#ifndef RL_PREBUILT
// ---- passes --------------------------------------------------------------------------------------------------------

// A thread's table of offsets; it is filled at the thread's first task: see parallel.h.
struct volume_offsets {
  const volume_shape& s;
  long* at;
  bool forward, found = false;

  void find(const padded_volumes& v);
};

// The taps that the results of one phase along a row read: weights [groups * outputs][depth], and offsets for k < depth.
struct volume_taps {
  const float* weight;
  const long* offsets;
  long depth;
};

// The positions of one dimension among the results: `count` positions, the first at `first`, `step` apart.
struct volume_results {
  long first, step, count, size;
};

// Positions along depth, height and width that read the same taps, but for the phases along the width, which are interleaved:
// position q of the width is `phases` results from q * phases + width.first on, of which some may lie outside.
struct volume_pass {
  long groups, inputs, outputs;  // channels of a group
  volume_results depth, height, width;
  long phases;
  const volume_taps* taps;
};

// Positions go by vectors. Where rows are whole vectors, each begins at one of a row; else they run on over whole padded rows.
struct position_vectors {
  long width, columns, in_row, count, last;  // in_row: 0 where vectors run on

  RL_INLINE position_vectors(const volume_pass& p, long width) : width(width), columns(p.width.count), in_row(0) {
    const long rows = p.height.count, all = (rows - 1) * width + columns, apart = (columns + lanes - 1) / lanes;
    count = (all + lanes - 1) / lanes, last = all - lanes;
    if (columns >= lanes && rows * apart <= count) in_row = apart, count = rows * apart;
  }

  // The first position of vector i; the last ones overlap those before.
  RL_INLINE long at(long i) const {
    i = smallest(i, count - 1);
    if (in_row) return i / in_row * width + smallest(i % in_row * lanes, columns - lanes);
    return last < 0 ? i * lanes : smallest(i * lanes, last);
  }
};

// Row k of B lies at first + offsets[k] and at second + offsets[k], a vector each.
struct rows_by_offset {
  const float *first, *second;
  const long* offsets;

  RL_INLINE void next() {}
  RL_INLINE void advance(long count) { offsets += count; }
};
template <int Rows, class A> RL_INLINE void add_product(vec<float> (&sum)[Rows][2], A& a, rows_by_offset& b, int k) {
  const long offset = b.offsets[k];
  const vec<float> b0 = load_bytes<vec<float>>(b.first + offset), b1 = load_bytes<vec<float>>(b.second + offset);
  RL_UNROLL for (int r = 0; r < Rows; ++r) {
    const vec<float> x = splat<vec<float>>(a.read(r, k));
    sum[r][0] += x * b0;
    sum[r][1] += x * b1;
    RL_SUMS_NOW(sum[r], x, b0, b1);
  }
}

// sums[r][v] (=, or +=) the products of weights `a` with the values at b[v] + offsets[k].
template <int Rows, int Vectors>
__attribute__((noinline)) void offset_tile(const float* a, long a_row, const float* const* b, const long* offsets, long depth,
                                           vec<float> (*sums)[Vectors], bool accumulate) {
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
    RL_UNROLL for (int v = 0; v < Vectors; ++v) sums[r][v] = accumulate ? sums[r][v] + sum[r][v] : sum[r][v];
}

// Results of a tile for an epilogue: element e of a row, counted through vectors and phases, at (e / NR * Rows + row) * NR + e % NR.
template <int Rows> struct volume_buffer {
  float* values;

  RL_INLINE float* at(long row, long element) const {
    return values + (element / tile_columns * Rows + row) * tile_columns + element % tile_columns;
  }
};

// `phases` is 1 for whole vectors.
template <int Rows, int Vectors>
RL_INLINE void put_phase(const volume_buffer<Rows>& to, vec<float> (&sums)[Rows][Vectors], long phase, long phases) {
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < Vectors; ++v) {
      if (phases == 1) {
        vector_lane{}.store(to.at(r, v * lanes), sums[r][v]);
        continue;
      }
      alignas(64) float values[lanes];
      __builtin_memcpy(values, &sums[r][v], sizeof values);
      for (long i = 0, e = v * lanes * phases + phase; i < lanes; ++i, e += phases) *to.at(r, e) = values[i];
    }
}

// Results side by side: `count` elements of the buffer from `element` on, which are columns of the epilogue from `column` on.
struct volume_piece {
  long element, column, count;
};

// The vectors of one panel of positions in a layer of results.
template <int Vectors> struct volume_panel {
  long first[Vectors];  // positions
  int used = 0;
  volume_piece pieces[Vectors * (lanes + lanes * most_interleaved / tile_columns + 1)];

  RL_INLINE volume_panel(const volume_pass& p, const position_vectors& positions, long panel, long layer) {
    for (int v = 0; v < Vectors; ++v) first[v] = positions.at(panel * Vectors + v);
    for (int v = 0, together; v < Vectors; v += together) {
      for (together = 1; v + together < Vectors && first[v + together] == first[v] + together * lanes; ++together) {}
      add(p, positions.width, v * lanes * p.phases, first[v], together * lanes, layer);
    }
  }

 private:
  // `count` positions from `from` on, whose results begin with element `element`.
  RL_INLINE void add(const volume_pass& p, long width, long element, long from, long count, long layer) {
    for (long run, y = from / width, q = from % width; count > 0; count -= run, element += run * p.phases, ++y, q = 0) {
      run = smallest(width - q, count);
      if (y >= p.height.count || q >= p.width.count) continue;
      const long x = q * p.phases + p.width.first, begin = element + largest(0L, -x);
      const long end = element + smallest(smallest(run, p.width.count - q) * p.phases, p.width.size - x);
      const long line = (layer * p.height.size + p.height.first + y * p.height.step) * p.width.size + x - element;
      for (long e = begin, next; e < end; e = next) {
        next = smallest(end, (e / tile_columns + 1) * tile_columns);
        pieces[used++] = {e, line + e, next - e};
      }
    }
  }
};

template <int Rows, int Vectors>
RL_INLINE void volume_block(const volume_pass& p, const volume_panel<Vectors>& panel, const float* plane, long first_row,
                            long row, epilogue emit) {
  const float* b[Vectors];
  for (int v = 0; v < Vectors; ++v) b[v] = plane + panel.first[v];
  alignas(64) float values[Rows * ((Vectors * lanes * most_interleaved + tile_columns - 1) / tile_columns) * tile_columns];
  const volume_buffer<Rows> buffer = {values};
  for (long phase = 0; phase < p.phases; ++phase) {
    const volume_taps& taps = p.taps[phase];
    vec<float> sums[Rows][Vectors];
    const float* weight = taps.weight + first_row * taps.depth;
    const long parts = largest(1L, (taps.depth + depth_block - 1) / depth_block);
    for (long part = 0; part < parts; ++part) {
      const long k = taps.depth * part / parts, end = taps.depth * (part + 1) / parts;
      offset_tile<Rows, Vectors>(weight + k, taps.depth, b, taps.offsets + k, end - k, sums, part > 0);
    }
    put_phase(buffer, sums, phase, p.phases);
  }
  for (int i = 0; i < panel.used; ++i) {
    const volume_piece& piece = panel.pieces[i];
    emit(buffer.at(0, piece.element), row, Rows, piece.column, piece.count);
  }
}

// `images` images from number `image` on, whose padded volumes begin at `planes`. Blocks of outputs are full, the last
// overlapping the one before.
template <int Rows, int Vectors>
__attribute__((noinline)) void volume_images(const volume_pass& p, const padded_volumes& v, long image, long images,
                                             const float* planes, volume_offsets& offsets, epilogue emit) {
  const long blocks = (p.outputs + Rows - 1) / Rows;
  const position_vectors positions(p, v.width.length);
  const long panels = (positions.count + Vectors - 1) / Vectors, packs = images * p.depth.count * p.groups * panels;
  // Outputs are split only as far as the threads need it: those of one panel read the same values.
  const long wanted = 1 + 4L * thread_count() / packs, share = (blocks + wanted - 1) / wanted;
  const long splits = (blocks + share - 1) / share;
  for (const long task : shared(packs * splits)) {
    offsets.find(v);
    const long split = task % splits, pack = task / splits, panel = pack % panels, layer = pack / panels % p.depth.count;
    const long group = pack / panels / p.depth.count % p.groups, local = pack / panels / p.depth.count / p.groups;
    const float* plane = planes + (local * v.channels + group * p.inputs) * v.channel() + layer * v.plane();
    const volume_panel<Vectors> vectors(p, positions, panel, p.depth.first + layer * p.depth.step);
    for (long block = split * share; block < smallest((split + 1) * share, blocks); ++block) {
      const long row = group * p.outputs + smallest(block * Rows, p.outputs - Rows);
      volume_block<Rows, Vectors>(p, vectors, plane, row, (image + local) * p.groups * p.outputs + row, emit);
    }
  }
}

RL_INLINE void run_pass(const volume_pass& p, const padded_volumes& v, long image, long images, const float* planes,
                        volume_offsets& offsets, epilogue emit) {
  if (p.depth.count <= 0 || p.height.count <= 0 || p.width.count <= 0) return;
  using images_function = decltype(&volume_images<1, 8>);
  constexpr struct {
    int rows;
    images_function run;
  } ways[] = {{tile_rows, volume_images<tile_rows, 2>}, {tile_rows - 1, volume_images<tile_rows - 1, 2>},
              {few_tile_rows, volume_images<few_tile_rows, 2>}, {4, volume_images<4, 2>}, {2, volume_images<2, 4>}};
  images_function run = volume_images<1, 8>;
  long least = 2 * p.outputs;  // rows of all blocks, and one more for each
  for (const auto& way : ways) {
    const long cost = (p.outputs + way.rows - 1) / way.rows * (way.rows + 1);
    if (p.outputs >= way.rows && cost < least) least = cost, run = way.run;
  }
  run(p, v, image, images, planes, offsets, emit);
}

// run(first image, images, their volumes) for all images; those that need it are padded a few at a time, into `padded`.
template <class F> RL_INLINE void each_padded(const padded_volumes& v, const float* x, float* padded, const F& run) {
  const bool pads = !v.is_whole();
  const long at_once = v.images_at_once();
  for (long image = 0; image < v.images; image += at_once) {
    const long images = smallest(v.images - image, at_once);
    const float* from = x + image * v.channels * v.size();
    if (pads) pad_volumes(v, from, images, padded);
    run(image, images, pads ? padded : from);
  }
}

// ---- the convolution -----------------------------------------------------------------------------------------------

RL_KERNEL void convolve_volumes(const float* x, const float* weight, const volume_shape& given, void* scratch, epilogue emit) {
  const volume_shape s = flattened(given);
  const padded_volumes v = volumes_forward(s);
  const long inputs = s.inputs_of_group(), depth = inputs * s.taps();
  float* padded = (float*)scratch;
  long* table = (long*)((char*)scratch + in_lines(v.bytes()) + thread_index() * in_lines(depth * sizeof(long)));
  volume_offsets offsets = {s, table, true};
  const volume_taps taps = {weight, table, depth};
  const volume_pass pass = {s.groups, inputs, s.outputs_of_group(), {0, 1, s.depth.out(), s.depth.out()},
                            {0, 1, s.height.out(), s.height.out()}, {0, 1, s.width.out(), s.width.out()}, 1, &taps};
  each_padded(v, x, padded, [&](long image, long images, const float* planes) {
    run_pass(pass, v, image, images, planes, offsets, emit);
  });
}

// ---- the gradient of the input -------------------------------------------------------------------------------------

// Elements of one remainder along an axis. Position 0 is position `start` of the padded gradient before a tap's distance is taken
// off. Taps are numbers `tap`, `tap` + `tap_step`, ...; the first is `away` positions back, each further one `apart` more.
struct volume_phase {
  long start, taps, tap, tap_step, away, apart;
};

RL_INLINE volume_phase phase_of(const volume_axis& a, long remainder, long start) {
  volume_phase found = {start, 0, 0, 1, 0, 0};
  for (long tap = 0; tap < a.kernel; ++tap) {
    if (tap * a.dilation % a.stride != remainder) continue;
    const long away = (tap * a.dilation - remainder) / a.stride;
    if (found.taps == 0) found.tap = tap, found.away = away;
    if (found.taps == 1) found.tap_step = tap - found.tap, found.apart = away - found.away;
    ++found.taps;
  }
  return found;
}

// The elements of a remainder along depth or height.
RL_INLINE volume_results results_of(const volume_axis& a, long remainder) {
  const long first = ceil_div(a.pad - remainder, a.stride) * a.stride + remainder - a.pad;
  return {first, a.stride, first < a.size ? (a.size - 1 - first) / a.stride + 1 : 0, a.size};
}
RL_INLINE long start_of(const volume_axis& a, const padded_axis& p, long remainder) {
  return ceil_div(a.pad - remainder, a.stride) + p.before;
}
// All elements along the width, whose remainders are interleaved.
RL_INLINE volume_results results_across(const volume_axis& a) {
  const long first = a.pad / a.stride, last = (a.size - 1 + a.pad) / a.stride;
  return {first * a.stride - a.pad, a.stride, last - first + 1, a.size};
}

// One phase of all three axes. Those before it have `before` taps.
struct gradient_taps {
  volume_phase depth, height, width;
  long before;

  RL_INLINE long count() const { return depth.taps * height.taps * width.taps; }

  // body(number, tap of the kernel, offset)
  template <class F> RL_INLINE void each(const volume_shape& s, const padded_volumes& v, const F& body) const {
    long number = 0;
    for (long i = 0; i < depth.taps; ++i)
      for (long j = 0; j < height.taps; ++j)
        for (long k = 0; k < width.taps; ++k) {
          const long z = depth.tap + i * depth.tap_step, y = height.tap + j * height.tap_step;
          body(number++, (z * s.height.kernel + y) * s.width.kernel + width.tap + k * width.tap_step,
               v.offset(depth.start - depth.away - i * depth.apart, height.start - height.away - j * height.apart,
                        width.start - width.away - k * width.apart));
        }
  }
};

// body(remainder along depth, along height, along width, gradient_taps)
template <class F> RL_INLINE void each_phase(const volume_shape& s, const padded_volumes& v, const F& body) {
  long before = 0;
  for (long z = 0; z < s.depth.stride; ++z)
    for (long y = 0; y < s.height.stride; ++y)
      for (long x = 0; x < s.width.stride; ++x) {
        const gradient_taps taps = {phase_of(s.depth, z, start_of(s.depth, v.depth, z)),
                                    phase_of(s.height, y, start_of(s.height, v.height, y)),
                                    phase_of(s.width, x, s.width.pad / s.width.stride + v.width.before), before};
        before += taps.count();
        body(z, y, x, taps);
      }
}

RL_INLINE void volume_offsets::find(const padded_volumes& v) {
  if (found) return;
  found = true;
  long* to = at;
  if (forward) {
    for (long channel = 0; channel < s.inputs_of_group(); ++channel)
      for (long z = 0; z < s.depth.kernel; ++z)
        for (long y = 0; y < s.height.kernel; ++y)
          for (long x = 0; x < s.width.kernel; ++x)
            *to++ = (channel * v.channel() + v.offset(z * s.depth.dilation, y * s.height.dilation, x * s.width.dilation));
    return;
  }
  const long outputs = s.outputs_of_group();
  each_phase(s, v, [&](long, long, long, const gradient_taps& phase) {
    phase.each(s, v, [&](long number, long, long offset) {
      long* const first = to + phase.before * outputs + number;
      for (long o = 0; o < outputs; ++o) first[o * phase.count()] = o * v.channel() + offset;
    });
  });
}

constexpr long packed_outputs = 16;  // whose taps are written side by side, a line of the caches each

RL_KERNEL void pack_volume_gradient(const float* weight, const volume_shape& s, float* packed) {
  const padded_volumes v = volumes_backward(s);
  const long inputs = s.inputs_of_group(), outputs = s.outputs_of_group(), taps = s.taps();
  const long blocks = (outputs + packed_outputs - 1) / packed_outputs;
  for (const long task : shared(s.groups * blocks)) {
    const long group = task / blocks, first = task % blocks * packed_outputs, last = smallest(first + packed_outputs, outputs);
    each_phase(s, v, [&](long, long, long, const gradient_taps& phase) {
      phase.each(s, v, [&](long number, long tap, long) {
        for (long i = 0; i < inputs; ++i) {
          float* to = packed + (s.channels * phase.before + (group * inputs + i) * phase.count()) * outputs + number;
          for (long o = first; o < last; ++o)
            to[o * phase.count()] = weight[((group * outputs + o) * inputs + i) * taps + tap];
        }
      });
    });
  }
}

RL_KERNEL void volume_input_gradient(const float* grad, const float* packed, const volume_shape& s, void* scratch,
                                     epilogue emit) {
  const padded_volumes v = volumes_backward(s);
  const long outputs = s.outputs_of_group(), depth = outputs * s.taps();
  long* table = (long*)((char*)scratch + in_lines(v.bytes()) + thread_index() * in_lines(depth * sizeof(long)));
  volume_offsets offsets = {s, table, false};
  each_padded(v, grad, (float*)scratch, [&](long image, long images, const float* planes) {
    volume_taps row[most_interleaved];
    each_phase(s, v, [&](long z, long y, long x, const gradient_taps& phase) {
      row[x] = {packed + s.channels * phase.before * outputs, table + phase.before * outputs, phase.count() * outputs};
      if (x + 1 < s.width.stride) return;
      const volume_pass pass = {s.groups, outputs, s.inputs_of_group(), results_of(s.depth, z), results_of(s.height, y),
                                results_across(s.width), s.width.stride, row};
      run_pass(pass, v, image, images, planes, offsets, emit);
    });
  });
}
#endif  // RL_PREBUILT

}  // namespace rl
