"""`torch.distributed.checkpoint.default_planner`: plans of what each process saves, which is not here yet."""

from rushlight.core.absent import absent_class

DefaultLoadPlanner = absent_class("torch.distributed.checkpoint.default_planner.DefaultLoadPlanner")
DefaultSavePlanner = absent_class("torch.distributed.checkpoint.default_planner.DefaultSavePlanner")
_EmptyStateDictLoadPlanner = absent_class("torch.distributed.checkpoint.default_planner._EmptyStateDictLoadPlanner")
