// Convolutions of bytes, channels-last: x is [images, height, width, channels], unsigned (signed bytes are flipped to
// unsigned), and signed weights are [outputs, kernel height, kernel width, channels / groups]. It is a matrix product: each row
// of A is the window of one output pixel, gathered a block of pixels at a time. A linear layer is a convolution with one row of
// pixels. Sums are exact in 32 bits and count activations relative to their zero point, which is also the value of the padding.
#pragma once

#include <rushlight/byte_gemm.h>
#include <rushlight/conv.h>
#include <rushlight/tile_windows.h>

namespace rl {

struct byte_input {
  const uint8_t* data;
  uint8_t flip;    // 0x80 for signed bytes: flipping the sign bit makes them unsigned
  uint8_t filler;  // the value of the padding: the zero point, as stored in `data`

  RL_INLINE int32_t zero() const { return (uint8_t)(filler ^ flip); }
};
RL_INLINE byte_input input_of(const uint8_t* data, int32_t zero) { return {data, 0, (uint8_t)zero}; }
RL_INLINE byte_input input_of(const int8_t* data, int32_t zero) { return {(const uint8_t*)data, 0x80, (uint8_t)zero}; }

constexpr long byte_block_bytes = 192 << 10;  // this many bytes of gathered rows stay in the second-level cache

constexpr long byte_row_bytes(const conv_shape& s) { return byte_words(s.depth()) * byte_word; }

// The number of output pixels whose windows are gathered together.
constexpr long byte_block_rows(const conv_shape& s) {
  const long rows = byte_block_bytes / (byte_row_bytes(s) + 1) / tile_rows * tile_rows;
  return rows < tile_rows ? tile_rows : rows < 96 ? rows : 96;
}

// The number of outliers of a block that scratch memory has room for.
constexpr long outlier_room(const conv_shape& s) { return byte_block_rows(s) * byte_row_bytes(s) / 8 + 64; }

// The initial sums of all panels, and the offsets of a window's runs.
constexpr long byte_starts_bytes(const conv_shape& s) { return (s.outputs + s.groups * tile_columns) * (long)sizeof(int32_t); }
constexpr long byte_offsets_bytes(const conv_shape& s) { return s.kernel_height * s.kernel_width * (long)sizeof(long); }

// Scratch memory of a thread: the initial sums and the offsets; then a block of rows, the same block widened to 16 bits, and its
// outliers, or the lines that tile registers read.
constexpr long byte_scratch_bytes(const conv_shape& s) {
  const long outliers = outlier_room(s) + byte_block_rows(s) + 1, block = byte_block_rows(s) * byte_row_bytes(s);
  const long lines = window_plan(s, byte_row_bytes(s)).bytes(), rows = 3 * block + outliers * (long)sizeof(int32_t);
  return (byte_starts_bytes(s) + byte_offsets_bytes(s) + largest(rows, lines) + 128 + 63) / 64 * 64;
}

#ifndef RL_PREBUILT
// Copy few bytes; the last copy may overlap the one before.
RL_INLINE void copy_bytes(const uint8_t* from, uint8_t* to, long count) {
  constexpr long width = sizeof(byte_vector);
  if (count >= width) {
    for (long i = 0; i < count - width; i += width) __builtin_memcpy(to + i, from + i, width);
    __builtin_memcpy(to + count - width, from + count - width, width);
  } else if (count >= 16) {
    for (long i = 0; i < count - 16; i += 16) __builtin_memcpy(to + i, from + i, 16);
    __builtin_memcpy(to + count - 16, from + count - 16, 16);
  } else if (count >= 8) {
    __builtin_memcpy(to, from, 8);
    __builtin_memcpy(to + count - 8, from + count - 8, 8);
  } else if (count >= 4) {
    __builtin_memcpy(to, from, 4);
    __builtin_memcpy(to + count - 4, from + count - 4, 4);
  } else {
    for (long i = 0; i < count; ++i) to[i] = from[i];
  }
}

// Gather a row of a window: taps at x, x + dilation and so on; taps outside the image give the filler.
RL_INLINE void gather_taps(const conv_shape& s, const byte_input& in, const uint8_t* line, long x, uint8_t* out) {
  const long channels = s.group_channels();
  if (s.dilation_width == 1 && s.groups == 1) {
    const long low = x < 0 ? smallest(-x, s.kernel_width) : 0, high = largest(low, smallest(s.kernel_width, s.width - x));
    if (low) __builtin_memset(out, in.filler, low * channels);
    if (high > low) copy_bytes(line + (x + low) * channels, out + low * channels, (high - low) * channels);
    if (high < s.kernel_width) __builtin_memset(out + high * channels, in.filler, (s.kernel_width - high) * channels);
    return;
  }
  for (long tap = 0; tap < s.kernel_width; ++tap, x += s.dilation_width, out += channels)
    if (x < 0 || x >= s.width) __builtin_memset(out, in.filler, channels);
    else copy_bytes(line + x * s.channels, out, channels);
}

// Gather the window whose first tap is at (y, x) of a group's channels of an image.
RL_INLINE void gather_window(const conv_shape& s, const byte_input& in, const uint8_t* image, long y, long x, uint8_t* out) {
  const long taps = s.kernel_width * s.group_channels();
  uint8_t* to = out;
  for (long ky = 0; ky < s.kernel_height; ++ky, to += taps) {
    const long line = y + ky * s.dilation_height;
    if (line < 0 || line >= s.height) __builtin_memset(to, in.filler, taps);
    else gather_taps(s, in, image + line * s.width * s.channels, x, to);
  }
  if (in.flip) flip_bytes(out, to - out, in.flip);
}

constexpr long gathered_part = 32;  // bytes that are moved at once, also beyond the end of a row of taps

// Gather a window inside an image whose taps are contiguous in a line. Writes, and reads, up to a part beyond the taps.
template <int Parts> RL_INLINE void gather_inner(const uint8_t* from, long line, long taps, long rows, uint8_t* to) {
  const auto copy_row = [&] {
    RL_UNROLL for (int i = 0; i < Parts; ++i) __builtin_memcpy(to + i * gathered_part, from + i * gathered_part, gathered_part);
    from += line, to += taps;
  };
  for (; rows >= 3; rows -= 3) RL_UNROLL for (int i = 0; i < 3; ++i) copy_row();
  for (; rows > 0; --rows) copy_row();
}

// Gathers windows of output pixels, over the channels of a group.
struct window_gatherer {
  const conv_shape& s;
  const byte_input& in;
  long offset;  // The offset of the group's channels.
  long line, taps, parts;
  long inside;  // bytes of the images before which an inner window's last row of taps must begin

  RL_INLINE window_gatherer(const conv_shape& s, const byte_input& in, long group)
      : s(s), in(in), offset(group * s.group_channels()), line(s.width * s.channels), taps(s.kernel_width * s.group_channels()) {
    const bool together = s.groups == 1 && s.dilation_width == 1 && taps <= 2 * gathered_part;
    parts = together ? (taps + gathered_part - 1) / gathered_part : 0;
    inside = s.images * s.height * line - parts * gathered_part;
  }

  struct columns { long first, end; };

  // Return which of the output columns [from, end) have inner windows, if these begin in line y.
  RL_INLINE columns inner_columns(long image, long y, long from, long end) const {
    const long reach = (s.kernel_height - 1) * s.dilation_height;
    const long room = inside - (image * s.height + y + reach) * line;  // limits x in the last lines of the last image
    if (!parts || y < 0 || y + reach >= s.height || room < 0) return {end, end};
    const long last = smallest(s.width - s.kernel_width, room / s.channels) + s.pad_width;
    const long first = smallest(end, largest(from, (s.pad_width + s.stride_width - 1) / s.stride_width));
    return {first, last < 0 ? first : largest(first, smallest(end, last / s.stride_width + 1))};
  }

  // Gather the windows of a line's output columns [from, end), which begin in line y. Rows are `row` bytes apart, and padded with
  // zeros.
  RL_INLINE void gather(long image, long y, long from, long end, long row, uint8_t* out) const {
    const uint8_t* const first = in.data + image * s.height * line + offset;
    const columns inner = inner_columns(image, y, from, end);
    const auto x_of = [&](long column) { return column * s.stride_width - s.pad_width; };
    const auto gather_edge = [&](long column, long last) {
      for (; column < last; ++column, out += row) {
        gather_window(s, in, first, y, x_of(column), out);
        pad_row(row, out);
      }
    };
    gather_edge(from, inner.first);
    const uint8_t* at = first + y * line + x_of(inner.first) * s.channels;
    for (long left = inner.end - inner.first; left > 0; --left, at += s.stride_width * s.channels, out += row) {
      if (parts == 1) gather_inner<1>(at, s.dilation_height * line, taps, s.kernel_height, out);
      else gather_inner<2>(at, s.dilation_height * line, taps, s.kernel_height, out);
      if (in.flip) flip_bytes(out, s.depth(), in.flip);
      pad_row(row, out);
    }
    gather_edge(inner.end, end);
  }

 private:
  // Write zeros behind a row, also up to a part beyond its end.
  RL_INLINE void pad_row(long row, uint8_t* out) const {
    constexpr uint8_t zeros[gathered_part / 2] = {};
    for (long k = s.depth(); k < row; k += sizeof zeros) __builtin_memcpy(out + k, zeros, sizeof zeros);
  }
};

// Gather the windows of `count` output pixels from number `first` on, over the channels of a group. Writes less than a part beyond
// the last row.
RL_KERNEL void gather_windows(const conv_shape& s, const byte_input& in, long group, long first, long count, uint8_t* out) {
  const window_gatherer windows(s, in, group);
  const long width = s.out_width(), height = s.out_height(), row = byte_row_bytes(s);
  for (long left = count; left > 0;) {
    const long column = first % width, line = first / width, end = smallest(width, column + left);
    windows.gather(line / height, line % height * s.stride_height - s.pad_height, column, end, row, out);
    out += (end - column) * row, first += end - column, left -= end - column;
  }
}

// A block of rows of A. No byte exceeds `largest`. Larger activations may have been clipped (`is_cut`) and moved to `outliers`.
struct byte_block {
  const uint8_t* rows = nullptr;
  long row = 0;  // in bytes
  int largest = 0;
  int16_t* widened = nullptr;
  bool is_widened = false, is_cut = false;
  byte_outliers outliers = {};
};

// Clip the rows of a block at `cap`. Return false, with the rows unchanged, if there are too many outliers.
RL_INLINE bool cut_block(const conv_shape& s, int cap, uint8_t* rows, long count, byte_outliers& outliers) {
  int32_t found = 0;
  for (long i = 0; i < count; ++i) {
    outliers.starts[i] = found;
    if (cut_row(rows + i * byte_row_bytes(s), s.depth(), cap, outliers, found)) continue;
    for (long j = 0; j <= i; ++j)
      for (long k = outliers.starts[j]; k < (j < i ? outliers.starts[j + 1] : found); ++k)
        rows[j * byte_row_bytes(s) + (outliers.found[k] & 0xffff)] += (uint8_t)(outliers.found[k] >> 16);
    return false;
  }
  outliers.starts[count] = found;
  return true;
}

// Return the largest activation of a block.
RL_INLINE int largest_of_block(const byte_block& block, long count, long depth) {
  if (multiplies_words()) return 255;
  if (block.row == depth) return largest_byte(block.rows, count * depth);
  int most = 0;
  for (long i = 0; i < count; ++i) most = (int)largest(most, largest_byte(block.rows + i * block.row, depth));
  return most;
}

// Gather the windows of a block of output pixels. `limits` are the limits of all panels that the block is multiplied with.
RL_INLINE byte_block gather_block(const conv_shape& s, const byte_input& in, const int32_t* limits, long group, long first,
                                  long count, void* scratch) {
  uint8_t* const own = (uint8_t*)scratch;
  byte_block made;
  made.widened = (int16_t*)(own + byte_block_rows(s) * byte_row_bytes(s));
  const bool in_place = s.pointwise() && !in.flip && s.group_channels() % byte_word == 0;
  made.rows = in_place ? in.data + first * s.channels + group * s.group_channels() : own;
  made.row = in_place ? s.channels : byte_row_bytes(s);
  if (!in_place) gather_windows(s, in, group, first, count, own);
  made.largest = largest_of_block(made, count, s.depth());
  const int cap = choose_cap(limits, made.largest, made.rows, made.row, count, s.depth());
  if (cap >= made.largest) return made;
  if (in_place) {
    for (long i = 0; i < count; ++i) copy_bytes(made.rows + i * made.row, own + i * byte_row_bytes(s), s.depth());
    made.rows = own, made.row = byte_row_bytes(s);
  }
  int32_t* const starts = (int32_t*)(made.widened + byte_block_rows(s) * byte_row_bytes(s));
  made.outliers = {starts, starts + byte_block_rows(s) + 1, outlier_room(s)};
  made.is_cut = cut_block(s, cap, own, count, made.outliers);
  if (made.is_cut) made.largest = cap;
  return made;
}

// The output channels of a group: the first, their count, and the initial sums of all panels.
struct byte_columns {
  long first, count;
  const int32_t* start;
};

// Add the initial sums of a panel to the sums of `count` rows, and emit them from row `first` on.
RL_INLINE void emit_sums(int32_t* c, long first, long count, long at, const byte_columns& columns, const sums_epilogue& emit) {
  for (int j = 0; j < tile_columns; j += lanes) {
    const vec<int32_t> start = load_bytes<vec<int32_t>>(columns.start + at + j);
    for (int r = 0; r < count; ++r) {
      const vec<int32_t> sum = load_bytes<vec<int32_t>>(c + r * tile_columns + j) + start;
      __builtin_memcpy(c + r * tile_columns + j, &sum, sizeof sum);
    }
  }
  emit(c, first, count, columns.first + at, smallest(columns.count - at, (long)tile_columns));
}

// Multiply a block by the panel that begins at column `at` of a group.
RL_INLINE void multiply_block(byte_block& block, long first, long count, const int8_t* panel, long depth, long at,
                              const byte_columns& columns, const sums_epilogue& emit) {
  const long words = byte_words(depth);
  const byte_way way = byte_way_for(facts_of(panel, depth)->limits, block.largest);
  if (way.widens && !block.is_widened) {
    for (long i = 0; i < count; ++i) widen_row(block.rows + i * block.row, words, block.widened + i * words * byte_word);
    block.is_widened = true;
  }
  const row_blocks cut(count, way.max_rows);
  for (long i = 0; i < cut.count; ++i) {
    alignas(64) int32_t c[tile_rows * tile_columns];
    const row_block rows = cut.at(i);
    const long row = way.widens ? words * byte_word : block.row;
    const void* const a = way.widens ? (const void*)(block.widened + rows.first * row) : block.rows + rows.first * row;
    way.tiles[rows.rows - 1](a, row, panel, words, c);
    if (block.is_cut) add_outliers(block.outliers, rows, panel, c);
    emit_sums(c, first + rows.first, rows.rows, at, columns, emit);
  }
}

// Compute the initial sums of each panel, tile_columns numbers each, and the largest limits over all panels.
RL_INLINE void begin_sums(long panels, long depth, const int8_t* packed, int32_t zero, int32_t* start, int32_t* limits) {
  for (long panel = 0; panel < panels; ++panel) {
    const panel_facts* const facts = facts_of(packed + panel * byte_panel_bytes(depth), depth);
    for (int j = 0; j < tile_columns; ++j) start[panel * tile_columns + j] = (activation_offset - zero) * facts->sums[j];
    for (int i = 0; i < chain_lengths; ++i) limits[i] = facts->limits[i] > limits[i] ? facts->limits[i] : limits[i];
  }
}

#endif  // RL_PREBUILT

// The epilogue gets output pixels and output channels. The groups' panels lie one after the other. Called by all threads of a
// parallel region, and ends with a barrier; scratch: byte_scratch_bytes(s) each.
void byte_convolution(const conv_shape& s, byte_input in, const int8_t* packed, void* scratch, sums_epilogue emit);

// Depthwise convolution: one channel and one output in each group. The weights [taps, channels] have 16 bits.
void byte_depthwise(const conv_shape& s, byte_input in, const int16_t* weight, sums_epilogue emit);

#ifndef RL_PREBUILT
// How tasks divide a layer: blocks of pixels, of groups, and cuts of the panels if blocks are too few for the threads.
struct byte_tasks {
  long blocks, groups, panels, share, cuts;

  RL_INLINE byte_tasks(long blocks, const conv_shape& s)
      : blocks(blocks), groups(s.groups), panels(byte_panels(s.outputs / s.groups)) {
    const long tasks = blocks * groups, wanted = 4 * thread_count();
    const long cuts_wanted = thread_count() == 1 || !tasks ? 1 : (wanted + tasks - 1) / tasks;
    share = (panels + cuts_wanted - 1) / cuts_wanted, cuts = (panels + share - 1) / share;
  }
  RL_INLINE long count() const { return blocks * groups * cuts; }
};

// A thread's scratch memory.
struct byte_scratch {
  int32_t* starts;
  long* offsets;
  char* rest;

  RL_INLINE byte_scratch(const conv_shape& s, void* scratch) {
    char* const own = (char*)scratch + thread_index() * byte_scratch_bytes(s);
    starts = (int32_t*)own;
    offsets = (long*)(own + (byte_starts_bytes(s) + 63) / 64 * 64);
    rest = (char*)offsets + (byte_offsets_bytes(s) + 63) / 64 * 64;
  }
};

#ifdef RL_TILES
// Return whether rows of A lie in the image as tile registers need them.
RL_INLINE bool lies_in_rows(const conv_shape& s, const byte_input& in) {
  return s.pointwise() && !in.flip && s.group_channels() == byte_row_bytes(s);
}

// Return the number of blocks of rows: at least 16 rows each, if there are so many, and no more than scratch memory holds.
RL_INLINE long row_blocks_of(const conv_shape& s, const byte_input& in, long rows) {
  const long fewest = 2 * register_rows, most = lies_in_rows(s, in) ? window_bytes / byte_row_bytes(s) : 0;
  const long limit = largest(fewest, byte_block_rows(s), most);
  return (rows + limit - 1) / limit;
}

// Return rows [first, first + count) of A as a block: where they lie, or gathered.
RL_INLINE window_block block_of_rows(const conv_shape& s, const byte_input& in, long group, long first, long count, char* scratch) {
  const bool in_place = lies_in_rows(s, in);
  const char* const rows = (const char*)in.data + first * s.channels + group * s.group_channels();
  if (!in_place) gather_windows(s, in, group, first, count, (uint8_t*)scratch);
  return {in_place ? rows : scratch, count, in_place ? s.channels : byte_row_bytes(s), count, count, 1, 1, first, 0};
}

// The panels of all groups: `bytes` each, with the initial sums of their columns; null for zeros.
template <class S> struct tile_panels {
  const char* first;
  long bytes;
  const S* starts;
};

// Compute a convolution in tile registers, with at least 16 output pixels. Elements of several bytes are channels of bytes here.
template <class Kind>
RL_INLINE void convolve_in_tiles(const conv_shape& s, const byte_input& in, const tile_panels<typename Kind::sum>& panels,
                                 const byte_scratch& own, const epilogue_for<typename Kind::sum>& emit) {
  window_plan plan(s, byte_row_bytes(s));
  const tile_region region(true, plan.step);
  const long rows = s.images * s.out_height() * s.out_width(), outputs = s.outputs / s.groups;
  if (plan.from_lines && thread_count() > 1) plan.cut(s, 4 * thread_count() / byte_panels(outputs));
  const long row_blocks = row_blocks_of(s, in, rows);
  const byte_tasks tasks(plan.from_lines ? line_block::count(s, plan) : row_blocks, s);
  const line_source source = {(const char*)in.data, in.filler, in.flip};
  const window_runs runs = {own.offsets, plan.runs, plan.run / plan.step, plan.step};
  const auto emit_sums = [&](const typename Kind::sum* c, long pixel, long pixels, long column) {
    emit(c, pixel, pixels, column, smallest(outputs - column % outputs, (long)tile_columns));
  };
  window_product<Kind> product;
  window_block block;
  long held = -1, group_held = -1;
  for (const long task : shared(tasks.count())) {
    const long at = task / tasks.cuts / s.groups, group = task / tasks.cuts % s.groups;
    if (held < 0) find_offsets(s, plan, own.offsets);
    if (plan.from_lines) {
      if (at != held) block = copy_lines(s, plan, source, line_block::at(s, plan, at), own.rest);
    } else if (at != held || group != group_held) {
      const long first = rows * at / row_blocks, end = rows * (at + 1) / row_blocks;
      block = block_of_rows(s, in, group, first, end - first, own.rest);
    }
    held = at, group_held = group;
    window_block part = block;
    if (plan.from_lines) part.rows += group * s.group_channels();
    const long first = task % tasks.cuts * tasks.share, end = smallest(tasks.panels, first + tasks.share);
    for (long panel = first; panel < end; ++panel) {
      const long number = group * tasks.panels + panel, ahead = number + 1 < s.groups * tasks.panels ? panels.bytes : 0;
      const char* const weights = panels.first + number * panels.bytes;
      const auto* const start = panels.starts ? panels.starts + number * tile_columns : nullptr;
      const long column = group * outputs + panel * tile_columns;
      product.multiply(part, runs, weights, start, {weights + panels.bytes, ahead}, column, emit_sums);
    }
    product.finish(emit_sums);
  }
}

RL_KERNEL void byte_convolution_in_tiles(const conv_shape& s, const byte_input& in, const int8_t* packed, void* scratch,
                                         const sums_epilogue& emit) {
  const byte_scratch own(s, scratch);
  int32_t limits[chain_lengths] = {};
  begin_sums(s.groups * byte_panels(s.outputs / s.groups), s.depth(), packed, in.zero(), own.starts, limits);
  convolve_in_tiles<unsigned_by_signed>(s, in, {(const char*)packed, byte_panel_bytes(s.depth()), own.starts}, own, emit);
}
#endif

RL_KERNEL void byte_convolution(const conv_shape& s, byte_input in, const int8_t* packed, void* scratch, sums_epilogue emit) {
  const long rows = s.images * s.out_height() * s.out_width(), most = byte_block_rows(s);
#ifdef RL_TILES
  if (rows >= register_rows && has_tiles<unsigned_by_signed>()) return byte_convolution_in_tiles(s, in, packed, scratch, emit);
#endif
  const long outputs = s.outputs / s.groups, depth = s.depth();
  const byte_tasks tasks((rows + most - 1) / most, s);
  const byte_scratch own(s, scratch);
  int32_t limits[chain_lengths] = {};
  byte_block block;
  long held = -1;
  for (const long task : shared(tasks.count())) {
    const long at = task / tasks.cuts, group = at / tasks.blocks, first = at % tasks.blocks * most;
    const long count = smallest(most, rows - first), from = task % tasks.cuts * tasks.share;
    if (held < 0) begin_sums(s.groups * tasks.panels, depth, packed, in.zero(), own.starts, limits);
    if (at != held) block = gather_block(s, in, limits, group, first, count, own.rest), held = at;
    for (long panel = from; panel < smallest(tasks.panels, from + tasks.share); ++panel) {
      const byte_columns columns = {group * outputs, outputs, own.starts + group * tasks.panels * tile_columns};
      multiply_block(block, first, count, packed + (group * tasks.panels + panel) * byte_panel_bytes(depth), depth,
                     panel * tile_columns, columns, emit);
    }
  }
}

RL_KERNEL void byte_depthwise(const conv_shape& s, byte_input in, const int16_t* weight, sums_epilogue emit) {
  const long width = s.out_width(), height = s.out_height();
  const int32_t zero = in.zero();
  for (const long line : shared(s.images * height)) {
    const long y = line % height * s.stride_height - s.pad_height;
    const uint8_t* const image = in.data + line / height * s.height * s.width * s.channels;
    const long first = y < 0 ? (-y + s.dilation_height - 1) / s.dilation_height : 0;
    for (long column = 0; column < width; ++column) {
      const long x = column * s.stride_width - s.pad_width;
      alignas(64) int32_t sums[tile_columns];
      const auto add_taps = [&](auto lane, long c, int32_t* out) {
        auto sum = lane.broadcast((int32_t)0);
        for (long ky = first; ky < s.kernel_height && y + ky * s.dilation_height < s.height; ++ky)
          for (long kx = 0; kx < s.kernel_width; ++kx) {
            const long at = x + kx * s.dilation_width;
            if (at < 0 || at >= s.width) continue;
            const auto bytes = lane.load(image + ((y + ky * s.dilation_height) * s.width + at) * s.channels + c);
            const auto flipped = cast<int32_t, uint8_t>(bytes) ^ (int32_t)in.flip;
            sum += (flipped - zero) * cast<int32_t, int16_t>(lane.load(weight + (ky * s.kernel_width + kx) * s.channels + c));
          }
        lane.store(out, sum);
      };
      for (long c = 0; c < s.channels; c += tile_columns) {
        const long left = smallest(s.channels - c, (long)tile_columns);
        for_each(left, [&](auto lane, long j) { add_taps(lane, c + j, sums + j); });
        emit(sums, line * width + column, 1, c, left);
      }
    }
  }
}
#endif  // RL_PREBUILT

// ---- packing of weights ------------------------------------------------------------------------------------------------

// Pack a weight [outputs, taps * channels / groups] as panels of each group. Called by all threads of a parallel region.
inline void pack_byte_layer(const int8_t* weight, long groups, long outputs, long depth, int8_t* packed) {
  for (long group = 0; group < groups; ++group)
    pack_bytes(weight + group * outputs * depth, depth, outputs, packed + group * packed_bytes_size(depth, outputs));
}

// Pack a weight [channels, taps] for byte_depthwise.
inline void pack_byte_taps(const int8_t* weight, long channels, long taps, int16_t* packed) {
  for (const long tap : shared(taps))
    for (long c = 0; c < channels; ++c) packed[tap * channels + c] = weight[c * taps + tap];
}

}  // namespace rl
