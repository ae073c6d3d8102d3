"""open_clip: models of images and text, tokens, transforms and losses."""

from __future__ import annotations

import open_clip
import torch
from open_clip.model import CLIP

from tests.clients.networks import Network, ramp
from tests.clients.stages import Client, stage

TEXT = dict(context_length=16, vocab_size=99, width=32, heads=4, layers=2)
TOKENS = [[5, 6, 7, 8, 9, 10, 11, 12] + [0] * 8, [13, 14, 15, 16, 17, 18, 19, 98] + [0] * 8]


class Clip(Network):
    """A model named by its vision tower."""

    vision: dict = {}
    options: dict = {}

    def make(self):
        return CLIP(embed_dim=16, vision_cfg=dict(image_size=32, **self.vision), text_cfg=TEXT, **self.options)

    def call(self, module):
        images, texts, scale = module(ramp(2, 3, 32, 32), torch.tensor(TOKENS))[:3]
        return [images, texts, scale]

    @stage
    def encode(self):
        with torch.no_grad():
            images = self.module.encode_image(ramp(2, 3, 32, 32), normalize=True)
            return (100.0 * images @ self.module.encode_text(torch.tensor(TOKENS), normalize=True).T).softmax(-1)

    @stage
    def contrast(self):
        images, texts, scale = self.call(self.module)
        return open_clip.ClipLoss()(images, texts, scale).detach()


class Vit(Clip):
    name, vision = "ViT", dict(layers=2, width=64, head_width=16, patch_size=8)


class Resnet(Clip):
    name, vision = "ModifiedResNet", dict(layers=(1, 1, 1, 1), width=16, head_width=16)


class Timm(Clip):
    name = "timm's resnet18"
    vision = dict(timm_model_name="resnet18", timm_pool="avg", timm_proj="linear")


class Library(Client):
    name = "library"

    @stage
    def list_models(self):
        return len(open_clip.list_models())

    @stage
    def tokenize(self):
        return open_clip.tokenize(["a photo of a cat", "a dog"])[:, :10]

    @stage
    def transform(self):
        from PIL import Image

        transform = open_clip.image_transform(32, is_train=False)
        return transform(Image.linear_gradient("L").convert("RGB"))

    @stage
    def train_transform(self):
        from PIL import Image

        transform = open_clip.image_transform(32, is_train=True)
        return list(transform(Image.linear_gradient("L").convert("RGB")).shape)

    @stage
    def create_model(self):
        model, _, _ = open_clip.create_model_and_transforms("ViT-B-32-quickgelu", force_image_size=32, load_weights=False)
        return sum(value.numel() for value in model.parameters())

    @stage
    def siglip_loss(self):
        return open_clip.loss.SigLipLoss()(ramp(2, 8), ramp(2, 8).flip(1), torch.tensor(10.0), torch.tensor(-10.0))
