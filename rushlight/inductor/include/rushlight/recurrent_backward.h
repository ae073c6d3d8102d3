// Backward of recurrent layers (recurrent.h): the gradients of the gates' inputs, of the first state and of the first cell. The
// gradients of weights and inputs are matrix products of these.
#pragma once

#include <rushlight/recurrent.h>

namespace rl {

// The backward pass through a sequence in one direction. All arrays are contiguous. Inputs: the gradients of output, last state
// and last cell, each null if it is zero; pack_b's panels of the recurrent weights [gates hidden, hidden]; state and cell
// before the first step; the forward pass's output and workspace. Results: into_gates [steps, batch, gates hidden]; for a GRU
// into_hidden, the gradient of the state's contribution to the gates (others pass the same pointer twice); to_state [batch,
// hidden], the gradient of the first state; carried [batch, hidden]: for an LSTM the gradient of the first cell, for a GRU
// scratch.
struct recurrent_back_pass {
  long steps, batch, hidden;
  bool reverse;
  const float *grad_output, *grad_state, *grad_cell, *panels, *state, *cell, *output, *workspace;
  float *into_gates, *into_hidden, *to_state, *carried;
};

// The pointers of a backward step to the data of a block of units of one sequence, and to the gradients of its gates' inputs.
struct gradient_places {
  long hidden;
  const float *saved, *old_state, *old_cell, *output;
  float *into_gates, *into_hidden, *carried;

  template <class Lane> RL_INLINE auto value(Lane lane, long i, long number) const { return lane.load(saved + number * hidden + i); }
  template <class Lane, class V> RL_INLINE void store(Lane lane, long i, long gate, V gradient) const {
    lane.store(into_gates + gate * hidden + i, gradient);
  }
};

// The kinds of layers, backward. run() takes the gradient of a step's output. `carries`: part of the state's gradient reaches
// the previous step directly, not through the gates. `has_cell`: the cell's gradient does so too.

template <bool Relu> struct rnn_back : rnn_step<Relu> {
  static constexpr bool carries = false, has_cell = false;
  template <class Lane, class V> static RL_INLINE void run(Lane lane, long i, const gradient_places& at, V state) {
    const auto output = lane.load(at.output + i);
    if constexpr (Relu) at.store(lane, i, 0, where(gt(output, lane.broadcast(0.0f)), state, lane.broadcast(0.0f)));
    else at.store(lane, i, 0, state * (1.0f - output * output));
  }
};

struct lstm_back : lstm_step {
  static constexpr bool carries = false, has_cell = true;
  template <class Lane, class V> static RL_INLINE void run(Lane lane, long i, const gradient_places& at, V state) {
    const auto admit = at.value(lane, i, 0), forget = at.value(lane, i, 1), candidate = at.value(lane, i, 2);
    const auto show = at.value(lane, i, 3), squashed = tanh(at.value(lane, i, 4));
    const auto cell = lane.load(at.carried + i) + state * show * (1.0f - squashed * squashed);
    at.store(lane, i, 0, cell * candidate * admit * (1.0f - admit));
    at.store(lane, i, 1, cell * lane.load(at.old_cell + i) * forget * (1.0f - forget));
    at.store(lane, i, 2, cell * admit * (1.0f - candidate * candidate));
    at.store(lane, i, 3, state * squashed * show * (1.0f - show));
    lane.store(at.carried + i, cell * forget);
  }
};

struct gru_back : gru_step {
  static constexpr bool carries = true, has_cell = false;
  template <class Lane, class V> static RL_INLINE void run(Lane lane, long i, const gradient_places& at, V state) {
    const auto reset = at.value(lane, i, 0), update = at.value(lane, i, 1), candidate = at.value(lane, i, 2);
    const auto into = state * (1.0f - update) * (1.0f - candidate * candidate);
    const auto to_reset = into * at.value(lane, i, 3) * reset * (1.0f - reset);
    const auto to_update = state * (lane.load(at.old_state + i) - candidate) * update * (1.0f - update);
    at.store(lane, i, 0, to_reset);
    at.store(lane, i, 1, to_update);
    at.store(lane, i, 2, into);
    lane.store(at.into_hidden + i, to_reset);
    lane.store(at.into_hidden + at.hidden + i, to_update);
    lane.store(at.into_hidden + 2 * at.hidden + i, into * reset);
    lane.store(at.carried + i, state * update);
  }
};

// Copy `count` floats from `from` to `to`, or write zeros if `from` is null.
RL_INLINE void copy_or_clear(float* to, const float* from, long count) {
  if (from) __builtin_memmove(to, from, count * sizeof(float));
  else __builtin_memset(to, 0, count * sizeof(float));
}

// Compute one task of a step; step -1 computes the gradient of the first state.
template <class Kind>
RL_INLINE void recurrent_back_task(const recurrent_back_pass& pass, const row_cut<float>& cut, long step, long task) {
  const long hidden = pass.hidden, depth = Kind::gates * hidden, block = task / cut.count, first = block * tile_columns;
  const long time = pass.reverse ? pass.steps - 1 - step : step, width = units_at(hidden, first);
  const long before = pass.reverse ? time + 1 : time - 1, after = pass.reverse ? time - 1 : time + 1;
  const bool is_last = step + 1 == pass.steps;
  const row_block rows = cut.at(task % cut.count);
  alignas(64) float sums[tile_rows * tile_columns];
  if (!is_last)
    cut.run(rows, pass.into_hidden + after * pass.batch * depth, depth, 1, pass.panels + first * depth, depth, sums, false);
  for (int r = 0; r < rows.rows; ++r) {
    const long row = rows.first + r, own = row * hidden + first, place = (time * pass.batch + row) * hidden;
    const long old = (before * pass.batch + row) * hidden;
    float *sum = sums + r * tile_columns, *carried = pass.carried ? pass.carried + own : nullptr;
    if (is_last) {
      copy_or_clear(sum, pass.grad_state ? pass.grad_state + own : nullptr, width);
      if constexpr (Kind::has_cell) copy_or_clear(carried, pass.grad_cell ? pass.grad_cell + own : nullptr, width);
    } else if constexpr (Kind::carries) {
      for_each(width, [&](auto lane, long i) { lane.store(sum + i, lane.load(sum + i) + lane.load(carried + i)); });
    }
    if (step < 0) {
      __builtin_memcpy(pass.to_state + own, sum, width * sizeof(float));
      continue;
    }
    gradient_places at = {hidden, nullptr, (step ? pass.output + old : pass.state + row * hidden) + first, nullptr,
                          pass.output + place + first, pass.into_gates + Kind::gates * place + first,
                          pass.into_hidden + Kind::gates * place + first, carried};
    if constexpr (Kind::saved > 0) at.saved = pass.workspace + Kind::saved * place + first;
    if constexpr (Kind::has_cell)  // the cell is last in the workspace
      at.old_cell = step ? pass.workspace + Kind::saved * old + (Kind::saved - 1) * hidden + first : pass.cell + own;
    const float* const given = pass.grad_output ? pass.grad_output + place + first : nullptr;
    for_each(width, [&](auto lane, long i) {
      auto into = lane.load(sum + i);
      if (given) into = into + lane.load(given + i);
      Kind::run(lane, i, at, into);
    });
  }
}

// Run all passes, under the same conditions as recurrent_steps.
template <class Kind> __attribute__((noinline)) void recurrent_back(const recurrent_back_pass* passes, int count) {
  const long hidden = passes->hidden, batch = passes->batch, steps = passes->steps;
  const row_cut<float> cut(batch);
  const long tasks = unit_blocks(hidden) * cut.count;
  const bool share = shares_steps<Kind>(count, batch, hidden);
  for (long step = steps - 1; share && step >= -1; --step)
    for (const long task : shared(count * tasks)) recurrent_back_task<Kind>(passes[task / tasks], cut, step, task % tasks);
  if (share) return;
  for (const long at : shared(count))
    for (long step = steps - 1; step >= -1; --step)
      for (long task = 0; task < tasks; ++task) recurrent_back_task<Kind>(passes[at], cut, step, task);
}

RL_EXTERN(void recurrent_back<rnn_back<false>>(const recurrent_back_pass*, int))
RL_EXTERN(void recurrent_back<rnn_back<true>>(const recurrent_back_pass*, int))
RL_EXTERN(void recurrent_back<lstm_back>(const recurrent_back_pass*, int))
RL_EXTERN(void recurrent_back<gru_back>(const recurrent_back_pass*, int))

}  // namespace rl
