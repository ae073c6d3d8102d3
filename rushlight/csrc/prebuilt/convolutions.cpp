// Convolutions and their gradients.
#define RL_PREBUILT
#include <rushlight/gemm.h>

#include "from_here.h"

#include <rushlight/convolution_weight.h>
#include <rushlight/grouped.h>
#include <rushlight/volume.h>
#include <rushlight/winograd.h>
