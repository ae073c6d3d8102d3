// Fused scaled-dot-product attention, forward, fp32: softmax(scale * Q K^T + mask) V, without the L x S matrix.
//
// A vector holds one value for each of several queries. A task takes panels of NR queries (packed once, transposed) and
// multiplies a block of keys by a panel with the tile of tile.h. The scores of a key are then one row of NR floats, and the
// softmax runs down the rows, without sums across lanes. The weights that it leaves are already the packed panel for the second
// product, V^T times weights. A single panel reads K and V in place; several panels share a packed copy of each block. Blocks
// of keys are combined one after the other (online softmax, Milakov and Gimelshein 2018; FlashAttention, Dao et al. 2022).
#pragma once

#include <rushlight/gemm.h>
#include <rushlight/math.h>

namespace rl {

// Element strides of a [B, H, rows, D] tensor.
struct head_strides {
  long batch, head, row, column;
};

// One operand: q(batch, head, row) is a pointer to a row of a head.
template <class T> struct heads_of {
  T* data;
  head_strides at;
  RL_INLINE T* operator()(long batch, long head, long row) const {
    return data + batch * at.batch + head * at.head + row * at.row;
  }
};

// keys per block
constexpr long key_block = 128;
constexpr long min_tasks_per_thread = 4;  // each thread should get at least this many tasks

// A mask of shape [B, H, L, S], read by strides that are zero in broadcast dimensions. A float mask is added to the scores; a
// bool mask is true for the keys that take part. rl::no_mask{} means no mask.
template <class T> struct attention_mask {
  const T* data;
  long batch, head, row, column;
  static constexpr bool skips = same<T, bool>, empty_is_nan = false;

  RL_INLINE const T* at(long b, long h, long query, long key) const {
    return data + b * batch + h * head + query * row + key * column;
  }
  // Whether any of these queries attends to any of these keys.
  RL_INLINE bool seen(long b, long h, long query, long queries, long key, long keys) const {
    const T* from = at(b, h, query, key);
    for (long i = 0; i < (row == 0 ? 1 : queries); ++i, from += row)
      for (long s = 0; s < (column == 0 ? 1 : keys); ++s)
        if (from[s * column]) return true;
    return false;
  }
  RL_INLINE void apply(long b, long h, long query, long queries, long key, long keys, float* scores) const;
  RL_INLINE void apply_to_one(long b, long h, long query, long key, long keys, float* scores) const {
    const T* from = at(b, h, query, key);
    for (long s = 0; s < keys; ++s) {
      if constexpr (!same<T, bool>) scores[s] += cast<float, T>(scalar_lane{}.load(from + s * column));
      else if (!from[s * column]) scores[s] = -infinity;
    }
  }
};
using no_mask = attention_mask<void>;
template <> struct attention_mask<void> {
  static constexpr bool skips = false, empty_is_nan = false;
  RL_INLINE void apply(long, long, long, long, long, long, float*) const {}
  RL_INLINE void apply_to_one(long, long, long, long, long, float*) const {}
};

// A function that computes new scores. score(lane, batch, head, query, key, value, packed) returns the new score; the lanes are
// consecutive queries. seen(lane, batch, head, query, key) is false where the score will be -inf, so that whole blocks can be
// skipped. pack(batch, head, query, queries, key, keys, blocks) copies the function's other inputs to `Packed` blocks in the
// layout of the scores. Queries that attend to no key give 0, or NaN with Empty_is_nan.
template <bool Skips, bool Empty_is_nan, int Packed, class Score, class Seen, class Pack> struct score_function {
  Score score;
  Seen is_seen;
  Pack pack;
  static constexpr bool skips = Skips, empty_is_nan = Empty_is_nan;

  RL_INLINE bool seen(long b, long h, long query, long queries, long key, long keys) const {
    for (long s = 0; s < keys; ++s) {
      bool found = false;
      for_each(queries, [&](auto lane, long j) { found = found || any_bit(is_seen(lane, b, h, query + j, key + s)); });
      if (found) return true;
    }
    return false;
  }
  RL_INLINE void apply(long b, long h, long query, long queries, long key, long keys, float* scores) const;
  RL_INLINE void apply_to_one(long b, long h, long query, long key, long keys, float* scores) const {
    const scalar_lane lane;
    alignas(64) float blocks[Packed > 0 ? Packed * key_block * tile_columns : 1];
    if constexpr (Packed > 0) pack(b, h, query, 1, key, keys, blocks);
    for (long s = 0; s < keys; ++s) scores[s] = score(lane, b, h, query, key + s, scores[s], blocks + s * tile_columns);
  }
};
template <bool Skips, bool Empty_is_nan, int Packed, class Score, class Seen, class Pack>
RL_INLINE score_function<Skips, Empty_is_nan, Packed, Score, Seen, Pack> scored(const Score& score, const Seen& seen,
                                                                              const Pack& pack) {
  return {score, seen, pack};
}

// The number of panels of NR queries that share one copy of a block of keys.
template <int D> constexpr int query_panels = D <= 128 ? 4 : 1;

// Copy the rows of a head to contiguous memory. Read in place, they may compete for few cache sets: a row with all heads is
// often a multiple of 1024 bytes long.
template <int D>
RL_INLINE heads_of<const float> pack_head(const float* from, const head_strides& at, long rows, float* to) {
  for (long row = 0; row < rows; ++row)
    for_each(D, [&](auto lane, long d) {
      const float* place = from + row * at.row + d * at.column;
      lane.store(to + row * D + d, at.column == 1 ? lane.load(place) : lane.load_strided(place, at.column));
    });
  return {to, {0, 0, D, 1}};
}

// Compute scores[s][0..NR) for `keys` keys: the rows of K times the packed queries.
RL_INLINE void attention_scores(const float* k, const head_strides& at, long keys, const float* queries, long depth,
                                float* scores) {
  const row_cut<float> cut(keys);
  for (long i = 0; i < cut.count; ++i)
    cut.run(cut.at(i), k, at.row, at.column, queries, depth, scores + cut.at(i).first * tile_columns, false);
}

// Compute result[d][0..NR) = (or += if `accumulate`) V^T times the weights.
RL_INLINE void attention_values(const row_cut<float>& cut, const float* v, const head_strides& at, long keys,
                                const float* weights, float* result, bool accumulate) {
  for (long i = 0; i < cut.count; ++i)
    cut.run(cut.at(i), v, at.column, at.row, weights, keys, result + cut.at(i).first * tile_columns, accumulate);
}

// The same product for values packed by pack_row_blocks with a pitch of key_block.
RL_INLINE void attention_values(const row_cut<float>& cut, const float* packed, long keys, const float* weights, float* result,
                                bool accumulate) {
  for (long i = 0; i < cut.count; ++i)
    cut.run({0, cut.at(i).rows}, packed + i * tile_rows * key_block, 1, tile_rows, weights, keys,
            result + cut.at(i).first * tile_columns, accumulate);
}

// Apply a mask to scores[s][0..NR) of `keys` keys and `queries` queries, beginning at `key` and `query`.
template <class T>
RL_INLINE void attention_mask<T>::apply(long b, long h, long query, long queries, long key, long keys, float* scores) const {
  const vector_lane lane;
  [[maybe_unused]] const vec<float> lowest = splat<vec<float>>(-infinity);
  alignas(64) float block[key_block * tile_columns];
  const T* from = at(b, h, query, key);
  if (row != 0) pack_panel(from, column, row, keys, queries, block);
  for (long s = 0; s < keys; ++s) {
    for (long j = 0; j < tile_columns; j += lanes) {
      float* place = scores + s * tile_columns + j;
      const vec<float> value = row != 0 ? lane.load(block + s * tile_columns + j)
                                        : splat<vec<float>>(cast<float, T>(scalar_lane{}.load(from + s * column)));
      const vec<float> score = lane.load(place);
      if constexpr (same<T, bool>) lane.store(place, where(ne(value, vec<float>{}), score, lowest));
      else lane.store(place, score + value);
    }
  }
}

// Apply the function to the scores of a block. Lanes beyond `queries` are not changed.
template <bool Skips, bool Empty_is_nan, int Packed, class Score, class Seen, class Pack>
RL_INLINE void score_function<Skips, Empty_is_nan, Packed, Score, Seen, Pack>::apply(long b, long h, long query, long queries,
                                                                                    long key, long keys, float* scores) const {
  alignas(64) float blocks[Packed > 0 ? Packed * key_block * tile_columns : 1];
  if constexpr (Packed > 0) pack(b, h, query, queries, key, keys, blocks);
  for (long s = 0; s < keys; ++s) {
    float* row = scores + s * tile_columns;
    for_each(queries, [&](auto lane, long j) {
      lane.store(row + j, score(lane, b, h, query + j, key + s, lane.load(row + j), blocks + s * tile_columns + j));
    });
  }
}

// Set the scores of keys after the query to -inf; `key` and `query` are the first ones of the block.
RL_INLINE void apply_causal(long key, long keys, long query, float* scores) {
  const vector_lane lane;
  const vec<int32_t> offset = convert_lanes<vec<int32_t>>(vector_lane::iota());
  for (long s = 0; s < keys; ++s)
    for (long j = 0; j < tile_columns; j += lanes) {
      float* at = scores + s * tile_columns + j;
      const mask seen = offset >= (int32_t)(key + s - query - j);
      lane.store(at, where(seen, lane.load(at), splat<vec<float>>(-infinity)));
    }
}

// The running maximum and sum of the softmax of NR queries.
struct softmax_state {
  vec<float> maximum[2], sum[2];
};

// Replace the scores of a block by weights relative to the new maximum, and rescale the previous sums and results. If all keys
// so far are masked, the maximum is -inf; 0 is subtracted instead, so that the weights become 0 and not NaN.
template <int D>
RL_INLINE void fold_softmax(softmax_state& state, float* scores, long keys, float* result, bool first) {
  const vector_lane lane;
  for (int j = 0; j < 2; ++j) {
    float* column = scores + j * lanes;
    vec<float> top = state.maximum[j];
    for (long s = 0; s < keys; ++s) {
      const vec<float> score = lane.load(column + s * tile_columns);
      top = larger(score, top);
    }
    const vec<float> base = where(eq(top, splat<vec<float>>(-infinity)), vec<float>{}, top);
    const vec<float> shrink = exp_nonpositive(state.maximum[j] - base);
    vec<float> sum = state.sum[j] * shrink;
    for (long s = 0; s < keys; ++s) {
      const vec<float> weight = exp_nonpositive(lane.load(column + s * tile_columns) - base);
      sum += weight;
      lane.store(column + s * tile_columns, weight);
    }
    if (!first)
      for (long d = 0; d < D; ++d) {
        float* at = result + d * tile_columns + j * lanes;
        lane.store(at, lane.load(at) * shrink);
      }
    state.maximum[j] = top;
    state.sum[j] = sum;
  }
}

// Divide the results by the sums and store them, transposed back; store the log-sum-exp too if `lse` is not null. Queries
// without a key give 0, or NaN with Empty_is_nan.
template <int D, bool Empty_is_nan>
RL_INLINE void finish_attention(const softmax_state& state, float* result, long queries, float* out,
                                const head_strides& at, float* lse) {
  const vector_lane lane;
  for (int j = 0; j < 2; ++j) {
    const vec<float> part = 1.0f / state.sum[j];
    const vec<float> scale = Empty_is_nan ? part : where(eq(state.sum[j], vec<float>{}), vec<float>{}, part);
    for (long d = 0; d < D; ++d) {
      float* value = result + d * tile_columns + j * lanes;
      lane.store(value, lane.load(value) * scale);
    }
  }
  long d = 0;
  for (; d + lanes <= D && at.column == 1; d += lanes)
    pack_transposed(result + d * tile_columns, tile_columns, lanes, queries, out + d, at.row);
  for (; d < D; ++d)
    for (long i = 0; i < queries; ++i) out[i * at.row + d * at.column] = result[d * tile_columns + i];
  for (long i = 0; lse && i < queries; ++i) {
    const float sum = state.sum[i / lanes][i % lanes];
    lse[i] = sum == 0.0f ? 0.0f : state.maximum[i / lanes][i % lanes] + __builtin_logf(sum);
  }
}

// A thread's buffers while it computes some panels of queries against all keys of a head.
template <int D> struct attending {
  static constexpr int panels = query_panels<D>;
  alignas(64) float queries[panels][D * tile_columns], results[panels][D * tile_columns];
  alignas(64) float scores[key_block * tile_columns];
  alignas(64) float keys[panels > 1 ? key_block * D : 1], values[panels > 1 ? key_block * (D + tile_rows) : 1];
  softmax_state states[panels];

  RL_INLINE void start(const float* q, const head_strides& at, long panel, long count, float scale) {
    const vector_lane lane;
    pack_panel(q + panel * tile_columns * at.row, at.column, at.row, D, count, queries[panel]);
    for (long i = 0; i < D * tile_columns; i += lanes)
      lane.store(queries[panel] + i, lane.load(queries[panel] + i) * scale);
    const vec<float> lowest = splat<vec<float>>(-infinity);
    states[panel] = {{lowest, lowest}, {}};
  }
};

// Compute attention for `queries` queries, at most as many as the panels of `attending` hold, against all keys of one head.
template <int D, class Mask>
RL_INLINE void attend(const heads_of<const float>& q, const heads_of<const float>& k, const heads_of<const float>& v,
                      const heads_of<float>& out, float* lse, long batch, long head, long query, long queries,
                      long keys, float scale, bool causal, const Mask& mask) {
  attending<D> at;
  const row_cut<float> cut(D);
  const long panels = (queries + tile_columns - 1) / tile_columns;
  const bool packs = panels > 1 && v.at.column == 1;
  const auto width = [&](long panel) { return smallest(queries - panel * tile_columns, (long)tile_columns); };
  for (long p = 0; p < panels; ++p) at.start(q(batch, head, query), q.at, p, width(p), scale);

  bool started[attending<D>::panels] = {}, seen[attending<D>::panels];
  const long end = causal && query + queries < keys ? query + queries : keys;
  for (long first = 0; first < end; first += key_block) {
    const long block = smallest(end - first, key_block);
    const float *block_k = k(batch, head, first), *block_v = v(batch, head, first);
    if constexpr (Mask::skips) {
      bool any = false;
      for (long p = 0; p < panels; ++p)
        any |= seen[p] = mask.seen(batch, head, query + p * tile_columns, width(p), first, block);
      if (!any) continue;
    }
    if (packs) {
      pack_head<D>(block_k, k.at, block, at.keys);
      pack_row_blocks(cut, 0, cut.count, block_v, v.at.row, block, at.values, key_block);
    }
    for (long p = 0; p < panels; ++p) {
      const long row = query + p * tile_columns, count = causal ? smallest(block, row + width(p) - first) : block;
      if (count <= 0 || (Mask::skips && !seen[p])) continue;
      if (packs) attention_scores(at.keys, {0, 0, D, 1}, count, at.queries[p], D, at.scores);
      else attention_scores(block_k, k.at, count, at.queries[p], D, at.scores);
      mask.apply(batch, head, row, width(p), first, count, at.scores);
      if (causal && first + count > row) apply_causal(first, count, row, at.scores);
      fold_softmax<D>(at.states[p], at.scores, count, at.results[p], !started[p]);
      if (packs) attention_values(cut, at.values, count, at.scores, at.results[p], started[p]);
      else attention_values(cut, block_v, v.at, count, at.scores, at.results[p], started[p]);
      started[p] = true;
    }
  }
  for (long p = 0; p < panels; ++p) {
    const long row = p * tile_columns;
    if (!started[p]) __builtin_memset(at.results[p], 0, sizeof at.results[p]);
    finish_attention<D, Mask::empty_is_nan>(at.states[p], at.results[p], width(p), out(batch, head, query + row), out.at,
                                            lse ? lse + row : lse);
  }
}

// ---- few queries -----------------------------------------------------------------------------------------------------

// With as few queries as in token generation, a panel would be nearly empty. Each query is then computed alone with the lanes
// along D, at little more than the cost of reading the keys and values.
constexpr long max_single_queries = 2;

// Compute scores[s] = the dot product of one query with key s. Writes whole vectors, so up to lanes - 1 floats beyond `keys`.
template <int D>
RL_INLINE void scores_of_one(const float* query, const float* k, long row, long keys, float* scores) {
  const vector_lane lane;
  for (long s = 0; s < keys; s += lanes) {
    vec<float> block[lanes];
    RL_UNROLL for (int i = 0; i < lanes; ++i) {
      const float* key = k + smallest(s + i, keys - 1) * row;
      block[i] = lane.load(query) * lane.load(key);
      RL_UNROLL for (int d = lanes; d < D; d += lanes) block[i] += lane.load(query + d) * lane.load(key + d);
    }
    transpose(block);
    vec<float> total = block[0];
    RL_UNROLL for (int i = 1; i < lanes; ++i) total += block[i];
    lane.store(scores + s, total);
  }
}

// Compute result = shrink * result + the weighted sum of the values' rows, for `vectors` vectors of D.
template <int vectors>
RL_INLINE void add_vectors_of_one(const float* weights, const float* v, long row, long keys, float shrink, float* result) {
  const vector_lane lane;
  vec<float> sum[vectors];
  RL_UNROLL for (int d = 0; d < vectors; ++d) sum[d] = lane.load(result + d * lanes) * shrink;
  for (long s = 0; s < keys; ++s, v += row)
    RL_UNROLL for (int d = 0; d < vectors; ++d) sum[d] += lane.load(v + d * lanes) * weights[s];
  RL_UNROLL for (int d = 0; d < vectors; ++d) lane.store(result + d * lanes, sum[d]);
}

// The same for result[0..D), with as many vectors at a time as fit into registers.
template <int D>
RL_INLINE void add_values_of_one(const float* weights, const float* v, long row, long keys, float shrink, float* result) {
  constexpr int group = 8, whole = D / lanes / group * group, rest = D / lanes - whole;
  for (int first = 0; first < whole; first += group)
    add_vectors_of_one<group>(weights, v + first * lanes, row, keys, shrink, result + first * lanes);
  if constexpr (rest > 0)
    add_vectors_of_one<rest>(weights, v + whole * lanes, row, keys, shrink, result + whole * lanes);
}

// Compute attention of one query over the first `keys` keys of its head; all rows have unit strides along D. `lse` is as in
// attend.
template <int D, class Mask>
RL_INLINE void attend_one(const float* q, const float* k, long k_row, const float* v, long v_row, float* out, float* lse,
                          long keys, float scale, const Mask& mask, long batch, long head, long place) {
  const vector_lane lane;
  alignas(64) float query[D], result[D] = {}, scores[key_block];
  for (int d = 0; d < D; d += lanes) lane.store(query + d, lane.load(q + d) * scale);
  float top = -infinity, sum = 0.0f;
  for (long first = 0; first < keys; first += key_block) {
    const long count = smallest(keys - first, key_block);
    scores_of_one<D>(query, k + first * k_row, k_row, count, scores);
    mask.apply_to_one(batch, head, place, first, count, scores);
    float highest = top;
    for (long s = 0; s < count; ++s) highest = larger(scores[s], highest);
    const float base = highest == -infinity ? 0.0f : highest, shrink = exp_nonpositive(top - base);
    for_each(count, [&](auto to, long s) { to.store(scores + s, exp_nonpositive(to.load(scores + s) - base)); });
    float added = 0.0f;
    for (long s = 0; s < count; ++s) added += scores[s];
    sum = sum * shrink + added;
    top = highest;
    add_values_of_one<D>(scores, v + first * v_row, v_row, count, shrink, result);
  }
  const float part = sum == 0.0f && !Mask::empty_is_nan ? 0.0f : 1.0f / sum;
  for (int d = 0; d < D; d += lanes) lane.store(out + d, lane.load(result + d) * part);
  if (lse) *lse = sum == 0.0f ? 0.0f : top + __builtin_logf(sum);
}

// Compute out[b, h, l, :] for q [B, H, L, D], k and v [B, H, S, D], all by element strides; lse is [B, H, L], contiguous, or
// null. If all keys of a query are masked, its result is 0 and its log-sum-exp 0, as in torch's CPU kernel. A causal mask is
// aligned to the upper left. Called by all threads of a parallel region; ends with a barrier.
template <int D, class Mask = no_mask>
void attention(const float* q, head_strides q_at, const float* k, head_strides k_at, const float* v, head_strides v_at,
               float* out, head_strides out_at, float* lse, long batches, long heads, long rows, long keys, float scale,
               bool causal, Mask mask = {}) {
  const heads_of<const float> queries{q, q_at}, all_keys{k, k_at}, values{v, v_at};
  if constexpr (D % lanes == 0) {
    if (rows <= max_single_queries && q_at.column == 1 && k_at.column == 1 && v_at.column == 1 && out_at.column == 1) {
      for (const long task : shared(batches * heads * rows)) {
        const long b = task / rows / heads, h = task / rows % heads, row = task % rows;
        attend_one<D>(queries(b, h, row), all_keys(b, h, 0), k_at.row, values(b, h, 0), v_at.row,
                      heads_of<float>{out, out_at}(b, h, row), lse ? lse + task : nullptr,
                      causal ? smallest(keys, row + 1) : keys, scale, mask, b, h, row);
      }
      return;
    }
  }
  const long panels = (rows + tile_columns - 1) / tile_columns;
  const long together = largest(1L, smallest((long)query_panels<D>, batches * heads * panels / (min_tasks_per_thread * thread_count())));
  const long step = together * tile_columns, chunks = (rows + step - 1) / step;
  for (const long task : shared(batches * heads * chunks)) {
    const long b = task / chunks / heads, h = task / chunks % heads, place = task % chunks;
    // Causal work grows with the row: threads take chunks from both ends in turn, so that they get equal shares.
    const long chunk = !causal ? place : place % 2 ? chunks - 1 - place / 2 : place / 2;
    const long row = chunk * step, count = smallest(rows - row, step);
    float* row_lse = lse ? lse + (b * heads + h) * rows + row : nullptr;
    attend<D>(queries, all_keys, values, heads_of<float>{out, out_at}, row_lse, b, h, row, count, keys, scale, causal, mask);
  }
}

#define RL_EXTERN_ATTENTION(D, T)                                                                                         \
  RL_EXTERN(void attention<D, attention_mask<T>>(const float*, head_strides, const float*, head_strides, const float*,    \
                                                head_strides, float*, head_strides, float*, long, long, long, long, float, \
                                                bool, attention_mask<T>))
#define RL_EXTERN_ATTENTIONS(D) RL_EXTERN_ATTENTION(D, void) RL_EXTERN_ATTENTION(D, float) RL_EXTERN_ATTENTION(D, bool)
RL_EXTERN_ATTENTIONS(32) RL_EXTERN_ATTENTIONS(64) RL_EXTERN_ATTENTIONS(96) RL_EXTERN_ATTENTIONS(128)

}  // namespace rl
