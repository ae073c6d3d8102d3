#include <rushlight/vec.h>
#include <rushlight/elementwise.h>
#include <rushlight/math.h>
#include <rushlight/reduce.h>
#include <rushlight/parallel.h>
#include <rushlight/checks.h>

// index, add, _softmax
// programs.py:14 in chain: rows = table[index] + x
// programs.py:15 in chain: scores = rows.softmax(-1)
static void kernel_0(const int64_t* in0, const float* in1, const float* in2, float* out0, int* status) {
  for (const long x : rl::shared(5L)) {
    alignas(64) float row0[4L];
    float* row1 = out0 + 4L*x;
    rl::accumulator<rl::max, float> total_0;
    rl::for_each(4L, [&](auto lane, long r) {
      const auto tmp0 = rl::scalar_lane{}.broadcast(rl::scalar_lane{}.load(in0 + x));
      const auto tmp1 = rl::checked_index<true>(tmp0, 7L, status);
      const auto tmp2 = lane.load(in1 + r + 4L*tmp1);
      const auto tmp3 = lane.load(in2 + r + 4L*x);
      const auto tmp4 = tmp2 + tmp3;
      lane.store(row0 + r, tmp4);
      total_0.add(lane, tmp4);
    });
    const auto value_0 = total_0.finish();
    rl::accumulator<rl::sum, float> total_1;
    rl::for_each(4L, [&](auto lane, long r) {
      const auto tmp0 = lane.load(row0 + r);
      const auto tmp1 = lane.broadcast(value_0);
      const auto tmp2 = tmp0 - tmp1;
      const auto tmp3 = rl::exp_nonpositive(tmp2);
      lane.store(row1 + r, tmp3);
      total_1.add(lane, tmp3);
    });
    const auto value_1 = total_1.finish();
    rl::for_each(4L, [&](auto lane, long r) {
      const auto tmp0 = lane.load(row1 + r);
      const auto tmp1 = lane.broadcast(value_1);
      const auto tmp2 = rl::div(tmp0, tmp1);
      lane.store(out0 + r + 4L*x, tmp2);
    });
  }
}

// amax
// programs.py:16 in chain: return scores.t(), scores.amax(0)
static void kernel_1(const float* in0, float* out0) {
  for (const long x : rl::shared(4L)) {
    rl::accumulator<rl::max, float> total_0;
    rl::for_each(5L, [&](auto lane, long r) {
      const auto tmp0 = lane.load_strided(in0 + 4L*r + x, 4L);
      total_0.add(lane, tmp0);
    });
    const auto value_0 = total_0.finish();
    rl::scalar_lane{}.store(out0 + x, value_0);
  }
}

extern "C" long rushlight_arena_bytes() { return 0; }

extern "C" int rushlight_entry(void** buffers) {
  int status_value = 0;
  int* status = &status_value;
  float* arg0_1 = (float*)buffers[0];
  float* arg1_1 = (float*)buffers[1];
  int64_t* arg2_1 = (int64_t*)buffers[2];
  float* buf4 = (float*)buffers[3];
  float* buf5 = (float*)buffers[4];
  kernel_0(arg2_1, arg1_1, arg0_1, buf4, status);  // programs.py:15 in chain: scores = rows.softmax(-1)
  kernel_1(buf4, buf5);  // programs.py:16 in chain: return scores.t(), scores.amax(0)
  (void)status;
  return status_value;
}
