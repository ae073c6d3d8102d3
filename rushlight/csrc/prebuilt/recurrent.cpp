// The steps of recurrent layers, and back through them.
#define RL_PREBUILT
#include <rushlight/gemm.h>

#include "from_here.h"

#include <rushlight/recurrent_backward.h>
