from typing import NamedTuple

from rushlight.inductor.codegen.triton.types import NoTritonForm


class Precision(NamedTuple):
    float32: str = "ieee"
def template_launches(group, buffers, hints, precision):
    raise NoTritonForm(group.template.origin, f"{group.template.kind}")
