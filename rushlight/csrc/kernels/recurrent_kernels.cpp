// A recurrent layer in one direction, float32: forward steps and backward steps.
#include <rushlight/recurrent_backward.h>

#include "variant.h"

namespace rl {

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
  const Recurrent& l = *operands;
  const RecurrentGradients& g = *gradients;
  float* panels = (float*)l.scratch;
  pack_b(l.weight, l.hidden, 1L, recurrent_gates[l.kind] * l.hidden, l.hidden, panels);
  const recurrent_back_pass pass = {l.steps, l.batch, l.hidden, (bool)l.reverse, g.grad_output, g.grad_state,  g.carried, panels,
                                    l.state, l.cell,  l.output, l.workspace,     g.into_gates,  g.into_hidden, g.grad_state, g.carried};
  if (l.kind == RNN_RELU) recurrent_back<rnn_back<true>>(&pass, 1);
  else if (l.kind == RNN_TANH) recurrent_back<rnn_back<false>>(&pass, 1);
  else if (l.kind == LSTM) recurrent_back<lstm_back>(&pass, 1);
  else recurrent_back<gru_back>(&pass, 1);
}

}  // namespace rl
