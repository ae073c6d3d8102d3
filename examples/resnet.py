"""ResNet-18: an image comes in, one score per class goes out.

The network of He et al., "Deep Residual Learning for Image Recognition" (arXiv:1512.03385). Parameter names are those of
torchvision's resnet18, so published weights load as they are.
"""

from __future__ import annotations

import rushlight as torch
from rushlight import nn

STAGES = (64, 128, 256, 512)  # channels
BLOCKS = 2  # per stage


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions, and around them a shortcut, which is projected where the size changes."""

    def __init__(self, channels: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or channels != outputs:
            shortcut = nn.Conv2d(channels, outputs, 1, stride, bias=False)
            self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        identity = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(x)) + identity)


class ResNet(nn.Module):
    """(N, 3, H, W) images to (N, classes) scores."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, STAGES[0], 7, 2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(STAGES[0])
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, padding=1)
        channels = STAGES[0]
        for index, outputs in enumerate(STAGES):
            blocks = [BasicBlock(channels, outputs, 1 if index == 0 else 2)]
            blocks += [BasicBlock(outputs, outputs, 1) for _ in range(BLOCKS - 1)]
            setattr(self, f"layer{index + 1}", nn.Sequential(*blocks))
            channels = outputs
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(channels, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))
