// The steps of LSTM layers (Hochreiter and Schmidhuber 1997), float32.
//
// Hidden units go by blocks of a panel's columns. A task takes one block and some sequences of the batch: it multiplies
// with the panels of all four gates, so that the cells follow from what is still in registers and the first-level cache.
#pragma once

#include <rushlight/gemm.h>
#include <rushlight/math.h>

namespace rl {

constexpr long gate_count = 4;  // input, forget, candidate, output

// A layer's way through a sequence in one direction. All is contiguous: gates [steps, batch, 4 hidden], what the input and the
// biases add to them; panels of pack_gates; state and cell before the first step, [batch, hidden]. Results: output [steps,
// batch, hidden], the last cell [batch, hidden], and unless it is null the workspace [steps, batch, 5 hidden], which has the
// gates and the cell of each step.
struct lstm_pass {
  long steps, batch, hidden;
  bool reverse;
  const float *gates, *panels, *state, *cell;
  float *output, *last_cell, *workspace;
};

// Blocks of hidden units, and how many units the one that begins with `first` has.
constexpr long unit_blocks(long hidden) { return (hidden + tile_columns - 1) / tile_columns; }
RL_INLINE long units_at(long hidden, long first) { return smallest(hidden - first, (long)tile_columns); }

// Floats of pack_gates' panels.
constexpr long gate_panels_size(long hidden) { return unit_blocks(hidden) * gate_count * hidden * tile_columns; }

// The recurrent weights [4 hidden, hidden], by element strides, in panels: for each block those of its four gates.
void pack_gates(const float* weight, long row, long column, long hidden, float* panels);

// All passes, which have the same sizes and do not need one another, at the same time. Called by all threads of a region;
// ends with a barrier.
void lstm_steps(const lstm_pass* passes, int count);

#ifndef RL_PREBUILT
RL_KERNEL void pack_gates(const float* weight, long row, long column, long hidden, float* panels) {
  for (const long task : shared(unit_blocks(hidden) * gate_count)) {
    const long first = task / gate_count * tile_columns, at = task % gate_count * hidden + first;
    pack_panel(weight + at * row, column, row, hidden, units_at(hidden, first), panels + task * hidden * tile_columns);
  }
}

// From a step's sums of weights and states the cells of one sequence, from unit `first` on, and what they give.
RL_INLINE void next_cells(const lstm_pass& pass, long time, long row, long first, const float* old_cell,
                                 const float* sums) {
  const long hidden = pass.hidden, place = time * pass.batch + row;
  const float *in = pass.gates + place * gate_count * hidden + first, *old = old_cell + row * hidden + first;
  float *kept = pass.last_cell + row * hidden + first, *out = pass.output + place * hidden + first;
  float* saved = pass.workspace ? pass.workspace + place * (gate_count + 1) * hidden + first : nullptr;
  for_each(units_at(hidden, first), [&](auto lane, long i) {
    const auto gate = [&](long g) {
      return lane.load(sums + g * tile_rows * tile_columns + i) + lane.load(in + g * hidden + i);
    };
    const auto admit = sigmoid(gate(0)), forget = sigmoid(gate(1)), candidate = tanh(gate(2)), show = sigmoid(gate(3));
    const auto cell = forget * lane.load(old + i) + admit * candidate;
    lane.store(kept + i, cell);
    lane.store(out + i, show * tanh(cell));
    if (saved) {
      lane.store(saved + i, admit);
      lane.store(saved + hidden + i, forget);
      lane.store(saved + 2 * hidden + i, candidate);
      lane.store(saved + 3 * hidden + i, show);
      lane.store(saved + 4 * hidden + i, cell);
    }
  });
}

// One task of a step.
RL_INLINE void lstm_task(const lstm_pass& pass, const row_cut<float>& cut, long step, long task) {
  const long hidden = pass.hidden, block = task / cut.count, panel = hidden * tile_columns;
  const long time = pass.reverse ? pass.steps - 1 - step : step, before = pass.reverse ? time + 1 : time - 1;
  const row_block rows = cut.at(task % cut.count);
  const float* state = step ? pass.output + before * pass.batch * hidden : pass.state;
  const float* cell = step ? pass.last_cell : pass.cell;
  alignas(64) float sums[gate_count][tile_rows * tile_columns];
  for (long g = 0; g < gate_count; ++g)
    cut.run(rows, state, hidden, 1, pass.panels + (block * gate_count + g) * panel, hidden, sums[g], false);
  for (int r = 0; r < rows.rows; ++r)
    next_cells(pass, time, rows.first + r, block * tile_columns, cell, sums[0] + r * tile_columns);
}

// Operations of a step that are worth the barrier which ends it where threads share it. Weights of few sequences are read from
// the caches for as many operations as four sequences take.
constexpr long shared_step = 100000;

RL_KERNEL void lstm_steps(const lstm_pass* passes, int count) {
  const long hidden = passes->hidden, batch = passes->batch, steps = passes->steps;
  const row_cut<float> cut(batch);
  const long tasks = unit_blocks(hidden) * cut.count;
  const bool share = count < thread_count() && 2 * gate_count * hidden * hidden * largest(batch, 4) >= shared_step;
  for (long step = 0; share && step < steps; ++step)
    for (const long task : shared(count * tasks)) lstm_task(passes[task / tasks], cut, step, task % tasks);
  if (share) return;
  for (const long at : shared(count))
    for (long step = 0; step < steps; ++step)
      for (long task = 0; task < tasks; ++task) lstm_task(passes[at], cut, step, task);
}
#endif  // RL_PREBUILT

}  // namespace rl
