"""`torch.distributed.pipelining`: models as pipelines of processes, which is not here yet."""

from rushlight.core.absent import absent_class, absent_function

Pipe = absent_class("torch.distributed.pipelining.Pipe")
PipelineStage = absent_class("torch.distributed.pipelining.PipelineStage")
ScheduleGPipe = absent_class("torch.distributed.pipelining.ScheduleGPipe")
SplitPoint = absent_class("torch.distributed.pipelining.SplitPoint")
pipe_split = absent_function("torch.distributed.pipelining.pipe_split")
pipeline = absent_function("torch.distributed.pipelining.pipeline")
