"""`torch.distributed.launch`: the older name of `torch.distributed.run`."""

from rushlight.distributed.run import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
