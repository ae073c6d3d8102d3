"""torchvision's Python part: models, transforms and operators, without its compiled extension."""

from __future__ import annotations

import torch
import torchvision
from torchvision.transforms import v2

from tests.clients.networks import Network, ramp
from tests.clients.stages import Client, stage


class Model(Network):
    """A model of torchvision's by its name."""

    model = ""
    size = 64
    options: dict = {}

    def make(self):
        return getattr(torchvision.models, self.model)(weights=None, num_classes=10, **self.options)

    def call(self, module):
        value = module(ramp(2, 3, self.size, self.size))
        return list(value.values()) if isinstance(value, dict) else [value]


class ResNet18(Model):
    name, model = "resnet18", "resnet18"


class MobileNet(Model):
    name, model = "mobilenet_v3_small", "mobilenet_v3_small"


class ShuffleNet(Model):
    name, model = "shufflenet_v2_x0_5", "shufflenet_v2_x0_5"


class ViT(Network):
    name = "vision_transformer"

    def make(self):
        return torchvision.models.VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=10)

    def call(self, module):
        return [module(ramp(2, 3, 32, 32))]


class Segmentation(Network):
    name = "lraspp"

    def make(self):
        return torchvision.models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5)

    def call(self, module):
        return [module(ramp(1, 3, 64, 64))["out"]]


class Transforms(Client):
    name = "transforms.v2"

    @stage
    def resize(self):
        return v2.Compose([v2.Resize(20), v2.CenterCrop(16), v2.Normalize([0.5] * 3, [0.5] * 3)])(ramp(3, 32, 40))

    @stage
    def colors(self):
        return [v2.functional.adjust_brightness(ramp(3, 8, 8, low=0.0), 1.5), v2.functional.rgb_to_grayscale(ramp(3, 8, 8))]

    @stage
    def geometry(self):
        return [v2.functional.rotate(ramp(3, 16, 16), 30.0), v2.functional.horizontal_flip(ramp(3, 16, 16))]

    @stage
    def random(self):
        return v2.RandomResizedCrop(8, antialias=True)(ramp(3, 32, 32))


class Operators(Client):
    name = "ops"
    boxes = [[0.0, 0.0, 10.0, 10.0], [1.0, 1.0, 11.0, 11.0], [20.0, 20.0, 30.0, 30.0]]

    @stage
    def box_iou(self):
        return torchvision.ops.box_iou(torch.tensor(self.boxes), torch.tensor(self.boxes))

    @stage
    def nms(self):
        return torchvision.ops.nms(torch.tensor(self.boxes), torch.tensor([0.9, 0.8, 0.7]), 0.5)

    @stage
    def roi_align(self):
        return torchvision.ops.roi_align(ramp(1, 2, 32, 32), [torch.tensor(self.boxes)], 4)

    @stage
    def deform_conv2d(self):
        return torchvision.ops.deform_conv2d(ramp(1, 2, 8, 8), ramp(1, 18, 6, 6), ramp(3, 2, 3, 3))
