// Quantized layers over bytes.
#define RL_PREBUILT
#include <rushlight/gemm.h>

#include "from_here.h"

#include <rushlight/byte_convolution.h>
