// Forward and backward steps of recurrent layers.
#define RL_PREBUILT
#include <rushlight/gemm.h>

#include "from_here.h"

#include <rushlight/recurrent_backward.h>
