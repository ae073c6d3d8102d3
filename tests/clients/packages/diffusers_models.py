"""diffusers: networks, schedulers and a pipeline."""

from __future__ import annotations

import tempfile

import diffusers
import torch

from tests.clients.networks import Network, made_weights, ramp, tensors_of
from tests.clients.stages import Client, stage

UNET = dict(
    sample_size=8,
    in_channels=3,
    out_channels=3,
    layers_per_block=1,
    block_out_channels=(16, 16),
    norm_num_groups=4,
    down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D"),
)
SCHEDULERS = """DDPM DDIM PNDM LMSDiscrete EulerDiscrete EulerAncestralDiscrete HeunDiscrete DPMSolverMultistep DPMSolverSinglestep
    UniPCMultistep KDPM2Discrete DEISMultistep FlowMatchEulerDiscrete LCM""".split()


class Diffusion(Network):
    """A network of diffusers', with the library's own files beside the common stages."""

    @stage
    def save_pretrained(self):
        with tempfile.TemporaryDirectory() as folder:
            self.module.save_pretrained(folder)
            again = type(self.module).from_pretrained(folder).eval()
        with torch.no_grad():
            return self.call(again)


class UNet(Diffusion):
    name = "UNet2DModel"

    def make(self):
        return diffusers.UNet2DModel(**UNET)

    def inputs(self):
        return dict(sample=ramp(2, 3, 8, 8), timestep=torch.tensor([3, 7]))


class ConditionedUNet(Diffusion):
    name = "UNet2DConditionModel"

    def make(self):
        return diffusers.UNet2DConditionModel(
            sample_size=8,
            in_channels=4,
            out_channels=4,
            layers_per_block=1,
            block_out_channels=(16, 16),
            norm_num_groups=4,
            cross_attention_dim=16,
            attention_head_dim=4,
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
            up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        )

    def inputs(self):
        return dict(sample=ramp(2, 4, 8, 8), timestep=torch.tensor([3, 7]), encoder_hidden_states=ramp(2, 5, 16))


class Autoencoder(Diffusion):
    name = "AutoencoderKL"

    def make(self):
        blocks = dict(down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2)
        return diffusers.AutoencoderKL(block_out_channels=(8, 16), norm_num_groups=4, latent_channels=4, **blocks)

    def inputs(self):
        return dict(sample=ramp(1, 3, 16, 16))


class Transformer(Diffusion):
    name = "DiTTransformer2DModel"

    def make(self):
        sizes = dict(num_attention_heads=2, attention_head_dim=8, in_channels=4, out_channels=8, sample_size=8)
        return diffusers.DiTTransformer2DModel(num_layers=2, norm_num_groups=4, num_embeds_ada_norm=10, patch_size=2, **sizes)

    def inputs(self):
        return dict(hidden_states=ramp(2, 4, 8, 8), timestep=torch.tensor([3, 7]), class_labels=torch.tensor([1, 2]))


class Flux(Diffusion):
    name = "FluxTransformer2DModel"

    def make(self):
        sizes = dict(
            in_channels=4, attention_head_dim=16, num_attention_heads=2, joint_attention_dim=32, pooled_projection_dim=32
        )
        return diffusers.FluxTransformer2DModel(
            patch_size=1, num_layers=1, num_single_layers=1, axes_dims_rope=[4, 4, 8], **sizes
        )

    def inputs(self):
        where = dict(img_ids=torch.zeros(16, 3), txt_ids=torch.zeros(6, 3), timestep=torch.tensor([1.0, 0.5]))
        return dict(hidden_states=ramp(2, 16, 4), encoder_hidden_states=ramp(2, 6, 32), pooled_projections=ramp(2, 32), **where)


class Schedulers(Client):
    name = "schedulers"

    def sample(self, kind):
        scheduler = getattr(diffusers, f"{kind}Scheduler")()
        scheduler.set_timesteps(4)
        sample = ramp(1, 3, 4, 4)
        generator = torch.Generator().manual_seed(1)
        for step in scheduler.timesteps:
            noise = scheduler.scale_model_input(sample, step) * 0.1 if hasattr(scheduler, "scale_model_input") else sample * 0.1
            options = dict(generator=generator) if "generator" in scheduler.step.__code__.co_varnames else {}
            sample = scheduler.step(noise, step, sample, **options).prev_sample
        return [scheduler.timesteps, sample]


def _of_scheduler(kind):
    def steps(self):
        return self.sample(kind)

    return stage(steps)


for _kind in SCHEDULERS:
    setattr(Schedulers, _kind, _of_scheduler(_kind))


class Pipeline(Client):
    name = "pipelines"

    @stage
    def build(self):
        module = diffusers.UNet2DModel(**UNET).eval()
        module.load_state_dict(made_weights(module))
        self.pipe = diffusers.DDIMPipeline(unet=module, scheduler=diffusers.DDIMScheduler())
        self.pipe.set_progress_bar_config(disable=True)

    def images(self, pipe):
        generator = torch.Generator().manual_seed(2)
        return pipe(batch_size=1, generator=generator, num_inference_steps=3, output_type="np").images

    @stage
    def sample(self):
        return self.images(self.pipe)

    @stage
    def save_and_load(self):
        with tempfile.TemporaryDirectory() as folder:
            self.pipe.save_pretrained(folder)
            again = diffusers.DDIMPipeline.from_pretrained(folder)
        again.set_progress_bar_config(disable=True)
        return self.images(again)

    @stage
    def ema(self):
        module = torch.nn.Linear(4, 4)
        module.load_state_dict(made_weights(module))
        from diffusers.training_utils import EMAModel

        average = EMAModel(module.parameters(), decay=0.5)
        with torch.no_grad():
            module.weight.add_(1.0)
        average.step(module.parameters())
        average.copy_to(module.parameters())
        return tensors_of(list(module.parameters()))
