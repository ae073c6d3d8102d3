// Sources written for PyTorch include this name.
#pragma once
#include <rushlight/extension.h>
