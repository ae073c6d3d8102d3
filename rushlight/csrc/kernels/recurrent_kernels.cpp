// The steps of an LSTM layer in one direction (Hochreiter and Schmidhuber 1997), float32, forwards and backwards.
//
// Hidden units go by blocks of a panel's columns. A task takes one block and some sequences of the batch: it multiplies
// with the panels of all four gates, so that the cells follow from what is still in registers and the first-level cache.
#include <rushlight/gemm.h>
#include <rushlight/math.h>

#include "variant.h"

namespace rl {

constexpr long gate_count = 4;  // input, forget, candidate, output

static RL_INLINE long blocks_of(long hidden) { return (hidden + tile_columns - 1) / tile_columns; }
static RL_INLINE long width_at(long hidden, long first) {
  return hidden - first < tile_columns ? hidden - first : tile_columns;
}

int64_t lstm_scratch(int64_t hidden) {
  return blocks_of(hidden) * gate_count * hidden * tile_columns * (int64_t)sizeof(float);
}

// body(block of hidden units, rows of the batch), shared among the threads; ends with a barrier.
template <class F> static RL_INLINE void for_blocks(const Lstm& l, const row_cut<float>& cut, const F& body) {
  for (const long task : shared(blocks_of(l.hidden) * cut.count)) body(task / cut.count, cut.at(task % cut.count));
}

// A step's memory, for one sequence: [4][hidden] gates, and the cells behind them in the workspace.
static RL_INLINE float* saved_at(const Lstm& l, long time, long row) {
  return l.workspace + (time * l.batch + row) * (gate_count + 1) * l.hidden;
}
static RL_INLINE const float* cell_before(const Lstm& l, long step, long before, long row) {
  return step ? saved_at(l, before, row) + gate_count * l.hidden : l.cell + row * l.hidden;
}

static void next_cells(const Lstm& l, long time, long step, long before, long row, long first, const float* sums) {
  const float *in = l.gates + (time * l.batch + row) * gate_count * l.hidden + first;
  const float* old = cell_before(l, step, before, row) + first;
  float *saved = saved_at(l, time, row) + first, *out = l.output + (time * l.batch + row) * l.hidden + first;
  for_each(width_at(l.hidden, first), [&](auto lane, long i) {
    const auto gate = [&](long g) {
      return lane.load(sums + g * tile_rows * tile_columns + i) + lane.load(in + g * l.hidden + i);
    };
    const auto admit = sigmoid(gate(0)), forget = sigmoid(gate(1)), candidate = tanh(gate(2)), show = sigmoid(gate(3));
    const auto cell = forget * lane.load(old + i) + admit * candidate;
    lane.store(saved + i, admit);
    lane.store(saved + l.hidden + i, forget);
    lane.store(saved + 2 * l.hidden + i, candidate);
    lane.store(saved + 3 * l.hidden + i, show);
    lane.store(saved + 4 * l.hidden + i, cell);
    lane.store(out + i, show * tanh(cell));
  });
}

void lstm(const Lstm* operands) {
  const Lstm& l = *operands;
  const long panel = l.hidden * tile_columns;
  const row_cut<float> cut(l.batch);
  float* panels = (float*)l.scratch;
  for (const long task : shared(blocks_of(l.hidden) * gate_count)) {
    const long first = task / gate_count * tile_columns, row = task % gate_count * l.hidden + first;
    pack_panel(l.weight + row * l.hidden, 1L, l.hidden, l.hidden, width_at(l.hidden, first), panels + task * panel);
  }
  for (long step = 0; step < l.steps; ++step) {
    const long time = l.reverse ? l.steps - 1 - step : step, before = l.reverse ? time + 1 : time - 1;
    const float* state = step ? l.output + before * l.batch * l.hidden : l.state;
    for_blocks(l, cut, [&](long block, row_block rows) {
      alignas(64) float sums[gate_count][tile_rows * tile_columns];
      for (long g = 0; g < gate_count; ++g)
        cut.run(rows, state, l.hidden, 1, panels + (block * gate_count + g) * panel, l.hidden, sums[g], false);
      for (int r = 0; r < rows.rows; ++r)
        next_cells(l, time, step, before, rows.first + r, block * tile_columns, sums[0] + r * tile_columns);
    });
  }
}

// From the gradient of a step's output and cell those of its gates' inputs, and of the cell before.
static void gate_gradients(const Lstm& l, const float* grad_output, float* grad_cell, float* into_gates, long time,
                           long step, long before, long row, long first, const float* sums) {
  const float *saved = saved_at(l, time, row) + first, *old = cell_before(l, step, before, row) + first;
  const float* given = grad_output ? grad_output + (time * l.batch + row) * l.hidden + first : nullptr;
  float *to = into_gates + (time * l.batch + row) * gate_count * l.hidden + first, *to_cell = grad_cell + row * l.hidden + first;
  for_each(width_at(l.hidden, first), [&](auto lane, long i) {
    const auto admit = lane.load(saved + i), forget = lane.load(saved + l.hidden + i);
    const auto candidate = lane.load(saved + 2 * l.hidden + i), show = lane.load(saved + 3 * l.hidden + i);
    const auto squashed = tanh(lane.load(saved + 4 * l.hidden + i));
    auto state = lane.load(sums + i);
    if (given) state = state + lane.load(given + i);
    const auto cell = lane.load(to_cell + i) + state * show * (1.0f - squashed * squashed);
    lane.store(to + i, cell * candidate * admit * (1.0f - admit));
    lane.store(to + l.hidden + i, cell * lane.load(old + i) * forget * (1.0f - forget));
    lane.store(to + 2 * l.hidden + i, cell * admit * (1.0f - candidate * candidate));
    lane.store(to + 3 * l.hidden + i, state * squashed * show * (1.0f - show));
    lane.store(to_cell + i, cell * forget);
  });
}

void lstm_backward(const Lstm* operands, const LstmGradients* gradients) {
  const Lstm& l = *operands;
  const LstmGradients& g = *gradients;
  const long depth = gate_count * l.hidden, panel = depth * tile_columns;
  const row_cut<float> cut(l.batch);
  float* panels = (float*)l.scratch;
  for (const long block : shared(blocks_of(l.hidden)))
    pack_panel(l.weight + block * tile_columns, l.hidden, 1L, depth, width_at(l.hidden, block * tile_columns),
               panels + block * panel);
  for (long step = l.steps - 1; step >= -1; --step) {
    const long time = l.reverse ? l.steps - 1 - step : step, before = l.reverse ? time + 1 : time - 1;
    const long after = l.reverse ? time - 1 : time + 1;
    for_blocks(l, cut, [&](long block, row_block rows) {
      const long first = block * tile_columns, width = width_at(l.hidden, first);
      alignas(64) float sums[tile_rows * tile_columns];
      if (step + 1 < l.steps)
        cut.run(rows, g.into_gates + after * l.batch * depth, depth, 1, panels + block * panel, depth, sums, false);
      for (int r = 0; r < rows.rows; ++r) {
        float *sum = sums + r * tile_columns, *state = g.grad_state + (rows.first + r) * l.hidden + first;
        if (step + 1 == l.steps) __builtin_memcpy(sum, state, width * sizeof(float));
        if (step < 0) __builtin_memcpy(state, sum, width * sizeof(float));
        else gate_gradients(l, g.grad_output, g.grad_cell, g.into_gates, time, step, before, rows.first + r, first, sum);
      }
    });
  }
}

}  // namespace rl
