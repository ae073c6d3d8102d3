"""Models of timm and transformers, traced by PyTorch: `python -m tests.deploy.survey_torch FOLDER [NAME ...]`.

In: names of models; by default all. Out: for each a folder with its archive, inputs and PyTorch's result. All have random weights, so
that nothing is downloaded, and small inputs. Runs in a process of its own: the survey itself never imports PyTorch.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

VISION = {
    **dict.fromkeys((
        "resnet18", "resnet50", "seresnext26d_32x4d", "mobilenetv2_050", "mobilenetv3_small_050", "mobilenetv4_conv_small_050",
        "efficientnet_b0", "tf_efficientnetv2_b0", "convnext_atto", "convnextv2_atto", "regnetx_002", "regnety_002",
        "densenet121", "ghostnet_050", "mnasnet_small", "hrnet_w18_small", "poolformer_s12", "edgenext_xx_small",
        "mobilevit_xxs", "repvgg_a0", "cspresnet50", "pvt_v2_b0", "gernet_s",
    ), {}),
    "vit_tiny_patch16_224": {"img_size": 64}, "deit_tiny_distilled_patch16_224": {"img_size": 64},
    "swin_tiny_patch4_window7_224": {"img_size": 64, "window_size": 2}, "mixer_s32_224": {"img_size": 64},
    "xcit_nano_12_p16_224": {"img_size": 64}, "beit_base_patch16_224": {"img_size": 64, "embed_dim": 96, "num_heads": 4},
}  # fmt: skip
"""Models of timm, and what they are made with."""

_SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 99}
_DECODER = {**_SMALL, "num_key_value_heads": 2, "max_position_embeddings": 64}
_IMAGES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "image_size": 32,
           "patch_size": 8}  # fmt: skip
_STAGES = {"embedding_size": 8, "hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 2, 1]}
WORDS = {
    "Bert": _SMALL, "Roberta": {**_SMALL, "max_position_embeddings": 64}, "XLMRoberta": {**_SMALL, "max_position_embeddings": 64},
    "DistilBert": {"vocab_size": 99, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
    "Albert": {**_SMALL, "embedding_size": 16}, "Electra": {**_SMALL, "embedding_size": 16}, "MPNet": _SMALL,
    "DebertaV2": {**_SMALL, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]}, "RoFormer": {**_SMALL, "embedding_size": 32},
    "GPT2": {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
    "GPTNeo": {"vocab_size": 99, "hidden_size": 32, "num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]]},
    "GPTNeoX": _SMALL, "OPT": {**_SMALL, "ffn_dim": 64, "word_embed_proj_dim": 32, "max_position_embeddings": 64},
    "Bloom": {"vocab_size": 99, "hidden_size": 32, "n_layer": 2, "n_head": 4},
    "Llama": _DECODER, "Mistral": _DECODER, "Gemma": {**_DECODER, "head_dim": 8}, "Qwen2": _DECODER, "Phi": _DECODER,
    "T5Encoder": {"vocab_size": 99, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4},
    "CLIPText": {**_SMALL, "projection_dim": 16, "max_position_embeddings": 64},
}  # fmt: skip
"""Models of transformers over tokens, and their configurations."""
IMAGES = {
    "ViT": _IMAGES, "DeiT": _IMAGES, "Beit": _IMAGES, "CLIPVision": {**_IMAGES, "projection_dim": 16},
    "Dinov2": _IMAGES, "ResNet": _STAGES, "RegNet": _STAGES,
    "ConvNext": {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 2, 1]},
    "Swin": {"image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4},
    "Segformer": {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 3, 4]},
    "MobileNetV2": {"depth_multiplier": 0.35}, "MobileViT": {"hidden_sizes": [16, 24, 32], "neck_hidden_sizes": [8, 8, 16, 16, 24, 32, 32]},
}  # fmt: skip
"""Models of transformers over images of 32 by 32 pixels."""
SOUNDS = {
    "Wav2Vec2": {**_SMALL, "conv_dim": [16, 16], "conv_kernel": [10, 3], "conv_stride": [5, 2], "num_feat_extract_layers": 2,
                 "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4},
    "WhisperEncoder": {"d_model": 32, "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 64,
                       "num_mel_bins": 20, "max_source_positions": 32, "decoder_layers": 1},
}  # fmt: skip
"""Models of transformers over sound: samples, and spectra."""


def names() -> list[str]:
    """All models."""
    return [*(f"timm/{name}" for name in VISION), *(f"transformers/{name}" for name in (*WORDS, *IMAGES, *SOUNDS))]


def _vision(name: str, options: dict) -> tuple:
    import torch

    operators = torch.library.Library("torchvision", "FRAGMENT")
    for operator in ("nms", "qnms"):  # torchvision describes these when it is imported, even if its own operators are missing
        if not hasattr(torch.ops.torchvision, operator):
            operators.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import timm

    torch.manual_seed(0)
    return timm.create_model(name, pretrained=False, num_classes=10, **options), (torch.rand(1, 3, 64, 64),)


def _transformer(name: str, options: dict) -> tuple:
    import torch
    import transformers

    family = name.removesuffix("Encoder") if name in ("T5Encoder", "WhisperEncoder") else name
    config = getattr(transformers, f"{family}Config")(**options)
    config._attn_implementation = "eager"
    torch.manual_seed(0)
    if name == "WhisperEncoder":
        model = transformers.models.whisper.modeling_whisper.WhisperEncoder(config)
    else:
        model = getattr(transformers, f"{name}Model")(config)
    if name in WORDS:
        given = torch.randint(3, 99, (1, 12))
    elif name in IMAGES:
        given = torch.rand(1, 3, 32, 32)
    else:
        given = torch.rand(1, 20, 64) if name == "WhisperEncoder" else torch.rand(1, 800)

    class First(torch.nn.Module):
        """Gives the first result only, and asks for no cache."""

        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, given):
            cached = {"use_cache": False} if hasattr(config, "use_cache") and name in WORDS else {}
            return self.model(given, return_dict=False, **cached)[0]

    return First(), (given,)


def _maker(name: str) -> Callable[[], tuple]:
    library, _, model = name.partition("/")
    if library == "timm":
        return lambda: _vision(model, VISION[model])
    return lambda: _transformer(model, {**WORDS, **IMAGES, **SOUNDS}[model])


def write(name: str, folder: Path) -> None:
    """Traces one model and writes its archive, inputs and result; on an error writes the error instead."""
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    try:
        model, given = _maker(name)()
        model.eval()
        with torch.no_grad():
            traced = torch.jit.trace(model, given, check_trace=False)
            result = model(*given)
        traced.save(str(folder / "model.pt"))
        np.savez(
            folder / "values.npz", result=result.numpy(), **{f"given_{place}": each.numpy() for place, each in enumerate(given)}
        )
    except Exception as error:
        (folder / "error.txt").write_text(f"{type(error).__name__}: {str(error)[:300]}\n{traceback.format_exc()}")


def main() -> None:
    """Writes the models named on the command line."""
    warnings.simplefilter("ignore")
    folder, *asked = sys.argv[1:]
    for name in asked or names():
        write(name, Path(folder) / name)
        print(name, flush=True)


if __name__ == "__main__":
    main()
