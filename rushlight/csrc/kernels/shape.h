// The dimensions of a loop over several operands: sorting, merging and iterating.
#pragma once

#include "engine.h"

namespace {

// The simplified dimensions of a loop. Dimension 0 is the innermost: dimensions are sorted by the output's strides, and
// contiguous ones are merged.
struct Shape {
  int rank;
  int64_t sizes[RL_MAX_DIMENSIONS];
};

int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

void swap_dimensions(Shape* shape, Operand* const* operands, int count, int a, int b) {
  const int64_t size = shape->sizes[a];
  shape->sizes[a] = shape->sizes[b];
  shape->sizes[b] = size;
  for (int k = 0; k < count; ++k) {
    int64_t* strides = operands[k]->strides;
    const int64_t stride = strides[a];
    strides[a] = strides[b];
    strides[b] = stride;
  }
}

void sort_dimensions(Shape* shape, Operand* const* operands, int count) {
  const int64_t* key = operands[0]->strides;
  for (int i = 1; i < shape->rank; ++i)
    for (int j = i; j > 0 && magnitude(key[j]) < magnitude(key[j - 1]); --j)
      swap_dimensions(shape, operands, count, j, j - 1);
}

void join_dimensions(Shape* shape, Operand* const* operands, int count) {
  int last = 0;
  for (int d = 1; d < shape->rank; ++d) {
    bool joins = true;
    for (int k = 0; k < count; ++k)
      joins = joins && operands[k]->strides[d] == operands[k]->strides[last] * shape->sizes[last];
    if (joins) {
      shape->sizes[last] *= shape->sizes[d];
      continue;
    }
    if (++last == d) continue;
    shape->sizes[last] = shape->sizes[d];
    for (int k = 0; k < count; ++k) operands[k]->strides[last] = operands[k]->strides[d];
  }
  shape->rank = last + 1;
}

Shape simplify(const Loop& loop, Operand* const* operands, int count) {
  Shape shape{0, {}};
  for (int d = loop.rank - 1; d >= 0; --d) {
    if (loop.sizes[d] == 1) continue;
    shape.sizes[shape.rank] = loop.sizes[d];
    const Operand* sources[] = {&loop.out, &loop.in[0], &loop.in[1], &loop.in[2]};
    for (int k = 0; k < count; ++k) operands[k]->strides[shape.rank] = sources[k]->strides[d];
    ++shape.rank;
  }
  if (!shape.rank) {
    shape.sizes[shape.rank++] = 1;
    for (int k = 0; k < count; ++k) operands[k]->strides[0] = item_size[operands[k]->dtype];
  }
  sort_dimensions(&shape, operands, count);
  join_dimensions(&shape, operands, count);
  return shape;
}

// A position in the loop. A row is a run along dimension 0.
struct Cursor {
  const Shape* shape;
  int64_t index[RL_MAX_DIMENSIONS];

  Cursor(const Shape* of, int64_t position) : shape(of) {
    for (int d = 0; d < of->rank; ++d) {
      index[d] = position % of->sizes[d];
      position /= of->sizes[d];
    }
  }
  int64_t left_in_row() const { return shape->sizes[0] - index[0]; }
  char* at(const Operand& operand) const {
    char* p = operand.data;
    for (int d = 0; d < shape->rank; ++d) p += index[d] * operand.strides[d];
    return p;
  }
  void advance(int64_t count) {  // `count` must not pass the end of the row
    index[0] += count;
    for (int d = 0; d + 1 < shape->rank && index[d] == shape->sizes[d]; ++d) {
      index[d] = 0;
      ++index[d + 1];
    }
  }
};

}  // namespace
