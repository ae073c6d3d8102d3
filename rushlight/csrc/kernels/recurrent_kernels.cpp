// An LSTM layer in one direction, float32: its steps, by lstm.h, and backwards through them.
#include <rushlight/lstm.h>

#include "variant.h"

namespace rl {

int64_t lstm_scratch(int64_t hidden) { return gate_panels_size(hidden) * (int64_t)sizeof(float); }

void lstm(const Lstm* operands) {
  const Lstm& l = *operands;
  float* panels = (float*)l.scratch;
  pack_gates(l.weight, l.hidden, 1L, l.hidden, panels);
  const lstm_pass pass = {l.steps, l.batch, l.hidden, (bool)l.reverse, l.gates,   panels,
                          l.state, l.cell,  l.output, l.last_cell,     l.workspace};
  lstm_steps(&pass, 1);
}

// A step's memory, for one sequence: [4][hidden] gates, and the cells behind them in the workspace.
static RL_INLINE const float* saved_at(const Lstm& l, long time, long row) {
  return l.workspace + (time * l.batch + row) * (gate_count + 1) * l.hidden;
}
static RL_INLINE const float* cell_before(const Lstm& l, long step, long before, long row) {
  return step ? saved_at(l, before, row) + gate_count * l.hidden : l.cell + row * l.hidden;
}

// From the gradient of a step's output and cell those of its gates' inputs, and of the cell before.
static void gate_gradients(const Lstm& l, const float* grad_output, float* grad_cell, float* into_gates, long time,
                           long step, long before, long row, long first, const float* sums) {
  const float *saved = saved_at(l, time, row) + first, *old = cell_before(l, step, before, row) + first;
  const float* given = grad_output ? grad_output + (time * l.batch + row) * l.hidden + first : nullptr;
  float *to = into_gates + (time * l.batch + row) * gate_count * l.hidden + first, *to_cell = grad_cell + row * l.hidden + first;
  for_each(units_at(l.hidden, first), [&](auto lane, long i) {
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
  for (const long block : shared(unit_blocks(l.hidden)))
    pack_panel(l.weight + block * tile_columns, l.hidden, 1L, depth, units_at(l.hidden, block * tile_columns),
               panels + block * panel);
  for (long step = l.steps - 1; step >= -1; --step) {
    const long time = l.reverse ? l.steps - 1 - step : step, before = l.reverse ? time + 1 : time - 1;
    const long after = l.reverse ? time - 1 : time + 1;
    for (const long task : shared(unit_blocks(l.hidden) * cut.count)) {
      const long block = task / cut.count, first = block * tile_columns, width = units_at(l.hidden, first);
      const row_block rows = cut.at(task % cut.count);
      alignas(64) float sums[tile_rows * tile_columns];
      if (step + 1 < l.steps)
        cut.run(rows, g.into_gates + after * l.batch * depth, depth, 1, panels + block * panel, depth, sums, false);
      for (int r = 0; r < rows.rows; ++r) {
        float *sum = sums + r * tile_columns, *state = g.grad_state + (rows.first + r) * l.hidden + first;
        if (step + 1 == l.steps) __builtin_memcpy(sum, state, width * sizeof(float));
        if (step < 0) __builtin_memcpy(state, sum, width * sizeof(float));
        else gate_gradients(l, g.grad_output, g.grad_cell, g.into_gates, time, step, before, rows.first + r, first, sum);
      }
    }
  }
}

}  // namespace rl
