"""`torch.distributed.launcher.api`: starting of processes, which is not here yet."""

from rushlight.core.absent import absent_class, absent_function

LaunchConfig = absent_class("torch.distributed.launcher.api.LaunchConfig")
elastic_launch = absent_function("torch.distributed.launcher.api.elastic_launch")
launch_agent = absent_function("torch.distributed.launcher.api.launch_agent")
