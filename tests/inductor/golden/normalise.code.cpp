#include <rushlight/vec.h>
#include <rushlight/elementwise.h>
#include <rushlight/math.h>
#include <rushlight/reduce.h>
#include <rushlight/parallel.h>
#include <rushlight/checks.h>

// sum_1, div, sub, mul
// programs.py:9 in normalise: centred = x - x.mean(-1, keepdim=True)
// programs.py:10 in normalise: return centred * weight
static void kernel_0(const float* in0, const float* in1, float* out0) {
  for (const long x : rl::shared(3L)) {
    rl::accumulator<rl::sum, float> total_0;
    rl::for_each(8L, [&](auto lane, long r) {
      const auto tmp0 = lane.load(in0 + r + 8L*x);
      total_0.add(lane, tmp0);
    });
    const auto value_0 = total_0.finish();
    const auto value_1_0 = rl::div(value_0, 8.0f);
    rl::for_each(8L, [&](auto lane, long r) {
      const auto tmp0 = lane.load(in0 + r + 8L*x);
      const auto tmp1 = lane.broadcast(value_1_0);
      const auto tmp2 = tmp0 - tmp1;
      const auto tmp3 = lane.load(in1 + r);
      const auto tmp4 = tmp2 * tmp3;
      lane.store(out0 + r + 8L*x, tmp4);
    });
  }
}

extern "C" long rushlight_arena_bytes() { return 0; }

extern "C" int rushlight_entry(void** buffers) {
  int status_value = 0;
  int* status = &status_value;
  float* arg0_1 = (float*)buffers[0];
  float* arg1_1 = (float*)buffers[1];
  float* buf2 = (float*)buffers[2];
  kernel_0(arg0_1, arg1_1, buf2);  // programs.py:9 in normalise: centred = x - x.mean(-1, keepdim=True)
  (void)status;
  return status_value;
}
