#include <rushlight/vec.h>
#include <rushlight/elementwise.h>
#include <rushlight/math.h>
#include <rushlight/reduce.h>
#include <rushlight/parallel.h>
#include <rushlight/checks.h>
#include <rushlight/fourier.h>
#include <rushlight/matrix.h>

// mul
// programs.py:67 in factors: lu, pivots, _ = torch.linalg.lu_factor_ex(a * 2)
static void kernel_0(const float* in0, float* out0) {
  for ([[maybe_unused]] const long only : rl::shared(1L)) {
    [[maybe_unused]] constexpr long x = 0;
    rl::for_each(48L, [&](auto lane, long r) {
      const auto tmp0 = lane.load(in0 + r + 48L*x);
      const auto tmp1 = lane.broadcast(2.0f);
      const auto tmp2 = tmp0 * tmp1;
      lane.store(out0 + r + 48L*x, tmp2);
    });
  }
}

// linalg_lu_factor_ex
// programs.py:67 in factors: lu, pivots, _ = torch.linalg.lu_factor_ex(a * 2)
static void kernel_1(const float* in0, float* out0, int32_t* out1, int* status) {
  rl::lu_factor<float>(in0, out0, out1, nullptr, 3L, 4L, 4L, false, status);
}

// _fft_r2c
// programs.py:68 in factors: return lu + 1, pivots, torch.fft.ifft(torch.fft.rfft(x) * 1j)
static void kernel_2(const float* in0, float* out0, char* scratch) {
  rl::transform_of_reals<float>(in0, out0, 1L, 6L, 4L, 6L, 0L, scratch);
}

// mul_1, _fft_c2c
// programs.py:68 in factors: return lu + 1, pivots, torch.fft.ifft(torch.fft.rfft(x) * 1j)
static void kernel_3(const float* in0, float* out0) {
  for (const long x : rl::shared(4L)) {
    rl::for_each(2L, [&](auto lane, long r) {
      const auto tmp0 = lane.index(r);
      const auto tmp1 = lane.broadcast((int64_t)1L);
      const auto tmp2 = rl::lt(tmp0, tmp1);
      const auto tmp3 = lane.broadcast(rl::scalar_lane{}.load(in0 + 2L*x));
      const auto tmp4 = lane.broadcast(0.0f);
      const auto tmp5 = tmp3 * tmp4;
      const auto tmp6 = lane.broadcast(rl::scalar_lane{}.load(in0 + 2L*x + 1L));
      const auto tmp7 = lane.broadcast(1.0f);
      const auto tmp8 = tmp6 * tmp7;
      const auto tmp9 = tmp5 - tmp8;
      const auto tmp10 = tmp3 * tmp7;
      const auto tmp11 = tmp6 * tmp4;
      const auto tmp12 = tmp10 + tmp11;
      const auto tmp13 = rl::where(tmp2, tmp9, tmp12);
      lane.store(out0 + r + 2L*x, tmp13);
    });
  }
}

// _fft_c2c
// programs.py:68 in factors: return lu + 1, pivots, torch.fft.ifft(torch.fft.rfft(x) * 1j)
static void kernel_4(const float* in0, float* out0, char* scratch) {
  rl::complex_transform<float>(in0, out0, 1L, 4L, false, 4L, 2L, scratch);
}

// add
// programs.py:68 in factors: return lu + 1, pivots, torch.fft.ifft(torch.fft.rfft(x) * 1j)
static void kernel_5(const float* in0, float* out0) {
  for (const long x : rl::shared(12L)) {
    rl::for_each(4L, [&](auto lane, long r) {
      const auto tmp0 = lane.load_strided(in0 + 4L*r + 16L*(x / 4L) + x % 4L, 4L);
      const auto tmp1 = lane.broadcast(1.0f);
      const auto tmp2 = tmp0 + tmp1;
      lane.store(out0 + r + 4L*x, tmp2);
    });
  }
}

// _fft_c2c
// programs.py:68 in factors: return lu + 1, pivots, torch.fft.ifft(torch.fft.rfft(x) * 1j)
static void kernel_6(const float* in0, float* out0) {
  for ([[maybe_unused]] const long only : rl::shared(1L)) {
    [[maybe_unused]] constexpr long x = 0;
    rl::for_each(8L, [&](auto lane, long r) {
      const auto tmp0 = lane.load(in0 + r + 8L*x);
      lane.store(out0 + r + 8L*x, tmp0);
    });
  }
}

extern "C" long rushlight_arena_bytes() { return 384 + rl::largest(2L * (rl::fourier_scratch_bytes(6L)), 2L * (rl::fourier_scratch_bytes(4L))); }

extern "C" int rushlight_entry(void** buffers) {
  int status_value = 0;
  int* status = &status_value;
  float* arg0_1 = (float*)buffers[0];
  float* arg1_1 = (float*)buffers[1];
  float* buf7 = (float*)buffers[2];
  int32_t* buf2 = (int32_t*)buffers[3];
  float* buf8 = (float*)buffers[4];
  float* buf0 = (float*)(((char*)buffers[5]) + 0L);
  float* buf1 = (float*)(((char*)buffers[5]) + 192L);
  float* buf4 = (float*)(((char*)buffers[5]) + 0L);
  float* buf5 = (float*)(((char*)buffers[5]) + 64L);
  float* buf6 = (float*)(((char*)buffers[5]) + 0L);
  char* scratch_buf4 = ((char*)buffers[5]) + 384;
  char* scratch_buf6 = ((char*)buffers[5]) + 384;
  kernel_0(arg0_1, buf0);  // programs.py:67 in factors: lu, pivots, _ = torch.linalg.lu_factor_ex(a * 2)
  kernel_1(buf0, buf1, buf2, status);  // programs.py:67 in factors: lu, pivots, _ = torch.linalg.lu_factor_ex(a * 2)
  kernel_2(arg1_1, buf4, scratch_buf4);  // programs.py:68 in factors: return lu + 1, pivots, torch.fft.ifft(torch.fft.rfft(x) * 1j)
  kernel_3(buf4, buf5);  // programs.py:68 in factors: return lu + 1, pivots, torch.fft.ifft(torch.fft.rfft(x) * 1j)
  kernel_4(buf5, buf6, scratch_buf6);  // programs.py:68 in factors: return lu + 1, pivots, torch.fft.ifft(torch.fft.rfft(x) * 1j)
  kernel_5(buf1, buf7);  // programs.py:68 in factors: return lu + 1, pivots, torch.fft.ifft(torch.fft.rfft(x) * 1j)
  kernel_6(buf6, buf8);  // programs.py:68 in factors: return lu + 1, pivots, torch.fft.ifft(torch.fft.rfft(x) * 1j)
  (void)status;
  return status_value;
}
