// The steps of recurrent layers, float32: Elman's RNN (1990), Hochreiter and Schmidhuber's LSTM (1997), Cho et al.'s GRU (2014).
//
// Hidden units are divided into blocks of a panel's columns. A task takes one block and some sequences of the batch, and
// multiplies with the panels of all gates, so that the new state is computed from sums that are still in registers and the
// first-level cache.
#pragma once

#include <rushlight/gemm.h>
#include <rushlight/math.h>

namespace rl {

// A layer's pass through a sequence in one direction. All arrays are contiguous. Inputs: gates [steps, batch, gates hidden],
// the contribution of the input and of all biases that can be added in advance; the panels of pack_gates; the state, and an
// LSTM's cell, before the first step, [batch, hidden]; a GRU's bias of the state's contribution, [gates hidden]. Results:
// output [steps, batch, hidden], an LSTM's last cell [batch, hidden], and, unless it is null, the workspace [steps, batch,
// saved hidden] that the backward reads.
struct recurrent_pass {
  long steps, batch, hidden;
  bool reverse;
  const float *gates, *panels, *state, *cell, *bias;
  float *output, *last_cell, *workspace;
};

// The pointers of one step to the data of a block of units of one sequence.
struct unit_places {
  long hidden;
  const float *sums, *gates, *bias, *old_state, *old_cell;
  float *output, *cell, *saved;

  // The recurrent weights times the state for a gate, without the contribution of the input.
  template <class Lane> RL_INLINE auto state_sum(Lane lane, long i, long gate) const {
    return lane.load(sums + gate * tile_rows * tile_columns + i);
  }
  template <class Lane> RL_INLINE auto input_sum(Lane lane, long i, long gate) const { return lane.load(gates + gate * hidden + i); }
  template <class Lane> RL_INLINE auto sum(Lane lane, long i, long gate) const {
    return state_sum(lane, i, gate) + input_sum(lane, i, gate);
  }
  template <class Lane, class... V> RL_INLINE void save(Lane lane, long i, V... values) const {
    if (!saved) return;
    long at = i;
    ((lane.store(saved + at, values), at += hidden), ...);
  }
};

// The kinds of layers. `gates` is the number of gates, `saved` the number of workspace values of a unit; run() computes a step.

template <bool Relu> struct rnn_step {
  static constexpr long gates = 1, saved = 0;
  template <class Lane> static RL_INLINE void run(Lane lane, long i, const unit_places& at) {
    if constexpr (Relu) lane.store(at.output + i, relu(at.sum(lane, i, 0)));
    else lane.store(at.output + i, tanh(at.sum(lane, i, 0)));
  }
};

struct lstm_step {
  static constexpr long gates = 4, saved = 5;  // input, forget, candidate, output; then the cell
  template <class Lane> static RL_INLINE void run(Lane lane, long i, const unit_places& at) {
    const auto admit = sigmoid(at.sum(lane, i, 0)), forget = sigmoid(at.sum(lane, i, 1));
    const auto candidate = tanh(at.sum(lane, i, 2)), show = sigmoid(at.sum(lane, i, 3));
    const auto cell = forget * lane.load(at.old_cell + i) + admit * candidate;
    lane.store(at.cell + i, cell);
    lane.store(at.output + i, show * tanh(cell));
    at.save(lane, i, admit, forget, candidate, show, cell);
  }
};

struct gru_step {
  static constexpr long gates = 3, saved = 4;  // reset, update, candidate; then the state's contribution to the candidate
  template <class Lane> static RL_INLINE void run(Lane lane, long i, const unit_places& at) {
    const auto biased = [&](long gate) { return at.state_sum(lane, i, gate) + lane.load(at.bias + gate * at.hidden + i); };
    const auto reset = sigmoid(at.input_sum(lane, i, 0) + biased(0)), update = sigmoid(at.input_sum(lane, i, 1) + biased(1));
    const auto by_state = biased(2), candidate = tanh(at.input_sum(lane, i, 2) + reset * by_state);
    lane.store(at.output + i, candidate + update * (lane.load(at.old_state + i) - candidate));
    at.save(lane, i, reset, update, candidate, by_state);
  }
};

// The number of blocks of hidden units, and the number of units in the block that begins with unit `first`.
constexpr long unit_blocks(long hidden) { return (hidden + tile_columns - 1) / tile_columns; }
RL_INLINE long units_at(long hidden, long first) { return smallest(hidden - first, (long)tile_columns); }

// Floats of the panels that pack_gates writes.
constexpr long gate_panels_size(long gates, long hidden) { return unit_blocks(hidden) * gates * hidden * tile_columns; }

// Pack the recurrent weights [gates hidden, hidden], read by element strides, in panels: for each block the panels of its
// gates.
void pack_gates(const float* weight, long row, long column, long gates, long hidden, float* panels);

#ifndef RL_PREBUILT
RL_KERNEL void pack_gates(const float* weight, long row, long column, long gates, long hidden, float* panels) {
  for (const long task : shared(unit_blocks(hidden) * gates)) {
    const long first = task / gates * tile_columns, at = task % gates * hidden + first;
    pack_panel(weight + at * row, column, row, hidden, units_at(hidden, first), panels + task * hidden * tile_columns);
  }
}
#endif  // RL_PREBUILT

// Compute one task of a step.
template <class Kind>
RL_INLINE void recurrent_task(const recurrent_pass& pass, const row_cut<float>& cut, long step, long task) {
  const long hidden = pass.hidden, block = task / cut.count, first = block * tile_columns, panel = hidden * tile_columns;
  const long time = pass.reverse ? pass.steps - 1 - step : step, before = pass.reverse ? time + 1 : time - 1;
  const row_block rows = cut.at(task % cut.count);
  const float* state = step ? pass.output + before * pass.batch * hidden : pass.state;
  const float* cell = step ? pass.last_cell : pass.cell;
  alignas(64) float sums[Kind::gates][tile_rows * tile_columns];
  for (long g = 0; g < Kind::gates; ++g)
    cut.run(rows, state, hidden, 1, pass.panels + (block * Kind::gates + g) * panel, hidden, sums[g], false);
  for (int r = 0; r < rows.rows; ++r) {
    const long row = rows.first + r, place = time * pass.batch + row, own = row * hidden + first;
    const unit_places at = {
        hidden, sums[0] + r * tile_columns, pass.gates + place * Kind::gates * hidden + first,
        pass.bias ? pass.bias + first : nullptr, state + own, cell ? cell + own : nullptr, pass.output + place * hidden + first,
        pass.last_cell ? pass.last_cell + own : nullptr,
        pass.workspace ? pass.workspace + place * Kind::saved * hidden + first : nullptr};
    for_each(units_at(hidden, first), [&](auto lane, long i) { Kind::run(lane, i, at); });
  }
}

// Threads share a step if it has at least this many operations, which outweigh the barrier at its end. With few sequences,
// reading the weights from the caches costs as much as the operations of four sequences.
constexpr long min_shared_operations = 100000;

// Whether threads share each step of `count` passes, instead of taking one pass each.
template <class Kind> RL_INLINE bool shares_steps(int count, long batch, long hidden) {
  return count < thread_count() && 2 * Kind::gates * hidden * hidden * largest(batch, 4L) >= min_shared_operations;
}

// Run all passes concurrently; they have the same sizes and are independent. Called by all threads of a region; ends with a
// barrier.
template <class Kind> __attribute__((noinline)) void recurrent_steps(const recurrent_pass* passes, int count) {
  const long hidden = passes->hidden, batch = passes->batch, steps = passes->steps;
  const row_cut<float> cut(batch);
  const long tasks = unit_blocks(hidden) * cut.count;
  const bool share = shares_steps<Kind>(count, batch, hidden);
  for (long step = 0; share && step < steps; ++step)
    for (const long task : shared(count * tasks)) recurrent_task<Kind>(passes[task / tasks], cut, step, task % tasks);
  if (share) return;
  for (const long at : shared(count))
    for (long step = 0; step < steps; ++step)
      for (long task = 0; task < tasks; ++task) recurrent_task<Kind>(passes[at], cut, step, task);
}

RL_EXTERN(void recurrent_steps<rnn_step<false>>(const recurrent_pass*, int))
RL_EXTERN(void recurrent_steps<rnn_step<true>>(const recurrent_pass*, int))
RL_EXTERN(void recurrent_steps<lstm_step>(const recurrent_pass*, int))
RL_EXTERN(void recurrent_steps<gru_step>(const recurrent_pass*, int))

}  // namespace rl
