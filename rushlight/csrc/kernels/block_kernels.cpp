// Block-quantized weights: products with rows of floats, and dequantization.
#include <rushlight/block_gemm.h>

#include "variant.h"

namespace rl {

// Call run(layout) with the layout that has this number in `core/blocks/formats.py`. Return 0 for unknown numbers.
template <class F> static int64_t with_layout(int number, const F& run) {
  switch (number) {
    case 2: return run(q4_0{});
    case 3: return run(q4_1{});
    case 6: return run(q5_0{});
    case 7: return run(q5_1{});
    case 8: return run(q8_0{});
    case 12: return run(q4_k{});
    case 13: return run(q5_k{});
    case 14: return run(q6_k{});
    case 205: return run(int4_32{});
    case 206: return run(int4_64{});
    case 207: return run(int4_128{});
    case 208: return run(int4_256{});
    default: return 0;
  }
}

int64_t block_row_bytes(int layout, int64_t depth) {
  return with_layout(layout, [&](auto kind) -> int64_t {
    return depth % kind.elements == 0 ? depth / kind.elements * kind.nbytes : 0;
  });
}

int64_t block_scratch(const BlockOperands* b) { return b->rows * (b->depth + b->depth / 4); }

// An epilogue that stores results at out[row][column]; rows are `width` floats long.
struct row_store {
  float* out;
  int64_t width;
  template <class Lane, class V> RL_INLINE void operator()(Lane lane, long row, long column, V value) const {
    lane.store(out + row * width + column, value);
  }
};

void block_product(const BlockOperands* b) {
  const row_store store{b->out, b->columns};
  const epilogue emit = epilogue_of(store);
  pack_byte_rows(b->x, b->depth, 1, b->depth, b->rows, (int8_t*)b->scratch);
  with_layout(b->layout, [&](auto kind) -> int64_t {
    block_gemm<decltype(kind)>(b->rows, (const int8_t*)b->scratch, b->blocks, b->row_bytes, b->columns, b->depth, emit);
    return 1;
  });
}

void block_elements(const BlockOperands* b) {
  const row_store store{b->out, b->depth};
  const epilogue emit = epilogue_of(store);
  with_layout(b->layout, [&](auto kind) -> int64_t {
    block_rows<decltype(kind)>(b->columns, b->blocks, b->row_bytes, b->depth, emit);
    return 1;
  });
}

}  // namespace rl
