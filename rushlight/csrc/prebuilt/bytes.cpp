// Quantized layers over bytes, and convolutions of bfloat16.
#define RL_PREBUILT
#include <rushlight/gemm.h>

#include "from_here.h"

#include <rushlight/word_convolution.h>
