"""`torch.distributed.algorithms`: uneven inputs (`join`), and ways of exchanging gradients (`ddp_comm_hooks`)."""

from rushlight.distributed.algorithms.join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
