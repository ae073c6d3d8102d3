"""`torch._C._dynamo`: the frame hook, and checks that generated code makes."""

from rushlight._C._dynamo import eval_frame, guards

__all__ = ["eval_frame", "guards"]
