from rushlight.inductor.codegen.triton.types import NoTritonForm
from rushlight.inductor.origins import origins_of
def ordered_launches(group, buffers, hints, in_place):
    raise NoTritonForm(origins_of(group.members[0])[-1], "ordered")
