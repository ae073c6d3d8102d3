// Windows of a convolution as rows of a matrix that tile registers read in place.
//
// A thread copies lines of channels-last images with their padding, so that the windows of a line, and those of the next line,
// begin at one distance from each other: rows of A in tile registers. Lines that are the row stride apart follow one another (a
// phase). Where a line ends, windows begin that lie in two lines: they are computed and dropped, few if lines are long. A window
// is read by runs of bytes that lie together: the taps of a kernel row, or single taps if columns are dilated or there are
// groups. A run is read in equal steps of whole words, at most a register's row, so that weights need no other order.
//
// Windows that cannot be read so (channels that are no whole words, one tap and a stride, many groups) are gathered as rows of
// one run, or read where they lie.
#pragma once

#include <rushlight/conv.h>
#include <rushlight/tile_registers.h>

namespace rl {

// Return the size of parts of `count` that are as equal as possible, each of at most `limit`.
constexpr long even_share(long count, long limit) {
  const long parts = (count + limit - 1) / limit;
  return parts ? (count + parts - 1) / parts : limit;
}

// Return the bytes of the longest equal steps of whole words into which a run can be divided; 0 if it is not whole words.
constexpr long tile_step(long run) {
  if (run <= 0 || run % 4) return 0;
  long steps = (run + register_bytes - 1) / register_bytes;
  while (run / 4 % steps) ++steps;
  return run / steps;
}

constexpr long window_bytes = 384 << 10;  // this many bytes of copied lines leave room for weights in the second-level cache

// How the windows of a convolution of bytes are read. Sizes are in bytes if they are not counts.
struct window_plan {
  bool from_lines;          // reads copied lines; else rows of one run
  long runs, run, step;     // a window's runs, and the steps of each
  long row, line, width;    // from a window to the next, from a line to the next, windows that begin in a line
  long phases, halo;        // phases of lines, and a phase's lines beyond those of output pixels
  long lines, images;       // output lines of each image, and images, that a block holds at most

  constexpr window_plan(const conv_shape& s, long depth)
      : from_lines(false), runs(1), run(depth), step(tile_step(depth)), row(depth), line(0), width(0), phases(1), halo(0), lines(0),
        images(0) {
    const bool joined = s.dilation_width == 1 && s.groups == 1;
    const long taps = s.kernel_height * s.kernel_width, pixel = s.channels;
    const long each = s.group_channels() * (joined ? s.kernel_width : 1), parts = tile_step(each);
    const bool one_tap = s.kernel_height == 1 && s.kernel_width == 1, empty = s.out_height() < 1 || s.out_width() < 1;
    if (one_tap || empty || !parts || 5 * parts < 3 * register_bytes) return;
    from_lines = true, runs = joined ? s.kernel_height : taps, run = each, step = parts;
    const long reach = (s.out_width() - 1) * s.stride_width + (s.kernel_width - 1) * s.dilation_width + 1;
    width = (reach + s.stride_width - 1) / s.stride_width, row = s.stride_width * pixel, line = width * row;
    const long height = (s.kernel_height - 1) * s.dilation_height;
    phases = height + 1 < s.stride_height ? height + 1 : s.stride_height, halo = height / s.stride_height;
    const long room = window_bytes / (phases * line);
    lines = even_share(s.out_height(), room > halo ? room - halo : 1);
    images = lines < s.out_height() ? 1 : even_share(s.images, room / (lines + halo) > 1 ? room / (lines + halo) : 1);
  }

  constexpr long plane() const { return images * (lines + halo) * line; }  // the bytes of a phase
  // Bytes of copied lines, and of what rows that are dropped read beyond them.
  constexpr long bytes() const { return from_lines ? phases * plane() + line + register_rows * row : 0; }

  // Cut blocks so that there are at least `wanted`, if lines suffice.
  RL_INLINE void cut(const conv_shape& s, long wanted) {
    const long blocks = ((s.images + images - 1) / images) * ((s.out_height() + lines - 1) / lines);
    if (blocks >= wanted) return;
    images = even_share(s.images, largest(s.images / wanted, 1L));
    if (images == 1) lines = even_share(s.out_height(), largest(s.images * s.out_height() / wanted, 1L));
  }
};

// A block of windows: rows of A, and the output pixels that they are of.
struct window_block {
  const char* rows = nullptr;
  long count = 0, row = 0;        // rows, and the bytes between them
  long width = 0, kept = 0;       // rows of a line, the first of which are of output pixels
  long height = 0, lines = 0;     // lines of an image, the first of which are of output pixels
  long first = 0, pixels = 0;     // the first output pixel, and the output pixels from an image to the next

  // Call emit(row of the block, rows, output pixel) for the output pixels of rows [from, end).
  template <class E> RL_INLINE void pixels_of(long from, long end, const E& emit) const {
    for (long line = from / width, column = from % width; from < end; ++line, column = 0) {
      const long next = smallest(end, from + width - column), last = smallest(next, from + kept - column);
      if (last > from && line % height < lines)
        emit(from, last - from, first + line / height * pixels + line % height * kept + column);
      from = next;
    }
  }
};

// Output lines of consecutive images: those from line `first` on of each.
struct line_block {
  long image, images, first, lines;

  // Return the number of blocks, and the one at a place.
  static RL_INLINE long count(const conv_shape& s, const window_plan& plan) {
    return (s.images + plan.images - 1) / plan.images * ((s.out_height() + plan.lines - 1) / plan.lines);
  }
  static RL_INLINE line_block at(const conv_shape& s, const window_plan& plan, long at) {
    const long cuts = (s.out_height() + plan.lines - 1) / plan.lines;
    const long image = at / cuts * plan.images, first = at % cuts * plan.lines;
    return {image, smallest(plan.images, s.images - image), first, smallest(plan.lines, s.out_height() - first)};
  }
};

// Images as they are stored, channels-last, and what surrounds them; all bytes are combined with `flip`.
struct line_source {
  const char* data;
  uint8_t filler, flip;
};

#ifndef RL_PREBUILT
RL_INLINE void flip_bytes(uint8_t* bytes, long count, uint8_t flip) {
  typedef uint8_t part __attribute__((vector_size(4 * lanes)));
  long i = 0;
  for (; i + (long)sizeof(part) <= count; i += sizeof(part)) {
    const part flipped = load_bytes<part>(bytes + i) ^ flip;
    __builtin_memcpy(bytes + i, &flipped, sizeof flipped);
  }
  for (; i < count; ++i) bytes[i] ^= flip;
}

// Copy a line's part that windows read, with padding; `y` may be outside of the image.
RL_INLINE void copy_line(const conv_shape& s, const window_plan& plan, const line_source& in, long image, long y, char* out) {
  const long pixel = s.channels, columns = plan.line / pixel, left = smallest(s.pad_width, columns);
  const long kept = y < 0 || y >= s.height ? 0 : smallest(s.width, columns - left), right = columns - left - kept;
  __builtin_memset(out, in.filler, left * pixel);
  if (kept) __builtin_memcpy(out + left * pixel, in.data + (image * s.height + y) * s.width * pixel, kept * pixel);
  __builtin_memset(out + (left + kept) * pixel, in.filler, right * pixel);
  if (in.flip) flip_bytes((uint8_t*)out, plan.line, in.flip);
}

// Copy the lines that a block's windows read; return the block.
RL_KERNEL window_block copy_lines(const conv_shape& s, const window_plan& plan, const line_source& in, const line_block& block,
                                  char* out) {
  const long height = block.lines + plan.halo;
  for (long phase = 0; phase < plan.phases; ++phase)
    for (long i = 0; i < block.images; ++i)
      for (long line = 0; line < height; ++line) {
        const long y = (block.first + line) * s.stride_height + phase - s.pad_height;
        copy_line(s, plan, in, block.image + i, y, out + phase * plan.plane() + (i * height + line) * plan.line);
      }
  const long width = s.out_width(), pixels = s.out_height() * width, lines = block.images * height - plan.halo;
  return {out, lines * plan.width - (plan.width - width), plan.row, plan.width, width, height, block.lines,
          block.image * pixels + block.first * width, pixels};
}

// Write the offset of each of a window's runs.
RL_INLINE void find_offsets(const conv_shape& s, const window_plan& plan, long* offsets) {
  const long columns = plan.from_lines ? plan.runs / s.kernel_height : 0;
  offsets[0] = 0;
  for (long y = 0; y < s.kernel_height; ++y)
    for (long x = 0; x < columns; ++x) {
      const long line = y * s.dilation_height, phase = line % s.stride_height;
      *offsets++ = phase * plan.plane() + line / s.stride_height * plan.line + x * s.dilation_width * s.channels;
    }
}
#endif  // RL_PREBUILT

#ifdef RL_TILES
// The runs of a window: their offsets, and the steps of each, `step` bytes long.
struct window_runs {
  const long* offsets;
  long count, steps, step;
};

// Compute c[16 or 32][32]: the sums of 16 windows from `first`, and of 16 from `second` if there are Two, times a panel, added to
// `start`; to zero if that is null.
template <class Kind, bool Two>
__attribute__((noinline)) void multiply_runs(const char* first, const char* second, long row, const window_runs& runs,
                                             const char* panel, const typename Kind::sum* start, typename Kind::sum* c,
                                             read_ahead ahead) {
  constexpr long pitch = tile_columns * 4;
  if (start) {
    asm volatile("tileloadd (%0,%1,1), %%tmm0\n\ttileloadd 64(%0,%1,1), %%tmm1" ::"r"(start), "r"(0L) : "memory");
    if constexpr (Two)
      asm volatile("tileloadd (%0,%1,1), %%tmm2\n\ttileloadd 64(%0,%1,1), %%tmm3" ::"r"(start), "r"(0L) : "memory");
  } else {
    asm volatile("tilezero %%tmm0\n\ttilezero %%tmm1" ::: "memory");
    if constexpr (Two) asm volatile("tilezero %%tmm2\n\ttilezero %%tmm3" ::: "memory");
  }
  frequent_stores stores(c);
  const long panel_step = runs.step / 4 * pitch, steps = runs.steps, step = runs.step;
  for (long i = 0; i < runs.count; ++i) {
    const char *a = first + runs.offsets[i], *b = second + runs.offsets[i];
    for (long k = 0; k < steps; ++k, a += step, b += step, panel += panel_step) {
      add_tile<Kind, Two>(a, b, row, panel, pitch);
      stores.step();
      ahead.step();
    }
  }
  store_tiles<Two>(c);
}

// Multiplies blocks of windows by panels, 32 windows at a time. Results are emitted while the next ones are computed: the processor
// executes both at once, as neither waits for the other. finish() must follow the last call.
template <class Kind> class window_product {
  using sum = typename Kind::sum;
  static constexpr long rows_at_once = 2 * register_rows;

  struct results {
    window_block block;
    long column, first, second, from, end;  // the first rows of both halves, and the rows to emit: [from, end)
  };

  alignas(64) sum sums_[2][rows_at_once * tile_columns];
  results pending_;
  int used_ = 0;
  bool has_pending_ = false;

  template <class E> RL_INLINE void emit_pending(const sum* c, const E& emit) const {
    const results& made = pending_;
    const auto emit_half = [&](long start, long from, long end) {
      made.block.pixels_of(from, smallest(end, made.block.count), [&](long row, long rows, long pixel) {
        emit(c + (row - start) * tile_columns, pixel, rows, made.column);
      });
    };
    const long middle = smallest(made.first + register_rows, made.end);
    emit_half(made.first, made.from, middle);
    if (middle < made.end) emit_half(made.second - register_rows, middle, made.end);
  }

 public:
  // Multiply a block by the panel of columns from `column` on. Calls emit(sums, pixel, pixels, column) for consecutive output
  // pixels. Where 16 does not divide the rows, the last are computed with some of those before.
  template <class E>
  RL_INLINE void multiply(const window_block& block, const window_runs& runs, const char* panel, const sum* start,
                          read_ahead ahead, long column, const E& emit) {
    const long count = largest(block.count, (long)register_rows), steps = runs.count * runs.steps;
    ahead = ahead.over((count + rows_at_once - 1) / rows_at_once * steps);
    for (long at = 0; at < count; at += rows_at_once, ahead.from += ahead.bytes * steps) {
      const long first = smallest(at, count - register_rows), next = first + register_rows;
      const long second = smallest(next, count - register_rows);
      const char *const a = block.rows + first * block.row, *const b = block.rows + second * block.row;
      sum* const c = sums_[used_];
      if (next < count) multiply_runs<Kind, true>(a, b, block.row, runs, panel, start, c, ahead);
      else multiply_runs<Kind, false>(a, nullptr, block.row, runs, panel, start, c, ahead);
      if (has_pending_) emit_pending(sums_[1 - used_], emit);
      pending_ = {block, column, first, second, at, smallest(at + rows_at_once, count)}, has_pending_ = true;
      used_ = 1 - used_;
    }
  }

  template <class E> RL_INLINE void finish(const E& emit) {
    if (has_pending_) emit_pending(sums_[1 - used_], emit);
    has_pending_ = false;
  }
};
#endif

}  // namespace rl
