"""The name under which programs import PyTorch: it becomes Rushlight."""

import sys

del sys.modules[__name__]  # this file's own module, for which Rushlight's takes the place
import rushlight.as_torch  # noqa: E402, F401
