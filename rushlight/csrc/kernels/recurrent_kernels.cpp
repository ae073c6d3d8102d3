// A recurrent layer in one direction, float32: its steps, by recurrent.h, and backwards through them.
#include <rushlight/recurrent.h>

#include "variant.h"

namespace rl {

// Where backwards a step finds what belongs to some units of one sequence, and puts the gradients of what went into the gates.
struct gradient_places {
  long hidden;
  const float *saved, *old_state, *old_cell, *output;
  float *into_gates, *into_hidden, *carried;

  template <class Lane> RL_INLINE auto value(Lane lane, long i, long number) const {
    return lane.load(saved + number * hidden + i);
  }
  template <class Lane, class V> RL_INLINE void store(Lane lane, long i, long gate, V to_gate) const {
    lane.store(into_gates + gate * hidden + i, to_gate);
  }
};

// Kinds of layers backwards. `run` is given the gradient of a step's output. `carries` is whether part of the state's gradient
// reaches the step before past the gates; an LSTM carries that of its cell instead.

template <bool Relu> struct rnn_backward : rnn_step<Relu> {
  static constexpr bool carries = false;
  template <class Lane, class V> static RL_INLINE void run(Lane lane, long i, const gradient_places& at, V state) {
    const auto output = lane.load(at.output + i);
    if constexpr (Relu) at.store(lane, i, 0, where(gt(output, lane.broadcast(0.0f)), state, lane.broadcast(0.0f)));
    else at.store(lane, i, 0, state * (1.0f - output * output));
  }
};

struct lstm_backward : lstm_step {
  static constexpr bool carries = false;
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

struct gru_backward : gru_step {
  static constexpr bool carries = true;
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

template <class Kind> static void backward(const Recurrent& l, const RecurrentGradients& g) {
  const long hidden = l.hidden, depth = Kind::gates * hidden, panel = depth * tile_columns;
  const row_cut<float> cut(l.batch);
  float* panels = (float*)l.scratch;
  for (const long block : shared(unit_blocks(hidden)))
    pack_panel(l.weight + block * tile_columns, hidden, 1L, depth, units_at(hidden, block * tile_columns), panels + block * panel);
  for (long step = l.steps - 1; step >= -1; --step) {
    const long time = l.reverse ? l.steps - 1 - step : step, before = l.reverse ? time + 1 : time - 1;
    const long after = l.reverse ? time - 1 : time + 1;
    for (const long task : shared(unit_blocks(hidden) * cut.count)) {
      const long block = task / cut.count, first = block * tile_columns, width = units_at(hidden, first);
      const row_block rows = cut.at(task % cut.count);
      alignas(64) float sums[tile_rows * tile_columns];
      if (step + 1 < l.steps)
        cut.run(rows, g.into_hidden + after * l.batch * depth, depth, 1, panels + block * panel, depth, sums, false);
      for (int r = 0; r < rows.rows; ++r) {
        const long row = rows.first + r, own = row * hidden + first, place = (time * l.batch + row) * hidden;
        const long old = (before * l.batch + row) * hidden + first;
        float *sum = sums + r * tile_columns, *state = g.grad_state + own, *carried = g.carried + own;
        if (step + 1 == l.steps) __builtin_memcpy(sum, state, width * sizeof(float));
        if (Kind::carries && step + 1 < l.steps)
          for_each(width, [&](auto lane, long i) { lane.store(sum + i, lane.load(sum + i) + lane.load(carried + i)); });
        if (step < 0) {
          __builtin_memcpy(state, sum, width * sizeof(float));
          continue;
        }
        const float* const saved = l.workspace ? l.workspace + Kind::saved * place + first : nullptr;
        const float* const old_cell =
            step && saved ? l.workspace + Kind::saved * (before * l.batch + row) * hidden + (Kind::saved - 1) * hidden + first
                          : l.cell ? l.cell + own : nullptr;
        const gradient_places at = {hidden, saved, step ? l.output + old : l.state + own, old_cell, l.output + place + first,
                                    g.into_gates + Kind::gates * place + first, g.into_hidden + Kind::gates * place + first,
                                    carried};
        const float* const given = g.grad_output ? g.grad_output + place + first : nullptr;
        for_each(width, [&](auto lane, long i) {
          auto into = lane.load(sum + i);
          if (given) into = into + lane.load(given + i);
          Kind::run(lane, i, at, into);
        });
      }
    }
  }
}

int64_t recurrent_scratch(int64_t gates, int64_t hidden) { return gate_panels_size(gates, hidden) * (int64_t)sizeof(float); }

void recurrent(const Recurrent* operands) {
  const Recurrent& l = *operands;
  float* panels = (float*)l.scratch;
  pack_gates(l.weight, l.hidden, 1L, recurrent_gates[l.kind], l.hidden, panels);
  const recurrent_pass pass = {l.steps, l.batch, l.hidden, (bool)l.reverse, l.gates,     panels,
                               l.state, l.cell,  l.bias,   l.output,        l.last_cell, l.workspace};
  if (l.kind == RNN_RELU) recurrent_steps<rnn_step<true>>(&pass, 1);
  else if (l.kind == RNN_TANH) recurrent_steps<rnn_step<false>>(&pass, 1);
  else if (l.kind == LSTM) recurrent_steps<lstm_step>(&pass, 1);
  else recurrent_steps<gru_step>(&pass, 1);
}

void recurrent_backward(const Recurrent* operands, const RecurrentGradients* gradients) {
  if (operands->kind == RNN_RELU) backward<rnn_backward<true>>(*operands, *gradients);
  else if (operands->kind == RNN_TANH) backward<rnn_backward<false>>(*operands, *gradients);
  else if (operands->kind == LSTM) backward<lstm_backward>(*operands, *gradients);
  else backward<gru_backward>(*operands, *gradients);
}

}  // namespace rl
