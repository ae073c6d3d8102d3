// Fused attention, float32, for the usual widths of a head.
#include <rushlight/attention.h>

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

template <int D> static int attend_width(const Attention& a) {
  if (!a.mask) attend_all<D>(a, no_mask{});
  else if (a.mask_is_bool) attend_all<D>(a, as_mask<bool>(a));
  else attend_all<D>(a, as_mask<float>(a));
  return 1;
}

int attention_any(const Attention* a) {
  switch (a->width) {
    case 16: return attend_width<16>(*a);
    case 32: return attend_width<32>(*a);
    case 64: return attend_width<64>(*a);
    case 128: return attend_width<128>(*a);
    default: return 0;
  }
}

}  // namespace rl
