// Convolution over volumes (images with a depth), fp32, row-major [N, C, D, H, W], and the gradient of its input. A vector
// holds adjacent positions of a row, not channels: these kernels are for few output channels, which would leave vectors of
// channels partly empty. The computation is the tile product of tile.h with the right operand read in place.
//
// Volumes are first padded with zeros. If windows have a stride above one, each volume is also split into phases: the elements
// whose coordinates have the same remainder modulo the stride. Then the values that one tap of the kernel reads at adjacent
// positions are contiguous, and a tile needs only one offset for each tap of each channel. Vectors of positions run over whole
// padded rows; results beyond a row's end are computed and dropped.
//
// The gradient of the input (a transposed convolution) uses the same code: input elements whose coordinates have the same
// remainder modulo the stride read the same taps of the output's gradient, so each such phase is one pass. The phases along a
// row are computed together, and their results interleaved.
//
// Rows of the epilogue (epilogue.h) are image * outputs + output; its columns are the elements of a volume.
#pragma once

#include <rushlight/epilogue.h>
#include <rushlight/volume_shape.h>

namespace rl {

// x [N, C, D, H, W] and weight [O, C / groups, kd, kh, kw], both contiguous. scratch has volume_scratch_bytes, aligned to 64.
// Called by all threads of a parallel region; ends with a barrier.
void convolve_volumes(const float* x, const float* weight, const volume_shape& s, void* scratch, epilogue emit);

// Compute the gradient of the input from that of the output, [N, O, ...]. `packed` comes from pack_volume_gradient. The stride
// along a row is at most max_interleaved_phases.
void volume_input_gradient(const float* grad, const float* packed, const volume_shape& s, void* scratch, epilogue emit);

// Pack the weight [O, C / groups, taps] as [phases][C][O / groups][taps of the phase]. Called by all threads of a region, or by
// one thread outside.
void pack_volume_gradient(const float* weight, const volume_shape& s, float* packed);

#ifndef RL_PREBUILT
// ---- passes --------------------------------------------------------------------------------------------------------

// The offsets of all taps, one table for each thread. find() fills it at the thread's first task; see parallel.h.
struct volume_offsets {
  const volume_shape& s;
  long* at;
  bool forward, found = false;

  void find(const padded_volumes& v);
};

// The taps that one phase along a row reads: weights [groups * outputs][depth], and offsets[k] for k < depth.
struct volume_taps {
  const float* weight;
  const long* offsets;
  long depth;
};

// A range of positions in one dimension of the results: `count` positions, the first at `first`, `step` apart. `size` is the
// dimension's size.
struct volume_results {
  long first, step, count, size;
};

// The work on one phase in depth and height, and on all `phases` along the width: taps[p] are those of phase p. Result element
// q * phases + p + width.first of a row is position q of phase p; some may lie outside the row.
struct volume_pass {
  long groups, inputs, outputs;  // channels of a group
  volume_results depth, height, width;
  long phases;
  const volume_taps* taps;
};

// A partition of a layer's positions into vectors. If rows are long enough, each row is cut into vectors of its own; otherwise
// vectors run on over whole padded rows.
struct position_vectors {
  long width, columns, in_row, count, last;  // in_row: the vectors of a row; 0 if vectors run on over rows

  RL_INLINE position_vectors(const volume_pass& p, long width) : width(width), columns(p.width.count), in_row(0) {
    const long rows = p.height.count, all = (rows - 1) * width + columns, apart = (columns + lanes - 1) / lanes;
    count = (all + lanes - 1) / lanes, last = all - lanes;
    if (columns >= lanes && rows * apart <= count) in_row = apart, count = rows * apart;
  }

  // Return the first position of vector i. The last vectors overlap the ones before instead of ending outside.
  RL_INLINE long at(long i) const {
    i = smallest(i, count - 1);
    if (in_row) return i / in_row * width + smallest(i % in_row * lanes, columns - lanes);
    return last < 0 ? i * lanes : smallest(i * lanes, last);
  }
};

// The right operand of a tile: row k has one vector at first + offsets[k] and one at second + offsets[k].
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
    RL_PIN_SUMS(sum[r], x, b0, b1);
  }
}

// Set sums[r][v] to the sum over k of a[r * a_row + k] * (the vector at b[v] + offsets[k]), or add to it if `accumulate`.
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

// The results of a tile, in the layout that an epilogue reads: element e of a row, counted through vectors and phases, lies at
// (e / NR * Rows + row) * NR + e % NR.
template <int Rows> struct volume_buffer {
  float* values;

  RL_INLINE float* at(long row, long element) const {
    return values + (element / tile_columns * Rows + row) * tile_columns + element % tile_columns;
  }
};

// Store the sums of one phase into the buffer. With several phases, results of a phase lie `phases` elements apart.
template <int Rows, int Vectors>
RL_INLINE void store_phase(const volume_buffer<Rows>& to, vec<float> (&sums)[Rows][Vectors], long phase, long phases) {
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

// A run of results for one call of the epilogue: `count` elements, from `element` of the buffer and `column` of the epilogue.
struct volume_piece {
  long element, column, count;
};

// One panel of the right operand: `Vectors` vectors of positions in a layer of results, and the pieces that their results form.
template <int Vectors> struct volume_panel {
  long first[Vectors];  // positions
  int used = 0;
  volume_piece pieces[Vectors * (lanes + lanes * max_interleaved_phases / tile_columns + 1)];

  RL_INLINE volume_panel(const volume_pass& p, const position_vectors& positions, long panel, long layer) {
    for (int v = 0; v < Vectors; ++v) first[v] = positions.at(panel * Vectors + v);
    for (int v = 0, together; v < Vectors; v += together) {
      for (together = 1; v + together < Vectors && first[v + together] == first[v] + together * lanes; ++together) {}
      add(p, positions.width, v * lanes * p.phases, first[v], together * lanes, layer);
    }
  }

 private:
  // Add the pieces of `count` positions from `from`; the results begin at `element` of the buffer.
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

// Compute one tile, `Rows` outputs by the panel's positions, and hand its pieces to the epilogue.
template <int Rows, int Vectors>
RL_INLINE void volume_block(const volume_pass& p, const volume_panel<Vectors>& panel, const float* plane, long first_row,
                            long row, epilogue emit) {
  const float* b[Vectors];
  for (int v = 0; v < Vectors; ++v) b[v] = plane + panel.first[v];
  alignas(64) float values[Rows * ((Vectors * lanes * max_interleaved_phases + tile_columns - 1) / tile_columns) * tile_columns];
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
    store_phase(buffer, sums, phase, p.phases);
  }
  for (int i = 0; i < panel.used; ++i) {
    const volume_piece& piece = panel.pieces[i];
    emit(buffer.at(0, piece.element), row, Rows, piece.column, piece.count);
  }
}

// Run a pass over `images` images from number `image`; their padded volumes begin at `planes`. Every block has `Rows` outputs:
// the last block overlaps the one before.
template <int Rows, int Vectors>
__attribute__((noinline)) void volume_images(const volume_pass& p, const padded_volumes& v, long image, long images,
                                             const float* planes, volume_offsets& offsets, epilogue emit) {
  const long blocks = (p.outputs + Rows - 1) / Rows;
  const position_vectors positions(p, v.width.length);
  const long panels = (positions.count + Vectors - 1) / Vectors, packs = images * p.depth.count * p.groups * panels;
  // split outputs over several tasks only if the threads need it: the outputs of one panel read the same values
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

// Run a pass with the tile shape that wastes the least work for this number of outputs.
RL_INLINE void run_pass(const volume_pass& p, const padded_volumes& v, long image, long images, const float* planes,
                        volume_offsets& offsets, epilogue emit) {
  if (p.depth.count <= 0 || p.height.count <= 0 || p.width.count <= 0) return;
  using images_function = decltype(&volume_images<1, 8>);
  constexpr struct {
    int rows;
    images_function run;
  } ways[] = {{tile_rows, volume_images<tile_rows, 2>}, {tile_rows - 1, volume_images<tile_rows - 1, 2>},
              {small_tile_rows, volume_images<small_tile_rows, 2>}, {4, volume_images<4, 2>}, {2, volume_images<2, 4>}};
  images_function run = volume_images<1, 8>;
  long least = 2 * p.outputs;  // the cost: rows of all blocks, and one more row for each block
  for (const auto& way : ways) {
    const long cost = (p.outputs + way.rows - 1) / way.rows * (way.rows + 1);
    if (p.outputs >= way.rows && cost < least) least = cost, run = way.run;
  }
  run(p, v, image, images, planes, offsets, emit);
}

// Call run(first image, image count, their volumes) for all images. If padding is needed, pad a few images at a time into
// `padded`.
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

// The elements with one remainder along an axis, and the taps that they read: `taps` taps, numbers `tap`, `tap` + `tap_step`,
// ... of the kernel. Position 0 of the phase corresponds to position `start` of the padded gradient; the first tap reads `away`
// positions before it, each further tap `apart` more.
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

// Return the range of elements with this remainder along depth or height.
RL_INLINE volume_results results_of(const volume_axis& a, long remainder) {
  const long first = ceil_div(a.pad - remainder, a.stride) * a.stride + remainder - a.pad;
  return {first, a.stride, first < a.size ? (a.size - 1 - first) / a.stride + 1 : 0, a.size};
}
RL_INLINE long start_of(const volume_axis& a, const padded_axis& p, long remainder) {
  return ceil_div(a.pad - remainder, a.stride) + p.before;
}
// Return the range of all elements along the width; their phases are interleaved.
RL_INLINE volume_results results_across(const volume_axis& a) {
  const long first = a.pad / a.stride, last = (a.size - 1 + a.pad) / a.stride;
  return {first * a.stride - a.pad, a.stride, last - first + 1, a.size};
}

// The taps of one phase in all three axes. The earlier phases have `before` taps together.
struct gradient_taps {
  volume_phase depth, height, width;
  long before;

  RL_INLINE long count() const { return depth.taps * height.taps * width.taps; }

  // Call body(number, tap of the kernel, offset) for each tap of the phase.
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

// Call body(depth remainder, height remainder, width remainder, gradient_taps) for each phase.
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

// outputs in one task: their taps of a phase are written side by side and fill one cache line
constexpr long outputs_per_task = 16;

RL_KERNEL void pack_volume_gradient(const float* weight, const volume_shape& s, float* packed) {
  const padded_volumes v = volumes_backward(s);
  const long inputs = s.inputs_of_group(), outputs = s.outputs_of_group(), taps = s.taps();
  const long blocks = (outputs + outputs_per_task - 1) / outputs_per_task;
  for (const long task : shared(s.groups * blocks)) {
    const long group = task / blocks, first = task % blocks * outputs_per_task, last = smallest(first + outputs_per_task, outputs);
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
    volume_taps row[max_interleaved_phases];
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
