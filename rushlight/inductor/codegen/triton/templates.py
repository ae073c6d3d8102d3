from rushlight.inductor.codegen.triton.types import NoTritonForm
from typing import NamedTuple
class Precision(NamedTuple):
    float32: str = "ieee"
def template_launches(group, buffers, hints, precision):
    raise NoTritonForm(group.template.origin, f"{group.template.kind}")
