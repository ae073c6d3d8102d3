"""The Triton interpreter without Triton."""

import subprocess
import sys

PROGRAM = """
import sys, warnings
sys.modules["triton"] = None
import rushlight as torch
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(torch.compile(lambda x: x + 1, options={"target": "triton-interpreter"})(torch.ones(2)).tolist())
print(caught[0].message)
try:
    torch.ones(2, device="cuda")
except AssertionError as error:
    print(error, *error.__notes__)
"""


def test_errors_name_what_is_missing():
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    values, warning, error = result.stdout.splitlines()
    assert values == "[2.0, 2.0]" and "pip install triton" in warning and "be reported" not in warning
    assert 'not compiled with CUDA enabled Triton is not installed; run pip install "rushlight[cuda]"' in error
