"""`torch.utils.tensorboard`: numbers, histograms, images and texts of a training, written for TensorBoard.

The package `tensorboard` writes the files, and has to be installed.
"""

from rushlight.utils.tensorboard.writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
