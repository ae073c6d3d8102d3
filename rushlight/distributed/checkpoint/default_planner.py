"""`torch.distributed.checkpoint.default_planner`: what a load does with missing names."""

from rushlight.core.absent import absent_class
from rushlight.distributed.checkpoint.loading import DefaultLoadPlanner

DefaultSavePlanner = absent_class("torch.distributed.checkpoint.default_planner.DefaultSavePlanner")
_EmptyStateDictLoadPlanner = absent_class("torch.distributed.checkpoint.default_planner._EmptyStateDictLoadPlanner")

__all__ = ["DefaultLoadPlanner", "DefaultSavePlanner"]
