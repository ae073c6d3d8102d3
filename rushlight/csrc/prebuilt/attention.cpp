// Attention and its gradients, for the usual sizes of heads.
#define RL_PREBUILT
#include <rushlight/tile.h>

#include "from_here.h"

#include <rushlight/attention_backward.h>
