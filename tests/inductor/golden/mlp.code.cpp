#include <rushlight/vec.h>
#include <rushlight/elementwise.h>
#include <rushlight/math.h>
#include <rushlight/reduce.h>
#include <rushlight/parallel.h>
#include <rushlight/checks.h>
#include <rushlight/gemm.h>

// addmm, gelu
// programs.py:27 in forward: hidden = F.gelu(self.up(x))
static void kernel_0(const float* in0, const float* panels, const float* unpacked, void* own, const float* in1, float* out0) {
  rl::gemm(32L, in0, 16L, rl::b_panels(panels, unpacked, 1L, 16L, own), 64L, 16L,
      rl::epilogue_of<32>([=](auto lane, long x, long r, auto value) {
    const auto tmp0 = lane.load(in1 + r);
    const auto tmp1 = value + tmp0;
    const auto tmp2 = rl::gelu_erf(tmp1);
    lane.store(out0 + r + 64L*x, tmp2);
  }));
}

// native_layer_norm
// programs.py:28 in forward: return F.softmax(self.down(self.norm(hidden)), -1)
static void kernel_1(const float* in0, const float* in1, const float* in2, float* out0) {
  for (const long x : rl::shared(32L)) {
    rl::accumulator<rl::sum, float> total_0;
    rl::for_each(64L, [&](auto lane, long r) {
      const auto tmp0 = lane.load(in0 + r + 64L*x);
      total_0.add(lane, tmp0);
    });
    const auto value_0 = total_0.finish();
    const auto value_1_0 = rl::div(value_0, 64.0f);
    rl::accumulator<rl::sum, float> total_2;
    rl::for_each(64L, [&](auto lane, long r) {
      const auto tmp0 = lane.load(in0 + r + 64L*x);
      const auto tmp1 = lane.broadcast(value_1_0);
      const auto tmp2 = tmp0 - tmp1;
      const auto tmp3 = tmp2 * tmp2;
      total_2.add(lane, tmp3);
    });
    const auto value_2 = total_2.finish();
    const auto value_3_0 = rl::div(value_2, 64.0f);
    const auto value_3_1 = value_3_0 + 1e-05f;
    const auto value_3_2 = rl::rsqrt(value_3_1);
    rl::for_each(64L, [&](auto lane, long r) {
      const auto tmp0 = lane.load(in0 + r + 64L*x);
      const auto tmp1 = lane.broadcast(value_1_0);
      const auto tmp2 = tmp0 - tmp1;
      const auto tmp3 = lane.broadcast(value_3_2);
      const auto tmp4 = tmp2 * tmp3;
      const auto tmp5 = lane.load(in1 + r);
      const auto tmp6 = tmp4 * tmp5;
      const auto tmp7 = lane.load(in2 + r);
      const auto tmp8 = tmp6 + tmp7;
      lane.store(out0 + r + 64L*x, tmp8);
    });
  }
}

// addmm_1
// programs.py:28 in forward: return F.softmax(self.down(self.norm(hidden)), -1)
static void kernel_2(const float* in0, const float* panels, const float* unpacked, void* own, const float* in1, float* out0) {
  rl::gemm(32L, in0, 64L, rl::b_panels(panels, unpacked, 1L, 64L, own), 8L, 64L,
      rl::epilogue_of<8>([=](auto lane, long x, long r, auto value) {
    const auto tmp0 = lane.load(in1 + r);
    const auto tmp1 = value + tmp0;
    lane.store(out0 + r + 8L*x, tmp1);
  }));
}

// _softmax
// programs.py:28 in forward: return F.softmax(self.down(self.norm(hidden)), -1)
static void kernel_3(const float* in0, float* out0) {
  for (const long x : rl::shared(32L)) {
    float* row0 = out0 + 8L*x;
    rl::accumulator<rl::max, float> total_0;
    rl::for_each(8L, [&](auto lane, long r) {
      const auto tmp0 = lane.load(in0 + r + 8L*x);
      total_0.add(lane, tmp0);
    });
    const auto value_0 = total_0.finish();
    rl::accumulator<rl::sum, float> total_1;
    rl::for_each(8L, [&](auto lane, long r) {
      const auto tmp0 = lane.load(in0 + r + 8L*x);
      const auto tmp1 = lane.broadcast(value_0);
      const auto tmp2 = tmp0 - tmp1;
      const auto tmp3 = rl::exp_nonpositive(tmp2);
      lane.store(row0 + r, tmp3);
      total_1.add(lane, tmp3);
    });
    const auto value_1 = total_1.finish();
    rl::for_each(8L, [&](auto lane, long r) {
      const auto tmp0 = lane.load(row0 + r);
      const auto tmp1 = lane.broadcast(value_1);
      const auto tmp2 = rl::div(tmp0, tmp1);
      lane.store(out0 + r + 8L*x, tmp2);
    });
  }
}

extern "C" RL_UNOPTIMIZED int rushlight_pack(void** buffers) {
  rl::loop_progress runs[2];
  #pragma omp parallel num_threads(2)
  {
    rl::team_member member(runs);
    float* up_weight = (float*)buffers[0];
    float* up_bias = (float*)buffers[1];
    float* norm_weight = (float*)buffers[2];
    float* norm_bias = (float*)buffers[3];
    float* down_weight = (float*)buffers[4];
    float* down_bias = (float*)buffers[5];
    float* packed_up_weight_0_1_16 = (float*)buffers[6];
    float* packed_down_weight_0_1_64 = (float*)buffers[7];
    rl::pack_b(up_weight, 1L, 16L, 16L, 64L, packed_up_weight_0_1_16);
    rl::pack_b(down_weight, 1L, 64L, 64L, 8L, packed_down_weight_0_1_64);
  }
  return 0;
}

extern "C" long rushlight_arena_bytes() { return 16384; }

extern "C" int rushlight_entry(void** buffers) {
  int status_value = 0;
  int* status = &status_value;
  void* panels = buffers[9];
  float* arg0_1 = (float*)buffers[0];
  float* up_weight = (float*)buffers[1];
  float* up_bias = (float*)buffers[2];
  float* norm_weight = (float*)buffers[3];
  float* norm_bias = (float*)buffers[4];
  float* down_weight = (float*)buffers[5];
  float* down_bias = (float*)buffers[6];
  float* packed_up_weight_0_1_16 = (float*)buffers[7];
  float* packed_down_weight_0_1_64 = (float*)buffers[8];
  float* buf12 = (float*)buffers[10];
  void* own_panels = panels;
  float* buf1 = (float*)(((char*)buffers[11]) + 0L);
  float* buf6 = (float*)(((char*)buffers[11]) + 8192L);
  float* buf8 = (float*)(((char*)buffers[11]) + 0L);
  kernel_0(arg0_1, packed_up_weight_0_1_16, up_weight, own_panels, up_bias, buf1);  // programs.py:27 in forward: hidden = F.gelu(self.up(x))
  kernel_1(buf1, norm_weight, norm_bias, buf6);  // programs.py:28 in forward: return F.softmax(self.down(self.norm(hidden)), -1)
  kernel_2(buf6, packed_down_weight_0_1_64, down_weight, own_panels, down_bias, buf8);  // programs.py:28 in forward: return F.softmax(self.down(self.norm(hidden)), -1)
  kernel_3(buf8, buf12);  // programs.py:28 in forward: return F.softmax(self.down(self.norm(hidden)), -1)
  (void)status;
  return status_value;
}
