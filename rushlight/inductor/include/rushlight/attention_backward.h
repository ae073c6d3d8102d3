// Fused scaled-dot-product attention, backward, fp32, from the log-sum-exp that the forward saves.
//
// With P = exp(scale Q K^T + mask - lse) and delta = the row sums of dO * O (FlashAttention-2, Dao 2023):
//   dV = P^T dO,  dS = scale P * (dO V^T - delta),  dQ = dS K,  dK = dS^T Q.
// As in the forward, NR queries lie across the lanes: scores and their gradients are [keys][NR] blocks that stay in the cache.
// Such a block is the packed panel of the product for dQ and, read by rows, the left operand of the products for dK and dV,
// whose sums over the queries a task collects in scratch memory. A task is one head.
#pragma once

#include <rushlight/attention.h>

namespace rl {

// The number of floats of one head's dK or dV, in panels: [ceil(D / NR)][keys][NR].
constexpr long head_panels(long depth) { return (depth + tile_columns - 1) / tile_columns; }
constexpr long head_floats(long keys, long depth) { return head_panels(depth) * keys * tile_columns; }

// The bytes of scratch memory that a thread of attention_backward needs.
constexpr long attention_backward_scratch_bytes(long keys, long depth) {
  return 2 * (head_floats(keys, depth) + keys * depth) * (long)sizeof(float);
}

// Add to sums[s][0..D) the sum over i < queries of block[s][i] * rows[i][0..D), for `keys` keys from `first`.
template <int D>
RL_INLINE void add_products(const float* block, long queries, const float* rows, long first, long keys, long all_keys,
                            float* sums) {
  const row_cut<float> cut(keys);
  for (long panel = 0; panel < head_panels(D); ++panel) {
    const float* b = rows + panel * tile_columns * tile_columns;
    float* c = sums + (panel * all_keys + first) * tile_columns;
    for (long i = 0; i < cut.count; ++i)
      cut.run(cut.at(i), block, tile_columns, 1, b, queries, c + cut.at(i).first * tile_columns, true);
  }
}

// Pack `queries` rows by panels of columns: rows[panel][i][0..NR).
template <int D> RL_INLINE void pack_rows(const float* from, const head_strides& at, long queries, float* rows) {
  for (long panel = 0; panel < head_panels(D); ++panel) {
    const long first = panel * tile_columns, width = D - first < tile_columns ? D - first : tile_columns;
    pack_panel(from + first * at.column, at.row, at.column, queries, width, rows + first * tile_columns);
  }
}

// Store sums that are in panels as plain rows.
template <int D> RL_INLINE void store_head(const float* sums, long keys, float* out, const head_strides& at) {
  for (long panel = 0; panel < head_panels(D); ++panel, sums += keys * tile_columns) {
    const long first = panel * tile_columns, width = D - first < tile_columns ? D - first : tile_columns;
    for (long s = 0; s < keys; ++s)
      for (long j = 0; j < width; ++j) out[s * at.row + (first + j) * at.column] = sums[s * tile_columns + j];
  }
}

// The operands and results of the backward.
struct head_gradients {
  heads_of<const float> q, k, v, out, grad;
  heads_of<float> grad_q, grad_k, grad_v;
  const float* lse;
  head_strides lse_at;
};

// Compute dQ of one panel, of which `queries` queries exist, and add its contributions to the sums for dK and dV.
template <int D, class Mask>
RL_INLINE void attend_backward(const head_gradients& at, long batch, long head, long query, long queries, long keys,
                               float scale, bool causal, const Mask& mask, float* sums_k, float* sums_v) {
  const vector_lane lane;
  const row_cut<float> cut(D);
  constexpr long rows_floats = head_panels(D) * tile_columns * tile_columns;
  alignas(64) float q[D * tile_columns], grad[D * tile_columns], result[D * tile_columns];
  alignas(64) float q_rows[rows_floats], grad_rows[rows_floats];
  alignas(64) float weights[key_block * tile_columns], change[key_block * tile_columns], sums[tile_columns];
  pack_panel(at.q(batch, head, query), at.q.at.column, at.q.at.row, D, queries, q);
  pack_panel(at.grad(batch, head, query), at.grad.at.column, at.grad.at.row, D, queries, grad);
  pack_panel(at.out(batch, head, query), at.out.at.column, at.out.at.row, D, queries, result);
  pack_rows<D>(at.q(batch, head, query), at.q.at, queries, q_rows);
  pack_rows<D>(at.grad(batch, head, query), at.grad.at, queries, grad_rows);
  const float* lse = at.lse + batch * at.lse_at.batch + head * at.lse_at.head + query * at.lse_at.row;
  // A huge log-sum-exp gives queries that do not exist weights of 0.
  for (long i = 0; i < tile_columns; ++i) sums[i] = i < queries ? lse[i * at.lse_at.row] : 1e30f;
  vec<float> delta[2] = {};
  for (long d = 0; d < D; ++d)
    for (int j = 0; j < 2; ++j) {
      const long place = d * tile_columns + j * lanes;
      delta[j] += lane.load(result + place) * lane.load(grad + place);
      lane.store(q + place, lane.load(q + place) * scale);
    }

  const long end = causal && query + queries < keys ? query + queries : keys;
  for (long first = 0; first < end; first += key_block) {
    const long count = end - first < key_block ? end - first : key_block;
    attention_scores(at.k(batch, head, first), at.k.at, count, q, D, weights);
    mask.apply(batch, head, query, queries, first, count, weights);
    if (causal && first + count > query) apply_causal(first, count, query, weights);
    attention_scores(at.v(batch, head, first), at.v.at, count, grad, D, change);
    for (long s = 0; s < count; ++s)
      for (int j = 0; j < 2; ++j) {
        const long place = s * tile_columns + j * lanes;
        const vec<float> weight = exp_nonpositive(lane.load(weights + place) - lane.load(sums + j * lanes));
        lane.store(weights + place, weight);
        lane.store(change + place, (lane.load(change + place) - delta[j]) * weight * scale);
      }
    add_products<D>(weights, queries, grad_rows, first, count, keys, sums_v);
    add_products<D>(change, queries, q_rows, first, count, keys, sums_k);
    attention_values(cut, at.k(batch, head, first), at.k.at, count, change, result, first > 0);
  }
  if (end == 0) __builtin_memset(result, 0, sizeof result);
  float* out = at.grad_q(batch, head, query);
  const head_strides& to = at.grad_q.at;
  long d = 0;
  for (; d + lanes <= D && to.column == 1; d += lanes)
    pack_transposed(result + d * tile_columns, tile_columns, lanes, queries, out + d, to.row);
  for (; d < D; ++d)
    for (long i = 0; i < queries; ++i) out[i * to.row + d * to.column] = result[d * tile_columns + i];
}

// Compute the gradients of attention() with respect to q, k and v from the gradient of its result; all have element strides.
// scratch: attention_backward_scratch_bytes(keys, D) per thread, aligned to a vector. Called by all threads of a parallel
// region; ends with a barrier.
template <int D, class Mask = no_mask>
void attention_backward(const head_gradients& at, long batches, long heads, long rows, long keys, float scale, bool causal,
                        void* scratch, Mask mask = {}) {
  float* sums_k = (float*)((char*)scratch + thread_index() * attention_backward_scratch_bytes(keys, D));
  float *sums_v = sums_k + head_floats(keys, D), *packed = sums_v + head_floats(keys, D);
  for (const long task : shared(batches * heads)) {
    const long b = task / heads, h = task % heads;
    __builtin_memset(sums_k, 0, 2 * head_floats(keys, D) * sizeof(float));
    head_gradients head = at;
    head.k = pack_head<D>(at.k(b, h, 0), at.k.at, keys, packed);
    head.v = pack_head<D>(at.v(b, h, 0), at.v.at, keys, packed + keys * D);
    for (long row = 0; row < rows; row += tile_columns) {
      const long count = rows - row < tile_columns ? rows - row : tile_columns;
      attend_backward<D>(head, b, h, row, count, keys, scale, causal, mask, sums_k, sums_v);
    }
    store_head<D>(sums_k, keys, at.grad_k(b, h, 0), at.grad_k.at);
    store_head<D>(sums_v, keys, at.grad_v(b, h, 0), at.grad_v.at);
  }
}

#define RL_EXTERN_GRADIENT(D, T)                                                                                          \
  RL_EXTERN(void attention_backward<D, attention_mask<T>>(const head_gradients&, long, long, long, long, float, bool, void*, \
                                                         attention_mask<T>))
#define RL_EXTERN_GRADIENTS(D) RL_EXTERN_GRADIENT(D, void) RL_EXTERN_GRADIENT(D, float) RL_EXTERN_GRADIENT(D, bool)
RL_EXTERN_GRADIENTS(32) RL_EXTERN_GRADIENTS(64)

}  // namespace rl
