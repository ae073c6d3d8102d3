// Shared loops, and matrix products.
#include "from_here.h"

#include <rushlight/gemm.h>
