#include <rushlight/vec.h>
#include <rushlight/elementwise.h>
#include <rushlight/math.h>
#include <rushlight/reduce.h>
#include <rushlight/parallel.h>
#include <rushlight/checks.h>
#include <rushlight/gemm.h>

// mm, gelu
// programs.py:32 in scores: hidden = F.gelu(x @ weight)
static void kernel_0(const float* in0, const float* in1, float* panels, float* out0, int64_t s0, int64_t s1) {
  rl::pack_b(in1, s1, 1L, 16L, s1, panels);
  rl::gemm(s0, in0, 16L, rl::b_panels(panels), s1, 16L,
      rl::epilogue_of<1>([=](auto lane, long x, long r, auto value) {
    const auto tmp0 = rl::gelu_erf(value);
    lane.store(out0 + r + s1*x, tmp0);
  }));
}

// _softmax
// programs.py:33 in scores: return hidden.softmax(-1), x.sum(0)
static void kernel_1(const float* in0, float* out0, int64_t s0, int64_t s1) {
  for (const long x : rl::shared(s0)) {
    float* row0 = out0 + s1*x;
    rl::accumulator<rl::max, float> total_0;
    rl::for_each(s1, [&](auto lane, long r) {
      const auto tmp0 = lane.load(in0 + r + s1*x);
      total_0.add(lane, tmp0);
    });
    const auto value_0 = total_0.finish();
    rl::accumulator<rl::sum, float> total_1;
    rl::for_each(s1, [&](auto lane, long r) {
      const auto tmp0 = lane.load(in0 + r + s1*x);
      const auto tmp1 = lane.broadcast(value_0);
      const auto tmp2 = tmp0 - tmp1;
      const auto tmp3 = rl::exp_nonpositive(tmp2);
      lane.store(row0 + r, tmp3);
      total_1.add(lane, tmp3);
    });
    const auto value_1 = total_1.finish();
    rl::for_each(s1, [&](auto lane, long r) {
      const auto tmp0 = lane.load(row0 + r);
      const auto tmp1 = lane.broadcast(value_1);
      const auto tmp2 = rl::div(tmp0, tmp1);
      lane.store(out0 + r + s1*x, tmp2);
    });
  }
}

// sum_1
// programs.py:33 in scores: return hidden.softmax(-1), x.sum(0)
static void kernel_2(const float* in0, float* out0, int64_t s0) {
  for (const long block : rl::shared(1L)) {
    [[maybe_unused]] const long x = block / 1L, first = 0L;
    const long count = first + 64L < 16L ? 64L : 16L - first;
    rl::for_each(count, [&](auto lane, long i) {
      const long c = first + i;
      rl::column_accumulator<rl::sum, decltype(lane.broadcast(0.0f))> total_0;
      for (long r = 0; r < s0; ++r) {
        const auto tmp0 = lane.load(in0 + c + 16L*r + 16L*x);
        total_0.add(tmp0);
      }
      const auto value_0 = total_0.finish();
      lane.store(out0 + c, value_0);
    });
  }
}

extern "C" long rushlight_place_blocks(int64_t s0, int64_t s1, long* at) {
  long end = 0, bytes = 0;
  at[0] = end;
  bytes = 64L*s1 + 4096L;
  end += (bytes + 63L) / 64L * 64L;
  at[1] = end;
  bytes = 4L*s0*s1;
  end += (bytes + 63L) / 64L * 64L;
  (void)bytes;
  return end;
}

extern "C" long rushlight_arena_bytes_for(const int64_t* sizes) {
  long at[2];
  return rushlight_place_blocks(sizes[0], sizes[1], at);
}

extern "C" int rushlight_entry(void** buffers) {
  int status_value = 0;
  int* status = &status_value;
  const int64_t s0 = (int64_t)(buffers + 5)[0];
  const int64_t s1 = (int64_t)(buffers + 5)[1];
  long at[2];
  rushlight_place_blocks(s0, s1, at);
  rl::loop_progress runs[2];
  #pragma omp parallel num_threads(2) if (128L*s0 + 64L*s0*s1 >= 600000L)
  {
    rl::team_member member(runs);
    float* arg0_1 = (float*)buffers[0];
    float* arg1_1 = (float*)buffers[1];
    float* buf6 = (float*)buffers[2];
    float* buf5 = (float*)buffers[3];
    float* panels_buf0 = (float*)(((char*)buffers[4]) + at[0]);
    float* buf1 = (float*)(((char*)buffers[4]) + at[1]);
    kernel_0(arg0_1, arg1_1, panels_buf0, buf1, s0, s1);  // programs.py:32 in scores: hidden = F.gelu(x @ weight)
    kernel_1(buf1, buf6, s0, s1);  // programs.py:33 in scores: return hidden.softmax(-1), x.sum(0)
    kernel_2(arg0_1, buf5, s0);  // programs.py:33 in scores: return hidden.softmax(-1), x.sum(0)
  }
  (void)status;
  return status_value;
}
