// Fused attention, float32, for the common head dimensions.
#include <rushlight/attention.h>
#include <rushlight/attention_backward.h>

#include "variant.h"

namespace rl {

static head_strides as_strides(const int64_t* s) { return {s[0], s[1], s[2], s[3]}; }

template <int D, class Mask> static void attend_all(const Attention& a, Mask mask) {
  attention<D>(a.q, as_strides(a.q_strides), a.k, as_strides(a.k_strides), a.v, as_strides(a.v_strides), a.out,
               as_strides(a.out_strides), a.sums, a.batches, a.heads, a.rows, a.keys, a.scale, a.causal, mask);
}

template <class T> static attention_mask<T> as_mask(const Attention& a) {
  return {(const T*)a.mask, a.mask_strides[0], a.mask_strides[1], a.mask_strides[2], a.mask_strides[3]};
}

template <int N> struct constant { static constexpr int value = N; };

// Call run(width, mask) with the head dimension as a compile-time constant. Return 0 for other dimensions.
template <class F> static int with_width_and_mask(const Attention& a, const F& run) {
  const auto masked = [&](auto width) {
    if (!a.mask) run(width, no_mask{});
    else if (a.mask_is_bool) run(width, as_mask<bool>(a));
    else run(width, as_mask<float>(a));
    return 1;
  };
  switch (a.width) {
    case 16: return masked(constant<16>{});
    case 32: return masked(constant<32>{});
    case 64: return masked(constant<64>{});
    case 128: return masked(constant<128>{});
    default: return 0;
  }
}

int attention_any(const Attention* a) {
  return with_width_and_mask(*a, [&](auto width, auto mask) { attend_all<width.value>(*a, mask); });
}

int64_t attention_scratch(const Attention* a) { return (attention_backward_scratch_bytes(a->keys, a->width) + 63) / 64 * 64; }

int attention_backward_any(const Attention* a, const AttentionGradients* g) {
  head_gradients at;
  at.q = {a->q, as_strides(a->q_strides)};
  at.k = {a->k, as_strides(a->k_strides)};
  at.v = {a->v, as_strides(a->v_strides)};
  at.out = {a->out, as_strides(a->out_strides)};
  at.grad = {g->grad, as_strides(g->grad_strides)};
  at.grad_q = {g->to_q, as_strides(g->to_q_strides)};
  at.grad_k = {g->to_k, as_strides(g->to_k_strides)};
  at.grad_v = {g->to_v, as_strides(g->to_v_strides)};
  at.lse = a->sums;
  at.lse_at = {a->heads * a->rows, a->rows, 1, 0};
  return with_width_and_mask(*a, [&](auto width, auto mask) {
    attention_backward<width.value>(at, a->batches, a->heads, a->rows, a->keys, a->scale, a->causal, g->scratch, mask);
  });
}

}  // namespace rl
