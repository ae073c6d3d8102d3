"""timm: families of image models, with features, schedulers and optimizers of its own."""

from __future__ import annotations

import timm
import timm.optim
import timm.scheduler
import torch

from tests.clients.networks import Network, ramp
from tests.clients.stages import stage


class Timm(Network):
    """A model of timm's by its name."""

    model = ""
    size = 64
    options: dict = {}

    def make(self):
        return timm.create_model(self.model, num_classes=10, **self.options)

    def call(self, module):
        return [module(ramp(2, 3, self.size, self.size))]

    @stage
    def features(self):
        with torch.no_grad():
            return self.module.forward_features(ramp(2, 3, self.size, self.size))


class ResNet18(Timm):
    name, model = "resnet18", "resnet18"

    @stage
    def feature_pyramid(self):
        layers = timm.create_model(self.model, features_only=True).eval()
        layers.load_state_dict(self.module.state_dict(), strict=False)
        with torch.no_grad():
            return layers(ramp(2, 3, self.size, self.size))

    @stage
    def schedule(self):
        optimizer = timm.optim.create_optimizer_v2(self.make(), opt="lamb", lr=0.1)
        schedule = timm.scheduler.CosineLRScheduler(optimizer, t_initial=10, warmup_t=2)
        return [schedule.step(epoch) or optimizer.param_groups[0]["lr"] for epoch in range(5)]


class ViT(Timm):
    name, model = "vit_tiny", "vit_tiny_patch16_224"
    options = dict(img_size=64, depth=2)


class ConvNext(Timm):
    name, model = "convnext_atto", "convnext_atto"
    options = dict(depths=(1, 1, 1, 1))


class EfficientNet(Timm):
    name, model = "efficientnet_b0", "efficientnet_b0"


class MobileNet(Timm):
    name, model = "mobilenetv3_small", "mobilenetv3_small_050"


class Swin(Timm):
    name, model = "swin_tiny", "swin_tiny_patch4_window7_224"
    options = dict(img_size=64, window_size=4, depths=(1, 1, 1, 1), embed_dim=24, num_heads=(1, 2, 4, 8))


class RegNet(Timm):
    name, model = "regnety_002", "regnety_002"


class Mixer(Timm):
    name, model = "mixer_s32", "mixer_s32_224"
    options = dict(img_size=64)


class DenseNet(Timm):
    name, model = "densenet121", "densenet121"
    options = dict(block_config=(2, 2, 2, 2))


class MaxVit(Timm):
    name, model, size = "coatnet_pico", "coatnet_pico_rw_224", 64
    options = dict(img_size=64)


class Eva(Timm):
    """Rotary positions and SwiGLU."""

    name, model = "eva02_tiny", "eva02_tiny_patch14_224"
    options = dict(img_size=56, depth=2)
    size = 56
