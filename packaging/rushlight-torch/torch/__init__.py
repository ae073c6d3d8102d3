"""The name under which programs import PyTorch: it becomes Rushlight."""

import sys

del sys.modules[__name__]  # remove this stub, so that Rushlight can register itself as `torch`
import rushlight.as_torch  # noqa: E402, F401
