"""kornia: filters, geometry, colors, losses and augmentations that are differentiable."""

from __future__ import annotations

import kornia
import torch

from tests.clients.networks import Network, compile_by, ramp
from tests.clients.stages import Client, stage


def image(*sizes):
    return ramp(*(sizes or (2, 3, 16, 16)), low=0.0)


class Functions(Client):
    name = "functions"

    @stage
    def filters(self):
        filters = kornia.filters
        return [
            filters.gaussian_blur2d(image(), (3, 3), (1.0, 1.0)),
            filters.sobel(image()),
            filters.median_blur(image(), (3, 3)),
            filters.laplacian(image(), 3),
            filters.unsharp_mask(image(), (3, 3), (1.5, 1.5)),
        ]

    @stage
    def bilateral(self):
        return kornia.filters.bilateral_blur(image(), (3, 3), 0.1, (1.5, 1.5))

    @stage
    def canny(self):
        return list(kornia.filters.canny(image()))

    @stage
    def colors(self):
        color = kornia.color
        kinds = (color.rgb_to_grayscale, color.rgb_to_hsv, color.rgb_to_lab, color.rgb_to_ycbcr, color.rgb_to_luv)
        return [kind(image()) for kind in kinds]

    @stage
    def geometry(self):
        geometry = kornia.geometry
        return [
            geometry.rotate(image(), torch.tensor([30.0, 45.0])),
            geometry.resize(image(), (8, 12)),
            geometry.translate(image(), torch.tensor([[1.0, 2.0], [0.5, 0.0]])),
        ]

    @stage
    def warp(self):
        corners = torch.tensor([[[0.0, 0.0], [15.0, 0.0], [15.0, 15.0], [0.0, 15.0]]])
        moved = corners + torch.tensor([[[1.0, 1.0], [-1.0, 2.0], [0.0, -1.0], [2.0, 0.0]]])
        matrix = kornia.geometry.get_perspective_transform(corners, moved)
        return [matrix, kornia.geometry.warp_perspective(image(1, 3, 16, 16), matrix, (16, 16))]

    @stage
    def rotations(self):
        turned = kornia.geometry.axis_angle_to_rotation_matrix(torch.tensor([[0.1, 0.2, 0.3]]))
        return [turned, kornia.geometry.rotation_matrix_to_axis_angle(turned)]

    @stage
    def fundamental(self):
        return kornia.geometry.find_homography_dlt(image(1, 8, 2) * 10, image(1, 8, 2).flip(1) * 5 + ramp(1, 8, 2)).isfinite()

    @stage
    def features(self):
        return [kornia.feature.harris_response(image()), kornia.feature.gftt_response(image())]

    @stage
    def losses(self):
        other = image().flip(3)
        return [
            kornia.losses.ssim_loss(image(), other, 5),
            kornia.losses.psnr_loss(image(), other, 1.0),
            kornia.losses.total_variation(image()),
            kornia.losses.focal_loss(ramp(2, 4, 5, 5), torch.arange(50).reshape(2, 5, 5) % 4, 0.5, reduction="mean"),
        ]

    @stage
    def morphology(self):
        ones = torch.ones(3, 3)
        return [kornia.morphology.dilation(image(), ones), kornia.morphology.erosion(image(), ones)]

    @stage
    def enhance(self):
        enhance = kornia.enhance
        return [enhance.adjust_contrast(image(), 0.5), enhance.equalize(image()), enhance.normalize_min_max(image())]

    @stage
    def backward(self):
        value = image().requires_grad_()
        angle = torch.tensor([30.0, 45.0], requires_grad=True)
        (kornia.geometry.rotate(kornia.filters.gaussian_blur2d(value, (3, 3), (1.0, 1.0)), angle) ** 2).sum().backward()
        return [value.grad, angle.grad]

    @stage
    def compile(self):
        def both(value):
            return kornia.color.rgb_to_hsv(kornia.filters.gaussian_blur2d(value, (3, 3), (1.0, 1.0)))

        return compile_by(both)(image())


class Augmentations(Client):
    """What is drawn comes from torch's generator, so that the pictures are the same."""

    name = "augmentation"

    def apply(self, *kinds):
        torch.manual_seed(3)
        with torch.no_grad():
            return kornia.augmentation.AugmentationSequential(*kinds, data_keys=["input"])(image())

    @stage
    def flips(self):
        return self.apply(kornia.augmentation.RandomHorizontalFlip(p=0.5), kornia.augmentation.RandomVerticalFlip(p=0.5))

    @stage
    def colors(self):
        return self.apply(kornia.augmentation.ColorJitter(0.1, 0.1, 0.1, 0.1, p=1.0))

    @stage
    def affine(self):
        return self.apply(kornia.augmentation.RandomAffine(20.0, p=1.0))

    @stage
    def crop(self):
        return self.apply(kornia.augmentation.RandomResizedCrop((8, 8), p=1.0))

    @stage
    def erasing(self):
        return self.apply(kornia.augmentation.RandomErasing(p=1.0))


class HardNet(Network):
    """A network of descriptors of patches."""

    name = "HardNet"

    def make(self):
        return kornia.feature.HardNet(pretrained=False)

    def call(self, module):
        return [module(image(2, 1, 32, 32))]
