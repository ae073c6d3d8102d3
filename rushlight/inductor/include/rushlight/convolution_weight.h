// The gradient of a convolution's weight, fp32. Results go to an epilogue (epilogue.h): a row is an output channel, its columns
// are the elements [C / g, kh, kw] of a filter in row-major order.
//
// It is a matrix product that sums over all output pixels. Its rows are output channels, which are contiguous for a pixel; its
// columns are taps and channels, and a row of taps is contiguous in a channels-last image. A tile of sums stays in registers
// while the loop goes over pixels. With few channels both factors are read in place (a padded input from a copy with its
// border). With many channels, pixels are so far apart that they would map to few cache sets, so each thread packs the data
// that its tiles read repeatedly, for a few pixels at a time. Each tile belongs to one thread: nothing is added up across
// threads, and results do not depend on the number of threads.
#pragma once

#include <rushlight/winograd_weight.h>

namespace rl {

// The columns of the product: `runs` runs of `run` contiguous channels and taps, cut into panels.
struct weight_columns {
  long runs, run, panels_each;
  bool joined;  // a run is a row of taps rather than one tap

  constexpr long panels() const { return runs * panels_each; }
};
constexpr weight_columns weight_columns_of(const conv_shape& s, long column) {
  const bool joined = s.dilation_width == 1 && column == s.group_channels();
  const long run = s.group_channels() * (joined ? s.kernel_width : 1);
  return {s.kernel_height * (joined ? 1 : s.kernel_width), run, (run + tile_columns - 1) / tile_columns, joined};
}

constexpr long framed_image_size(const conv_shape& s) {
  return (s.height + 2 * s.pad_height) * (s.width + 2 * s.pad_width) * s.group_channels();
}
constexpr long framed_at_once(const conv_shape& s) {
  const long fit = (1L << 18) / framed_image_size(s);
  return fit < 1 ? 1 : fit < s.images ? fit : s.images;
}

// Whether threads pack the factors. Packing pays if the packed data is read often enough.
constexpr bool packs_pixels(const conv_shape& s) {
  return s.group_channels() % tile_columns == 0 && s.group_channels() * s.stride_width >= 128 &&
         s.kernel_height * s.kernel_width > 1 && s.outputs / s.groups >= 48;
}
constexpr long pixels_at_once = 192;  // packed columns of this many pixels, with a block of rows, fit a first-level cache
constexpr long blocks_at_once = 40;  // this many row blocks of pixels_at_once pixels fit a second-level cache

// Parts of scratch memory, in floats: images with their border (read beyond the end by up to a panel); tiles of sums; and for
// each thread its packed factors, or the sums of one filter and, for depthwise convolutions, planes of channels.
constexpr long weight_frame_floats(const conv_shape& s) {
  return (framed_at_once(s) * framed_image_size(s) + tile_columns + 15) / 16 * 16;
}
constexpr long weight_tile_floats(const conv_shape& s) {
  const weight_columns apart = weight_columns_of(s, -1), joined = weight_columns_of(s, s.group_channels());
  const long panels = apart.panels() > joined.panels() ? apart.panels() : joined.panels();
  return (s.outputs / s.groups + tile_rows - 1) / tile_rows * panels * tile_rows * tile_columns;
}
constexpr long weight_row_floats(const conv_shape& s) {
  const long taps = s.kernel_height * s.kernel_width, pixels = s.height * s.width + s.out_height() * s.out_width();
  const long packed = packs_pixels(s) ? pixels_at_once * (tile_columns + blocks_at_once * tile_rows) : 0;
  const long filter = (s.depth() + 15) / 16 * 16 + lanes + (s.group_channels() == 1 ? (pixels + taps) * lanes : 0);
  return largest(packed, filter);
}
constexpr long weight_gradient_scratch_bytes(const conv_shape& s, long threads) {
  return (weight_frame_floats(s) + weight_tile_floats(s) + threads * weight_row_floats(s)) * (long)sizeof(float);
}
constexpr long weight_winograd_scratch_bytes(const conv_shape& s, long threads) {
  return largest(weight_gradient_scratch_bytes(s, threads), parts_of_winograd_weight(s).floats(threads) * (long)sizeof(float));
}

// x and grad (the gradient of the output) are read by strides, grad with contiguous channels; if each group has one channel,
// both are row-major. s is the convolution's shape. If `last`, columns are [kh, kw, C / g] instead. Ends with a barrier.
void conv2d_weight_gradient(const float* x, const image_strides& at, const float* grad, const image_strides& grad_at, bool last,
                            const conv_shape& s, void* scratch, epilogue emit);

// The same by Winograd's algorithm, for 3 x 3 filters with stride 1, one group, and contiguous channels in both factors.
void conv2d_weight_winograd(const float* x, const image_strides& at, const float* grad, const image_strides& grad_at, bool last,
                            const conv_shape& s, void* scratch, epilogue emit);

#ifndef RL_PREBUILT
// The two factors of the product for one group, and its columns.
struct weight_factors {
  const float* x;
  image_strides x_at;
  long height, width, pad_height, pad_width;  // the image's sizes; the padding is 0 if x is a copy with its border
  const float* grad;
  image_strides grad_at;
  weight_columns columns;
};

// ---- factors read in place -------------------------------------------------------------------------------------------

// A block of output pixels: `images` x `rows` x `columns`.
struct pixel_block {
  long images, rows, columns;
};

// A factor read pixel after pixel, with a prefetch of later pixels' channels. pixels_across is the left operand, pixel_panels
// the right.
struct pixels_across : rows_across {
  RL_INLINE void next() {
    __builtin_prefetch(at + 8 * column);
    rows_across::next();
  }
};
struct pixel_panels : pixels_across {
  RL_INLINE const float* read(int) const { return at; }
  RL_INLINE void next() {
    if constexpr (tile_columns > 16) __builtin_prefetch(at + 8 * column + lanes);  // the second of its cache lines
    pixels_across::next();
  }
};

// Compute c[r][0..NR) = (or += if `accumulate`) the sum over pixels of a[r] * b[0..NR), r < Rows.
template <int Rows>
__attribute__((noinline)) void weight_tile(const pixel_block& count, const float* a, const image_strides& a_at,
                                           const float* b, const image_strides& b_at, float* c, bool accumulate) {
  vec<float> sum[Rows][2] = {};
  for (long image = 0; image < count.images; ++image)
    for (long row = 0; row < count.rows; ++row) {
      const pixels_across left = {{a + image * a_at.image + row * a_at.row, a_at.column}};
      pixel_panels right = {{{b + image * b_at.image + row * b_at.row, b_at.column}}};
      add_products(sum, left, right, count.columns);
    }
  write_sums(sum, c, accumulate);
}

using weight_function = decltype(&weight_tile<1>);

// Return the tile function for this number of rows. Hidden visibility: every library has its own table.
__attribute__((visibility("hidden"))) RL_INLINE weight_function weight_tile_of(int rows) {
#define RL_SUMS_ADDRESS(rows, ...) weight_tile<rows>,
  static constexpr weight_function tiles[] = {RL_EACH_TILE(RL_SUMS_ADDRESS)};
  return tiles[rows - 1];
}

// Add the products of `images` images to this thread's tiles.
RL_KERNEL void add_pixels(const weight_factors& f, const conv_shape& s, long images, float* tiles, bool first) {
  const row_blocks rows(s.outputs / s.groups);
  const long blocks = rows.count;
  const long height = s.out_height(), width = s.out_width(), cached = (1L << 17) / (s.outputs + s.channels);
  // the factors of this many pixels stay in the cache while all tiles pass over them
  const long together = cached < 128 ? 128 : cached;
  const long at_once = together / (height * width) ? together / (height * width) : 1;
  const long rows_at_once = height * width <= together ? height : together / width ? together / width : 1;
  const long count = f.columns.panels() * blocks;
  const long begin = count * thread_index() / thread_count(), end = count * (thread_index() + 1) / thread_count();
  const image_strides step = {f.x_at.image, 1, f.x_at.row * s.stride_height, f.x_at.column * s.stride_width};
  const long across = f.columns.joined ? 0 : f.x_at.column * s.dilation_width;
  const long wide = f.columns.joined ? 1 : s.kernel_width;
  for (long image = 0; image < images; image += at_once)
    for (long row = 0; row < height; row += rows_at_once) {
      const pixel_block pixels = {images - image < at_once ? images - image : at_once,
                                  height - row < rows_at_once ? height - row : rows_at_once, width};
      const float* grad = f.grad + image * f.grad_at.image + row * f.grad_at.row;
      const float* x = f.x + image * step.image + row * step.row;
      for (long tile = begin; tile < end; ++tile) {
        const long panel = tile / blocks, run = panel / f.columns.panels_each;
        const row_block block = rows.at(tile % blocks);
        const long from = run / wide * s.dilation_height * f.x_at.row + run % wide * across +
                          panel % f.columns.panels_each * tile_columns;
        float* sums = tiles + (tile % blocks * f.columns.panels() + panel) * tile_rows * tile_columns;
        weight_tile_of(block.rows)(pixels, grad + block.first, f.grad_at, x + from, step, sums, !first || image || row);
      }
    }
}

// ---- packed factors ---------------------------------------------------------------------------------------------------

// Call use(image, row, column, count, before) for each output row's share of the `count` output pixels from `first`.
template <class F> RL_INLINE void each_run(const conv_shape& s, long first, long count, const F& use) {
  const long height = s.out_height(), width = s.out_width();
  long column = first % width, row = first / width % height, image = first / width / height;
  for (long before = 0, run; before < count; before += run) {
    run = smallest(width - column, count - before);
    use(image, row, column, run, before);
    column = 0;
    if (++row == height) row = 0, ++image;
  }
}

// Among `count` output pixels of a row from `first`, the range whose tap lies inside the image.
struct pixels_inside {
  long begin, end;

  RL_INLINE pixels_inside(long first, long count, long place, long stride, long size)
      : begin(place < 0 ? smallest(largest(ceil_div(-place, stride) - first, 0), count) : 0),
        end(largest(smallest(ceil_div(size - place, stride) - first, count), begin)) {}
};

// Pack out[pixel][0..NR) = the channels from `channel` on that a tap reads, for the output pixels [first, first + count).
RL_INLINE void pack_pixels(const weight_factors& f, const conv_shape& s, long first, long count, long ky, long kx,
                           long channel, float* out) {
  const long step = f.x_at.column * s.stride_width, left = kx * s.dilation_width - f.pad_width;
  each_run(s, first, count, [&](long image, long row, long column, long run, long before) {
    const long y = row * s.stride_height + ky * s.dilation_height - f.pad_height;
    const pixels_inside inside(column, y < 0 || y >= f.height ? 0 : run, left, s.stride_width, f.width);
    float* to = out + before * tile_columns;
    __builtin_memset(to, 0, inside.begin * tile_columns * sizeof(float));
    const float* x = f.x + image * f.x_at.image + y * f.x_at.row + (column + inside.begin) * step + left * f.x_at.column + channel;
    for (long i = inside.begin; i < inside.end; ++i, x += step) {
      vector_lane{}.store(to + i * tile_columns, vector_lane{}.load(x));
      vector_lane{}.store(to + i * tile_columns + lanes, vector_lane{}.load(x + lanes));
    }
    __builtin_memset(to + inside.end * tile_columns, 0, (run - inside.end) * tile_columns * sizeof(float));
  });
}

// Add the products of `images` images to this thread's tiles, from packed factors; columns are single taps. packed is the
// thread's buffer.
__attribute__((visibility("hidden"))) RL_KERNEL void add_packed_pixels(const weight_factors& f, const conv_shape& s,
                                                                        long images, float* packed, float* tiles, bool first) {
  const row_cut<float> cut(s.outputs / s.groups);
  const long panels = f.columns.panels(), pixels = images * s.out_height() * s.out_width();
  const long together = group_size(cut.count, blocks_at_once);
  float *columns = packed, *rows = packed + pixels_at_once * tile_columns;
  for (long pixel = 0; pixel < pixels; pixel += pixels_at_once) {
    const long depth = smallest(pixels_at_once, pixels - pixel);
    for (long block = 0; block < cut.count; block += together) {
      const long blocks = smallest(together, cut.count - block), count = panels * blocks;
      const long begin = count * thread_index() / thread_count(), end = count * (thread_index() + 1) / thread_count();
      each_run(s, pixel, begin < end ? depth : 0, [&](long image, long row, long column, long run, long before) {
        const float* grad = f.grad + image * f.grad_at.image + row * f.grad_at.row + column * f.grad_at.column;
        pack_row_blocks(cut, block, block + blocks, grad, f.grad_at.column, run, rows + before * tile_rows, depth);
      });
      for (long tile = begin; tile < end; ++tile) {
        const long panel = tile / blocks, at = tile % blocks, tap = panel / f.columns.panels_each;
        if (at == 0 || tile == begin)
          pack_pixels(f, s, pixel, depth, tap / s.kernel_width, tap % s.kernel_width,
                      panel % f.columns.panels_each * tile_columns, columns);
        float* sums = tiles + ((block + at) * panels + panel) * tile_rows * tile_columns;
        cut.run({0, cut.at(block + at).rows}, rows + at * tile_rows * depth, 1, tile_rows, columns, depth, sums,
                !first || pixel != 0);
      }
    }
  }
}

// ---- the product ---------------------------------------------------------------------------------------------------

// A pointer to contiguous sums of a filter.
struct contiguous_sums {
  const float* at;
  long count;
};

// Return the sums of a tap's channels from `channel` on, given a row of a row of tiles.
RL_INLINE contiguous_sums sums_of(const weight_columns& columns, const conv_shape& s, const float* tiles, long tap, long channel) {
  const long run = columns.joined ? tap / s.kernel_width : tap;
  const long at = (columns.joined ? tap % s.kernel_width * s.group_channels() : 0) + channel;
  return {tiles + (run * columns.panels_each + at / tile_columns) * tile_rows * tile_columns + at % tile_columns,
          tile_columns - at % tile_columns};
}

// Store a filter's sums as [C / g][kh][kw]; the number of channels must be a multiple of the lanes.
template <class Sums> RL_INLINE void store_transposed_filter(const conv_shape& s, const Sums& sums, float* out) {
  const long taps = s.kernel_height * s.kernel_width;
  for (long channel = 0; channel < s.group_channels(); channel += lanes) {
    vec<float> block[lanes] = {};
    for (long t = 0; t < taps; ++t) block[t] = vector_lane{}.load(sums(t, channel).at);
    transpose(block);
    // Values stored beyond a channel's taps are overwritten by the next channel's.
    RL_UNROLL for (int c = 0; c < lanes; ++c) vector_lane{}.store(out + (channel + c) * taps, block[c]);
  }
}

// Store a filter's sums, as [kh][kw][C / g] if `last`, else as [C / g][kh][kw]. sums(tap, channel) returns contiguous sums.
template <class Sums> RL_INLINE void gather_filter(const conv_shape& s, const Sums& sums, bool last, float* out) {
  const long channels = s.group_channels(), taps = s.kernel_height * s.kernel_width;
  if (!last && channels % lanes == 0 && taps <= lanes) return store_transposed_filter(s, sums, out);
  for (long tap = 0; tap < taps; ++tap)
    for (long channel = 0; channel < channels;) {
      const contiguous_sums from = sums(tap, channel);
      const long count = smallest(from.count, channels - channel);
      for_each(count, [&](auto lane, long c) {
        const auto value = lane.load(from.at + c);
        if (last) lane.store(out + tap * channels + channel + c, value);
        else lane.store_strided(out + (channel + c) * taps + tap, taps, value);
      });
      channel += count;
    }
}

// Pass a filter's gradient to the epilogue, panel by panel.
RL_INLINE void emit_filter(const float* filter, long output, long count, const epilogue& emit) {
  for (long j = 0; j < count; j += tile_columns)
    emit(filter + j, output, 1, j, count - j < tile_columns ? count - j : tile_columns);
}

RL_KERNEL void weight_product(const float* x, const image_strides& at, const float* grad, const image_strides& grad_at,
                              const conv_shape& s, bool last, void* scratch, epilogue emit) {
  const long channels = s.group_channels(), outputs = s.outputs / s.groups;
  const row_blocks rows(outputs);
  float *frame = (float*)scratch, *tiles = frame + weight_frame_floats(s);
  float* packed = tiles + weight_tile_floats(s) + thread_index() * weight_row_floats(s);
  const bool packs = packs_pixels(s);
  weight_factors f = {x, at, s.height, s.width, s.pad_height, s.pad_width, grad, grad_at,
                      weight_columns_of(s, packs ? -1 : at.column)};
  const bool framed = at.channel != 1 || (!packs && (s.padded() || f.columns.run % tile_columns != 0));
  const long height = s.height + 2 * s.pad_height, width = s.width + 2 * s.pad_width;
  const long chunk = framed ? framed_at_once(s) : s.images;
  if (framed) {
    f.x_at = {framed_image_size(s), 1, width * channels, channels};
    f.height = height, f.width = width, f.pad_height = f.pad_width = 0;
    if (!packs) f.columns = weight_columns_of(s, channels);
  }
  conv_shape own = s;
  own.channels = channels;
  for (long group = 0; group < s.groups; ++group) {
    for (long begin = 0; begin < s.images; begin += chunk) {
      const long images = s.images - begin < chunk ? s.images - begin : chunk;
      f.x = x + group * channels * at.channel + begin * at.image;
      f.grad = grad + group * outputs + begin * grad_at.image;
      if (framed) {
        pad_images(f.x, at, own, images, true, frame);
        f.x = frame;
      }
      if (packs) add_packed_pixels(f, s, images, packed, tiles, begin == 0);
      else add_pixels(f, s, images, tiles, begin == 0);
      barrier();
    }
    for (const long o : shared(outputs)) {
      const long block = rows.block_of_row(o), row = o - rows.at(block).first;
      const float* row_of_tiles = tiles + (block * f.columns.panels() * tile_rows + row) * tile_columns;
      const auto sums = [&](long tap, long channel) { return sums_of(f.columns, s, row_of_tiles, tap, channel); };
      gather_filter(s, sums, last, packed);
      emit_filter(packed, group * outputs + o, s.depth(), emit);
    }
  }
}

// ---- Winograd ------------------------------------------------------------------------------------------------------

// Compute the gradient by Winograd's algorithm. Return false, without storing anything, if a result is not finite.
RL_KERNEL bool winograd_weight_product(const float* x, const image_strides& at, const float* grad, const image_strides& grad_at,
                                       const conv_shape& s, bool last, void* scratch, epilogue emit) {
  const winograd_weight_parts parts = parts_of_winograd_weight(s);
  float *factors = (float*)scratch, *sums = factors + parts.grad.floats() + parts.input.floats();
  float* own = sums + parts.sums.floats();  // for each thread: one filter, and whether its results are finite
  float *filter = own + thread_index() * parts.thread_floats(), *finite = filter + parts.filter;
  winograd_weight_sums(x, at, grad, grad_at, s, parts, factors, sums);
  *finite = 1.0f;
  for (const long o : shared(s.outputs))
    if (!finish_winograd_row(sums + winograd_row(parts, o), parts.sums.place(), parts.channel_groups)) *finite = 0.0f;
  barrier();
  float all = 1.0f;
  for (long thread = 0; thread < thread_count(); ++thread) all *= own[thread * parts.thread_floats() + parts.filter];
  barrier();
  if (all == 0.0f) return false;
  for (const long o : shared(s.outputs)) {
    const float* row = sums + winograd_row(parts, o);
    const auto sums_of_tap = [&](long tap, long channel) {
      return contiguous_sums{row + tap * parts.sums.place() + channel / tile_columns * tile_columns * tile_columns + channel % tile_columns,
                        tile_columns - channel % tile_columns};
    };
    gather_filter(s, sums_of_tap, last, filter);
    emit_filter(filter, o, s.depth(), emit);
  }
  return true;
}

// ---- depthwise -----------------------------------------------------------------------------------------------------

// In this section a lane is a channel; planes are first transposed to that order.

// Transpose a vector's worth of planes to [pixels][lanes]. `share` consecutive channels read the same plane.
RL_INLINE void interleave_planes(const float* planes, long first, long count, long share, long pixels, float* out) {
  if (share == 1) return pack_transposed(planes + first * pixels, pixels, count, pixels, out, lanes);
  for (long c = 0; c < lanes; ++c)
    for (long i = 0; i < pixels; ++i) out[i * lanes + c] = c < count ? planes[(first + c) / share * pixels + i] : 0.0f;
}

// Return for each lane the sum of products along a row: `count` values of grad with values of x that are `stride` apart.
RL_INLINE vec<float> row_products(const float* x, long stride, const float* grad, long count) {
  vec<float> sum[4] = {};
  long i = 0;
  for (; i + 4 <= count; i += 4)
    RL_UNROLL for (int j = 0; j < 4; ++j)
      sum[j] += load_bytes<vec<float>>(x + (i + j) * stride * lanes) * load_bytes<vec<float>>(grad + (i + j) * lanes);
  for (; i < count; ++i) sum[0] += load_bytes<vec<float>>(x + i * stride * lanes) * load_bytes<vec<float>>(grad + i * lanes);
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// Return the sums over an image of the products for one tap, over the output pixels whose tap lies inside the image.
RL_INLINE vec<float> tap_products(const conv_shape& s, const float* x, const float* grad, long ky, long kx) {
  const long left = kx * s.dilation_width - s.pad_width, top = ky * s.dilation_height - s.pad_height;
  const long first = left < 0 ? ceil_div(-left, s.stride_width) : 0, width = s.out_width();
  const long fit = ceil_div(s.width - left, s.stride_width), last = fit < width ? fit : width;
  vec<float> sum = {};
  for (long row = 0; row < s.out_height() && first < last; ++row) {
    const long y = row * s.stride_height + top;
    if (y >= 0 && y < s.height)
      sum += row_products(x + (y * s.width + first * s.stride_width + left) * lanes, s.stride_width,
                          grad + (row * width + first) * lanes, last - first);
  }
  return sum;
}

RL_KERNEL void depthwise_weight(const float* x, const float* grad, const conv_shape& s, void* scratch,
                                epilogue emit) {
  const long taps = s.kernel_height * s.kernel_width, multiplier = s.outputs / s.groups;
  const long plane = s.height * s.width, out_plane = s.out_height() * s.out_width();
  float* planes = (float*)scratch + weight_frame_floats(s) + weight_tile_floats(s) + thread_index() * weight_row_floats(s);
  float *grads = planes + plane * lanes, *sums = grads + out_plane * lanes, *filter = sums + taps * lanes;
  for (const long block : shared((s.outputs + lanes - 1) / lanes)) {
    const long first = block * lanes, count = s.outputs - first < lanes ? s.outputs - first : lanes;
    __builtin_memset(sums, 0, taps * lanes * sizeof(float));
    for (long image = 0; image < s.images; ++image) {
      interleave_planes(x + image * s.channels * plane, first, count, multiplier, plane, planes);
      interleave_planes(grad + image * s.outputs * out_plane, first, count, 1, out_plane, grads);
      for (long tap = 0; tap < taps; ++tap) {
        const vec<float> sum = tap_products(s, planes, grads, tap / s.kernel_width, tap % s.kernel_width);
        vector_lane{}.store(sums + tap * lanes, vector_lane{}.load(sums + tap * lanes) + sum);
      }
    }
    for (long c = 0; c < count; ++c) {
      for (long tap = 0; tap < taps; ++tap) filter[tap] = sums[tap * lanes + c];
      emit_filter(filter, first + c, taps, emit);
    }
  }
}

RL_KERNEL void conv2d_weight_gradient(const float* x, const image_strides& at, const float* grad,
                                      const image_strides& grad_at, bool last, const conv_shape& s, void* scratch,
                                      epilogue emit) {
  if (s.group_channels() == 1 && s.groups > 1) return depthwise_weight(x, grad, s, scratch, emit);
  weight_product(x, at, grad, grad_at, s, last, scratch, emit);
}

RL_KERNEL void conv2d_weight_winograd(const float* x, const image_strides& at, const float* grad,
                                      const image_strides& grad_at, bool last, const conv_shape& s, void* scratch,
                                      epilogue emit) {
  if (!winograd_weight_product(x, at, grad, grad_at, s, last, scratch, emit))
    weight_product(x, at, grad, grad_at, s, last, scratch, emit);
}

#endif  // RL_PREBUILT

}  // namespace rl
