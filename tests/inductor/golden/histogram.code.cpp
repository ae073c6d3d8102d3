#include <rushlight/vec.h>
#include <rushlight/elementwise.h>
#include <rushlight/math.h>
#include <rushlight/reduce.h>
#include <rushlight/parallel.h>
#include <rushlight/checks.h>
#include <rushlight/scan.h>

// full, exp, scatter_add
// programs.py:43 in histogram: counts = torch.zeros(10).scatter_add(0, bins, values.exp())
static void kernel_0(float* out0, const int64_t* in0, const float* in1, int* status) {
  for ([[maybe_unused]] const long only : rl::shared(1L)) {
    [[maybe_unused]] constexpr long x = 0;
    rl::for_each(10L, [&](auto lane, long r) {
      const auto tmp0 = lane.broadcast(0.0f);
      lane.store(out0 + r + 10L*x, tmp0);
    });
  }
  for ([[maybe_unused]] const long only : rl::shared(1L)) {
    for (long i0 = 0; i0 < 50L; ++i0) {
      const auto index0 = rl::scalar_lane{}.load(in0 + i0);
      const long place0 = rl::checked_index<false>(index0, 10L, status);
      const auto tmp0 = rl::scalar_lane{}.load(in1 + i0);
      const auto tmp1 = rl::exp(tmp0);
      rl::scalar_lane{}.store(out0 + place0, rl::scalar_lane{}.load(out0 + place0) + tmp1);
    }
  }
}

// cumsum
// programs.py:44 in histogram: return counts.cumsum(0), torch.ones(6, 20).index_put((index,), rows * 2, accumulate=True)
static void kernel_1(const float* in0, float* out0) {
  for ([[maybe_unused]] const long only : rl::shared(1L)) {
    [[maybe_unused]] constexpr long x = 0;
    [[maybe_unused]] constexpr long c = 0;
    const rl::scalar_lane lane;
    rl::scan<rl::sum, decltype(lane.broadcast(0.0f))> total;
    for (long r = 0; r < 10L; ++r) {
      const auto tmp0 = lane.broadcast(rl::scalar_lane{}.load(in0 + r));
      lane.store(out0 + c + r + 10L*x, total.add(tmp0));
    }
  }
}

// full_1, mul, index_put
// programs.py:44 in histogram: return counts.cumsum(0), torch.ones(6, 20).index_put((index,), rows * 2, accumulate=True)
static void kernel_2(float* out0, const int32_t* in0, const float* in1, int* status) {
  for ([[maybe_unused]] const long only : rl::shared(1L)) {
    [[maybe_unused]] constexpr long x = 0;
    rl::for_each(120L, [&](auto lane, long r) {
      const auto tmp0 = lane.broadcast(1.0f);
      lane.store(out0 + r + 120L*x, tmp0);
    });
  }
  for ([[maybe_unused]] const long only : rl::shared(1L)) {
    for (long i0 = 0; i0 < 7L; ++i0) {
      const auto index0 = rl::scalar_lane{}.broadcast(rl::scalar_lane{}.load(in0 + i0));
      const auto index1 = rl::cast<int64_t, int32_t>(index0);
      const long place0 = rl::checked_index<true>(index1, 6L, status);
      rl::for_each(20L, [&](auto lane, long i1) {
        const auto tmp0 = lane.load(in1 + 20L*i0 + i1);
        const auto tmp1 = lane.broadcast(2.0f);
        const auto tmp2 = tmp0 * tmp1;
        lane.store(out0 + i1 + 20L*place0, lane.load(out0 + i1 + 20L*place0) + tmp2);
      });
    }
  }
}

extern "C" long rushlight_arena_bytes() { return 64; }

extern "C" int rushlight_entry(void** buffers) {
  int status_value = 0;
  int* status = &status_value;
  float* arg0_1 = (float*)buffers[0];
  int64_t* arg1_1 = (int64_t*)buffers[1];
  float* arg2_1 = (float*)buffers[2];
  int32_t* arg3_1 = (int32_t*)buffers[3];
  float* buf1 = (float*)buffers[4];
  float* buf2 = (float*)buffers[5];
  float* buf0 = (float*)(((char*)buffers[6]) + 0L);
  kernel_0(buf0, arg1_1, arg0_1, status);  // programs.py:43 in histogram: counts = torch.zeros(10).scatter_add(0, bins, values.exp())
  kernel_1(buf0, buf1);  // programs.py:44 in histogram: return counts.cumsum(0), torch.ones(6, 20).index_put((index,), rows * 2, accumulate=True)
  kernel_2(buf2, arg3_1, arg2_1, status);  // programs.py:44 in histogram: return counts.cumsum(0), torch.ones(6, 20).index_put((index,), rows * 2, accumulate=True)
  (void)status;
  return status_value;
}
