// Elementwise loops over operands of any layout and type. The kernels take only contiguous elements of one type; other operands
// are copied to blocks that stay in the L1 cache.
#include <string.h>

#include "items.h"
#include "shape.h"

namespace {

constexpr int64_t MIN_STREAMED_BYTES = 24 << 20;  // results of at least this many bytes are written past the caches
constexpr int64_t MIN_LONG_ROW = 64;  // if rows are shorter than this, a block spans several rows
constexpr int64_t TILE_ROWS = 32, TILE_COLUMNS = 128;

constexpr int dtype_of_native[NATIVE_COUNT] = {RL_FLOAT32, RL_FLOAT64, RL_INT32, RL_INT64, RL_BOOL};

Native native_of(int dtype) {
  switch (dtype) {
    case RL_FLOAT16: case RL_BFLOAT16: case RL_FLOAT32: return NATIVE_FLOAT32;
    case RL_FLOAT64: return NATIVE_FLOAT64;
    case RL_INT64: return NATIVE_INT64;
    default: return NATIVE_INT32;
  }
}

enum ResultClass { FLOAT32, FLOATING, NUMBER, INTEGER, COMPARISON, PREDICATE, LOGICAL, SELECT };
constexpr ResultClass class_of[RL_POINTWISE_COUNT] = {
#define RL_CLASS(name, inputs, class) class,
    RL_POINTWISE(RL_CLASS)
#undef RL_CLASS
};
constexpr int inputs_of[RL_POINTWISE_COUNT] = {
#define RL_INPUTS(name, inputs, class) inputs,
    RL_POINTWISE(RL_INPUTS)
#undef RL_INPUTS
};
bool gives_bool(int code) { return class_of[code] >= COMPARISON && class_of[code] <= LOGICAL; }

// The kernel of an operator, and the types that it reads and writes.
struct Kernel {
  PointwiseSpan span;
  int in_dtype[RL_MAX_INPUTS], out_dtype;
};

bool find_kernel(int code, int dtype, Kernel* found) {
  if (code == COPY) return found->span = nullptr, true;
  const PointwiseSpan* row = rushlight_variant()->pointwise[code];
  Native native = class_of[code] == LOGICAL || (dtype == RL_BOOL && row[NATIVE_BOOL]) ? NATIVE_BOOL : native_of(dtype);
  found->span = row[native];
  if (!found->span) return false;
  for (int i = 0; i < RL_MAX_INPUTS; ++i) found->in_dtype[i] = dtype_of_native[native];
  if (class_of[code] == SELECT) found->in_dtype[0] = RL_BOOL;
  found->out_dtype = gives_bool(code) ? (int)RL_BOOL : dtype_of_native[native];
  return true;
}

// ---- running -------------------------------------------------------------------------------------------------------

// A loop ready to run. Inputs that are transposed relative to the output are read in tiles: the dimension along which they are
// contiguous is made dimension 1.
struct Run {
  Kernel kernel;
  Shape shape;
  Operand out, in[RL_MAX_INPUTS];
  int inputs;
  // Whether an operand's elements are contiguous in the loop's order; the output is the last entry. Return `count` elements of
  // an input as contiguous elements of the kernel's type.
  bool linear[RL_MAX_INPUTS + 1];
  bool transposed[RL_MAX_INPUTS], tiled, streams;
  const double* parameters;
};

bool is_linear(const Shape& shape, const Operand& operand) {
  int64_t expected = item_size[operand.dtype];
  for (int d = 0; d < shape.rank; ++d) {
    if (operand.strides[d] != expected) return false;
    expected *= shape.sizes[d];
  }
  return true;
}

int64_t tiles_of(int64_t size, int64_t tile) { return (size + tile - 1) / tile; }

// One thread's share of a run.
class Worker {
 public:
  explicit Worker(const Run& run) : run_(run) {}

  void work(int64_t begin, int64_t end) {
    if (run_.tiled) return tiles(begin, end);
    if (needs_no_blocks()) return plain(begin, end);
    Cursor cursor(&run_.shape, begin);
    const bool across = run_.shape.sizes[0] < MIN_LONG_ROW;
    while (begin < end) {
      int64_t count = end - begin < BLOCK ? end - begin : BLOCK;
      if (!across && cursor.left_in_row() < count) count = cursor.left_in_row();
      block(cursor, count);
      begin += count;
      if (across) cursor = Cursor(&run_.shape, begin);
      else cursor.advance(count);
    }
  }

 private:
  bool needs_no_blocks() const {
    if (run_.streams || !run_.kernel.span || !run_.linear[RL_MAX_INPUTS]) return false;
    if (run_.out.dtype != run_.kernel.out_dtype) return false;
    for (int k = 0; k < run_.inputs; ++k)
      if (!run_.linear[k] || run_.in[k].dtype != run_.kernel.in_dtype[k]) return false;
    return true;
  }

  void plain(int64_t begin, int64_t end) {
    const void* in[RL_MAX_INPUTS];
    for (int k = 0; k < run_.inputs; ++k) in[k] = run_.in[k].data + begin * item_size[run_.in[k].dtype];
    run_.kernel.span(run_.out.data + begin * item_size[run_.out.dtype], in, end - begin, run_.parameters);
  }

  // Run tiles [begin, end), counted along dimension 0, then 1, then the others.
  void tiles(int64_t begin, int64_t end) {
    const Shape& shape = run_.shape;
    const int64_t across = tiles_of(shape.sizes[0], TILE_COLUMNS), down = tiles_of(shape.sizes[1], TILE_ROWS);
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t column = tile % across * TILE_COLUMNS, row = tile / across % down * TILE_ROWS;
      Cursor cursor(&shape, (tile / across / down * shape.sizes[1] + row) * shape.sizes[0] + column);
      const int64_t width = smaller(shape.sizes[0] - column, TILE_COLUMNS), rows = smaller(shape.sizes[1] - row, TILE_ROWS);
      for (int k = 0; k < run_.inputs; ++k)
        if (run_.transposed[k])
          transpose_tile(item_size[run_.in[k].dtype], cursor.at(run_.in[k]), run_.in[k].strides[0], rows, width, tile_[k]);
      for (tile_row_ = 0; tile_row_ < rows; ++tile_row_, ++cursor.index[1]) block(cursor, width);
    }
  }

  static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

  // Transpose a tile: out[r][c] = in[c * stride + r].
  static void transpose_tile(int64_t size, const char* in, int64_t stride, int64_t rows, int64_t columns, char* out) {
    if (size == 4) rushlight_variant()->transpose_tile(in, stride, rows, columns, out, TILE_COLUMNS);
    else if (size == 8) transpose_items<uint64_t>(in, stride, rows, columns, out);
    else if (size == 2) transpose_items<uint16_t>(in, stride, rows, columns, out);
    else transpose_items<uint8_t>(in, stride, rows, columns, out);
  }

  template <class T>
  static void transpose_items(const char* in, int64_t stride, int64_t rows, int64_t columns, char* out) {
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t r = 0; r < rows; ++r) ((T*)out)[r * TILE_COLUMNS + c] = ((const T*)(in + c * stride))[r];
  }

  void block(const Cursor& cursor, int64_t count) {
    const void* in[RL_MAX_INPUTS];
    for (int k = 0; k < run_.inputs; ++k) in[k] = input(k, cursor, count);
    char* to = cursor.at(run_.out);
    const int64_t stride = run_.out.strides[0], size = item_size[run_.out.dtype];
    const bool in_place = (run_.linear[RL_MAX_INPUTS] || (stride == size && count <= cursor.left_in_row()));
    if (!run_.kernel.span) {
      char* target = in_place && !run_.streams ? to : raw_[RL_MAX_INPUTS];
      convert(run_.in[0].dtype, run_.out.dtype, in[0], target, count);
      return finish(cursor, target, to, count);
    }
    if (in_place && !run_.streams && run_.out.dtype == run_.kernel.out_dtype)
      return run_.kernel.span(to, in, count, run_.parameters);
    run_.kernel.span(native_[RL_MAX_INPUTS], in, count, run_.parameters);
    if (run_.out.dtype == run_.kernel.out_dtype) return finish(cursor, native_[RL_MAX_INPUTS], to, count);
    char* target = in_place && !run_.streams ? to : raw_[RL_MAX_INPUTS];
    convert(run_.kernel.out_dtype, run_.out.dtype, native_[RL_MAX_INPUTS], target, count);
    finish(cursor, target, to, count);
  }

  void finish(Cursor cursor, const char* from, char* to, int64_t count) {
    const int64_t size = item_size[run_.out.dtype];
    if (from == to) return;
    if (run_.streams) return rushlight_variant()->stream(to, from, count * size);
    if (run_.linear[RL_MAX_INPUTS]) return (void)memcpy(to, from, count * size);
    while (count > 0) {
      const int64_t part = cursor.left_in_row() < count ? cursor.left_in_row() : count;
      scatter(size, cursor.at(run_.out), from, run_.out.strides[0], part);
      from += part * size;
      count -= part;
      cursor.advance(part);
    }
  }

  // `count` elements of an input as contiguous elements of the kernel's type.
  const void* input(int k, const Cursor& cursor, int64_t count) {
    const Operand& operand = run_.in[k];
    const int wanted = run_.kernel.span ? run_.kernel.in_dtype[k] : operand.dtype;
    const char* at = run_.tiled && run_.transposed[k] ? tile_[k] + tile_row_ * TILE_COLUMNS * item_size[operand.dtype]
                                                  : cursor.at(operand);
    const bool across = count > cursor.left_in_row();
    if (!run_.linear[k] && !across && operand.strides[0] == 0) return fill(k, at, wanted, count);
    if (!run_.linear[k] && !(run_.tiled && run_.transposed[k]) && (across || operand.strides[0] != item_size[operand.dtype]))
      at = collect(k, operand, cursor, count);
    if (operand.dtype == wanted) return at;
    convert(operand.dtype, wanted, at, native_[k], count);
    return native_[k];
  }

  const char* collect(int k, const Operand& operand, Cursor cursor, int64_t count) {
    const int64_t size = item_size[operand.dtype];
    char* to = raw_[k];
    while (count > 0) {
      const int64_t part = cursor.left_in_row() < count ? cursor.left_in_row() : count;
      gather(size, to, cursor.at(operand), operand.strides[0], part);
      to += part * size;
      count -= part;
      cursor.advance(part);
    }
    return raw_[k];
  }

  // Fill a block with one value. The block is reused for the next rows.
  const void* fill(int k, const char* at, int wanted, int64_t count) {
    if (filled_from_[k] != at || filled_[k] < count) {
      alignas(8) char value[8];
      convert(run_.in[k].dtype, wanted, at, value, 1);
      gather(item_size[wanted], native_[k], value, 0, count);
      filled_from_[k] = at;
      filled_[k] = count;
    }
    return native_[k];
  }

  const Run& run_;
  const char* filled_from_[RL_MAX_INPUTS] = {};
  int64_t filled_[RL_MAX_INPUTS] = {};
  int64_t tile_row_ = 0;
  alignas(64) char native_[RL_MAX_INPUTS + 1][BLOCK * 8];
  alignas(64) char raw_[RL_MAX_INPUTS + 1][BLOCK * 8];
  alignas(64) char tile_[RL_MAX_INPUTS][TILE_ROWS * TILE_COLUMNS * 8];
};

bool shares_bytes(const Run& run) {
  for (int k = 0; k < run.inputs; ++k)
    if (run.in[k].data == run.out.data) return true;
  return false;
}

// Find inputs that are contiguous along a dimension other than 0, and make that dimension 1.
void find_transposed_inputs(Run* run, Operand* const* operands) {
  Shape& shape = run->shape;
  run->tiled = false;
  for (int k = 0; k < RL_MAX_INPUTS; ++k) run->transposed[k] = false;
  if (shape.rank < 2 || shape.sizes[0] < 16) return;
  int along = 0;
  for (int k = 0; k < run->inputs && !along; ++k)
    for (int d = 1; d < shape.rank && magnitude(run->in[k].strides[0]) > 64; ++d)
      if (run->in[k].strides[d] == item_size[run->in[k].dtype] && shape.sizes[d] >= 8) along = d;
  if (!along) return;
  if (along != 1) swap_dimensions(&shape, operands, 1 + run->inputs, 1, along);
  for (int k = 0; k < run->inputs; ++k)
    run->transposed[k] = run->in[k].strides[1] == item_size[run->in[k].dtype] && magnitude(run->in[k].strides[0]) > 64;
  run->tiled = true;
}

void execute_tiles(const Run& run, int64_t count) {
  int64_t tiles = tiles_of(run.shape.sizes[0], TILE_COLUMNS) * tiles_of(run.shape.sizes[1], TILE_ROWS);
  for (int d = 2; d < run.shape.rank; ++d) tiles *= run.shape.sizes[d];
  in_parallel(rushlight_threads_for(count), [&](int thread, int threads) {
    const Part part = part_of(tiles, thread, threads);
    if (part.first < part.last) Worker(run).work(part.first, part.last);
  });
}

void execute(const Run& run, int64_t count) {
  if (run.tiled) return execute_tiles(run, count);
  in_parallel(rushlight_threads_for(count), [&](int thread, int threads) {
    const Part part = part_of(count, thread, threads, 64);
    if (part.first < part.last) Worker(run).work(part.first, part.last);
  });
}

}  // namespace

int rushlight_run_loop(const Loop* loop) {
  Run run;
  if (!find_kernel(loop->code, loop->dtype, &run.kernel)) return 0;
  run.inputs = loop->inputs;
  run.parameters = loop->parameters;
  Operand* operands[1 + RL_MAX_INPUTS] = {&run.out, &run.in[0], &run.in[1], &run.in[2]};
  run.out.data = loop->out.data;
  run.out.dtype = loop->out.dtype;
  for (int k = 0; k < loop->inputs; ++k) {
    run.in[k].data = loop->in[k].data;
    run.in[k].dtype = loop->in[k].dtype;
  }
  run.shape = simplify(*loop, operands, 1 + loop->inputs);
  int64_t count = 1;
  for (int d = 0; d < run.shape.rank; ++d) count *= run.shape.sizes[d];
  if (!count) return 1;
  run.linear[RL_MAX_INPUTS] = is_linear(run.shape, run.out);
  find_transposed_inputs(&run, operands);
  for (int k = 0; k < run.inputs; ++k) run.linear[k] = is_linear(run.shape, run.in[k]);
  const int64_t row_bytes = run.shape.sizes[0] * item_size[run.out.dtype];
  run.streams = run.linear[RL_MAX_INPUTS] && count * item_size[run.out.dtype] >= MIN_STREAMED_BYTES &&
                (uintptr_t)run.out.data % 64 == 0 &&
                (run.shape.rank == 1 || row_bytes % 64 == 0) && !shares_bytes(run);
  execute(run, count);
  return 1;
}

int rushlight_pointwise(int code, int dtype, const void* const* inputs, unsigned scalars, void* out, int64_t count,
                        const double* parameters) {
  if (code < 0 || code >= RL_POINTWISE_COUNT || dtype < 0 || dtype >= RL_DTYPE_COUNT || count < 0) return 0;
  Kernel kernel;
  if (!find_kernel(code, dtype, &kernel)) return 0;
  const int last = inputs_of[code] - 1;
  if (!scalars && count < 32768 && kernel.in_dtype[last] == dtype && class_of[code] != LOGICAL)
    return kernel.span(out, inputs, count, parameters), 1;
  Loop loop;
  loop.code = code;
  loop.dtype = dtype;
  loop.rank = 1;
  loop.inputs = last + 1;
  loop.sizes[0] = count;
  loop.out = {(char*)out, gives_bool(code) ? (int)RL_BOOL : dtype, {}};
  loop.out.strides[0] = item_size[loop.out.dtype];
  for (int k = 0; k <= last; ++k) {
    loop.in[k] = {(char*)inputs[k], class_of[code] == SELECT && k == 0 ? (int)RL_BOOL : dtype, {}};
    loop.in[k].strides[0] = scalars >> k & 1 ? 0 : item_size[loop.in[k].dtype];
  }
  for (int i = 0; i < RL_MAX_PARAMETERS; ++i) loop.parameters[i] = parameters ? parameters[i] : 0;
  return rushlight_run_loop(&loop);
}
