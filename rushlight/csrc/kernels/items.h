// Blocks of elements: conversion between types, and gathering and scattering by strides.
#pragma once

#include <string.h>

#include "engine.h"

namespace {

constexpr int64_t BLOCK = 1024;  // elements processed at a time, few enough for the L1 cache

void convert(int from, int to, const void* in, void* out, int64_t count) {
  const Variant* variant = rushlight_variant();
  if (from == to) {
    memcpy(out, in, count * item_size[from]);
  } else if (CastSpan direct = variant->cast[from][to]) {
    direct(out, in, count);
  } else {
    alignas(64) char between[BLOCK * 4];
    const int middle = from == RL_FLOAT16 || from == RL_BFLOAT16 || to == RL_FLOAT16 || to == RL_BFLOAT16 ? RL_FLOAT32
                                                                                                       : RL_INT32;
    for (int64_t i = 0; i < count; i += BLOCK) {
      const int64_t part = count - i < BLOCK ? count - i : BLOCK;
      variant->cast[from][middle](between, (const char*)in + i * item_size[from], part);
      variant->cast[middle][to]((char*)out + i * item_size[to], between, part);
    }
  }
}

template <class T> void gather_items(char* out, const char* in, int64_t stride, int64_t count) {
  for (int64_t i = 0; i < count; ++i) ((T*)out)[i] = *(const T*)(in + i * stride);
}
template <class T> void scatter_items(char* out, const char* in, int64_t stride, int64_t count) {
  for (int64_t i = 0; i < count; ++i) *(T*)(out + i * stride) = ((const T*)in)[i];
}

void gather(int64_t size, char* out, const char* in, int64_t stride, int64_t count) {
  if (stride == size) memcpy(out, in, count * size);
  else if (size == 4) gather_items<uint32_t>(out, in, stride, count);
  else if (size == 8) gather_items<uint64_t>(out, in, stride, count);
  else if (size == 2) gather_items<uint16_t>(out, in, stride, count);
  else gather_items<uint8_t>(out, in, stride, count);
}
void scatter(int64_t size, char* out, const char* in, int64_t stride, int64_t count) {
  if (stride == size) memcpy(out, in, count * size);
  else if (size == 4) scatter_items<uint32_t>(out, in, stride, count);
  else if (size == 8) scatter_items<uint64_t>(out, in, stride, count);
  else if (size == 2) scatter_items<uint16_t>(out, in, stride, count);
  else scatter_items<uint8_t>(out, in, stride, count);
}

}  // namespace
