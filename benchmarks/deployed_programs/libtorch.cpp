// Times a TorchScript archive in libtorch: `libtorch archive threads float32:1,512 int:16000 ...` prints seconds and megabytes as
// JSON. The method is forward.
#include "memory.h"

#include <ATen/Parallel.h>
#include <torch/script.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

static double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

static torch::jit::IValue input_of(const std::string& word) {
  const auto colon = word.find(':');
  if (word.substr(0, colon) == "int") return (int64_t)std::stoll(word.substr(colon + 1));
  std::vector<int64_t> sizes;
  for (size_t at = colon; at != std::string::npos; at = word.find(',', at + 1)) sizes.push_back(std::stoll(word.substr(at + 1)));
  if (word.substr(0, colon) == "float32") return torch::ones(sizes) / 7;
  return torch::ones(sizes, torch::kInt64);
}

int main(int argc, char** argv) {
  const double began = now();
  torch::InferenceMode guard;
  at::set_num_threads(std::stoi(argv[2]));
  auto module = torch::jit::load(argv[1]);
  module.eval();
  std::vector<torch::jit::IValue> inputs;
  for (int i = 3; i < argc; ++i) inputs.push_back(input_of(argv[i]));
  module.forward(inputs);
  const double first = now() - began;
  for (int i = 0; i < 5; ++i) module.forward(inputs);
  std::vector<double> times;
  for (const double end = now() + 3; now() < end || times.size() < 20;) {
    const double start = now();
    module.forward(inputs);
    times.push_back(now() - start);
  }
  std::sort(times.begin(), times.end());
  std::printf("{\"latency\": %.9f, \"first\": %.9f, \"memory\": %.3f}\n", times[times.size() / 2], first,
              peak_memory());
}
