"""Write the TorchScript archives that `benchmarks.archives` measures: `python -m benchmarks.make_archives DIR [NAME ...]`.

Needs PyTorch, torchvision, timm and transformers (an environment of their own: torchvision wants its own PyTorch). Models have
random weights. Each archive comes with its inputs (`NAME.inputs.pt`, a dict of tensors and numbers by position). Models that
torch can't script or trace are skipped, and said.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

TIMM = (
    "resnet18 resnet50 res2net50_26w_4s efficientnet_b0 mobilenetv3_large_100 mobilenetv2_100 ghostnet_100 densenet121 "
    "mobilevit_s levit_128 convnext_atto swin_tiny_patch4_window7_224 vit_tiny_patch16_224 deit_small_patch16_224 "
    "regnety_004 regnetx_004 resnext50_32x4d seresnet50 dpn68 xcit_nano_12_p16_224 mixer_s32_224 gmlp_s16_224 resmlp_12_224 "
    "poolformer_s12 pvt_v2_b0 edgenext_xx_small efficientformer_l1 fbnetc_100 mnasnet_100 hardcorenas_a rexnet_100 "
    "tinynet_e inception_v3 dla34 hrnet_w18_small vovnet39a repvgg_a0 cspresnet50 darknet53 tf_efficientnetv2_b0 "
    "visformer_tiny crossvit_tiny_240 coat_tiny maxvit_rmlp_nano_rw_256 botnet26t_256 eca_nfnet_l0 nfnet_l0 skresnet18 "
    "selecsls42b xception41"
).split()

TRANSFORMERS = (
    "albert bart bert bigbird blenderbot camembert convbert deberta deberta-v2 distilbert electra fnet funnel gpt2 gpt_neo "
    "gpt_neox layoutlm longformer m2m_100 mobilebert mpnet opt pegasus rembert roberta roformer squeezebert t5 xlm xlnet "
    "llama mistral vit beit deit swin segformer wav2vec2 whisper clip"
).split()


def timm_model(name: str) -> tuple[nn.Module, tuple]:
    """A model of timm and an image of its size."""
    import timm

    model = timm.create_model(name, pretrained=False, scriptable=True)
    size = model.default_cfg["input_size"]
    return model.eval(), (torch.randn(1, *size),)


def scripted_timm(name: str) -> Callable[[], tuple]:
    """A maker of a scripted model."""
    def make() -> tuple:
        model, inputs = timm_model(name)
        return torch.jit.script(model), inputs
    return make


def traced_timm(name: str) -> Callable[[], tuple]:
    """A maker of a traced model."""
    def make() -> tuple:
        model, inputs = timm_model(name)
        return torch.jit.trace(model, inputs), inputs
    return make


_SMALL = {
    "hidden_size": 256, "d_model": 256, "n_embd": 256, "dim": 256, "emb_dim": 256, "embedding_size": 128,
    "num_hidden_layers": 4, "num_layers": 4, "n_layers": 4, "n_layer": 4, "encoder_layers": 3, "decoder_layers": 3,
    "num_decoder_layers": 3,
    "num_attention_heads": 4, "num_heads": 4, "n_heads": 4, "n_head": 4, "encoder_attention_heads": 4, "num_key_value_heads": 4,
    "decoder_attention_heads": 4, "intermediate_size": 1024, "encoder_ffn_dim": 1024, "decoder_ffn_dim": 1024,
    "vocab_size": 8000, "d_kv": 64, "d_ff": 1024, "hidden_dim": 1024, "d_inner": 1024, "n_inner": 1024,
    "max_position_embeddings": 512,
}  # fmt: skip


def traced_transformer(name: str) -> Callable[[], tuple]:
    """A maker of a traced model of transformers, 4 layers of 256 where its configuration can be told."""
    def make() -> tuple:
        from transformers import AutoConfig, AutoModel

        known = AutoConfig.for_model(name)
        chosen = {} if name in ("segformer", "swin", "clip") else {key: _SMALL[key] for key in _SMALL if hasattr(known, key)}
        chosen |= {"return_dict": False, "use_cache": False, "torchscript": True, "attn_implementation": "eager"}
        config = AutoConfig.for_model(name, **chosen)
        for key in ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id"):
            if (getattr(config, key, None) or 0) >= 8000:
                setattr(config, key, 2)
        model = AutoModel.from_config(config).eval()
        return _traced_by_kind(name, model, config)
    return make


def _traced_by_kind(name: str, model: nn.Module, config: object) -> tuple:
    ids = torch.randint(3, 8000, (1, 128))
    if name in ("vit", "beit", "deit", "swin", "segformer"):
        size = getattr(config, "image_size", 224)
        inputs = (torch.randn(1, 3, size, size),)
    elif name == "wav2vec2":
        inputs = (torch.randn(1, 16000),)
    elif name == "whisper":
        model, inputs = model.encoder, (torch.randn(1, config.num_mel_bins, 3000),)
    elif name == "clip":
        model, inputs = model.vision_model, (torch.randn(1, 3, 224, 224),)
    elif getattr(config, "is_encoder_decoder", False):
        return torch.jit.trace(_EncoderDecoder(model), (ids, ids), check_trace=False), (ids, ids)
    else:
        inputs = (ids,)
    return torch.jit.trace(_First(model), inputs, check_trace=False), inputs


class _First(nn.Module):
    """The first output of a model."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(x)[0]


class _EncoderDecoder(nn.Module):
    """The first output of a model that takes ids for both its halves."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=source, decoder_input_ids=target)[0]


def detector(name: str) -> Callable[[], tuple]:
    """A maker of one of torchvision's scripted detectors, whose images are small."""
    def make() -> tuple:
        import torchvision

        options = {} if "320" in name else {"min_size": 256, "max_size": 320}
        model = getattr(torchvision.models.detection, name)(weights=None, weights_backbone=None, **options).eval()
        return torch.jit.script(model), ([torch.rand(3, 240, 320)],)
    return make


def video(name: str) -> Callable[[], tuple]:
    """A maker of one of torchvision's video models, scripted."""
    def make() -> tuple:
        import torchvision

        model = getattr(torchvision.models.video, name)(weights=None).eval()
        return torch.jit.script(model), (torch.randn(1, 3, 16, 112, 112),)
    return make


def segmentation(name: str) -> Callable[[], tuple]:
    """A maker of one of torchvision's scripted segmentation models."""
    def make() -> tuple:
        import torchvision

        model = getattr(torchvision.models.segmentation, name)(weights=None, weights_backbone=None).eval()
        return torch.jit.script(model), (torch.randn(1, 3, 224, 224),)
    return make


class _Attention(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.score = nn.Linear(2 * width, 1)

    def forward(self, state: torch.Tensor, encoded: torch.Tensor) -> torch.Tensor:
        repeated = state.unsqueeze(1).expand(-1, encoded.size(1), -1)
        weights = torch.softmax(self.score(torch.cat([repeated, encoded], 2)), 1)
        return (weights * encoded).sum(1)


class Translator(nn.Module):
    """A recurrent encoder, and a decoder with attention that stops at the end mark."""

    def __init__(self, words: int = 4000, width: int = 256):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.encoder = nn.GRU(width, width, batch_first=True)
        self.attention = _Attention(width)
        self.cell = nn.GRUCell(2 * width, width)
        self.out = nn.Linear(width, words)

    def forward(self, source: torch.Tensor, longest: int):
        encoded, last = self.encoder(self.embedding(source))
        state = last[0]
        word = torch.ones(source.size(0), dtype=torch.long)
        words: list[torch.Tensor] = []
        for _ in range(longest):
            context = self.attention(state, encoded)
            state = self.cell(torch.cat([self.embedding(word), context], 1), state)
            word = self.out(state).argmax(1)
            words.append(word)
            if bool((word == 2).all()):
                break
        return torch.stack(words, 1)


def translator() -> tuple:
    """A scripted decoder with a loop that may end early."""
    return torch.jit.script(Translator().eval()), (torch.randint(3, 4000, (1, 20)), 30)


def _encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
    return nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)


def quantized(layers: str) -> Callable[[], tuple]:
    """A maker of a dynamically quantized model."""
    def make() -> tuple:
        models = {
            "mlp": (nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)), (torch.randn(16, 256),)),
            "lstm": (nn.LSTM(128, 256, 2), (torch.randn(50, 1, 128),)),
            "encoder": (_encoder(), (torch.randn(1, 64, 256),)),
        }  # fmt: skip
        model, inputs = models[layers]
        made = torch.ao.quantization.quantize_dynamic(model.eval(), {nn.Linear, nn.LSTM}, dtype=torch.qint8)
        return torch.jit.script(made) if layers != "encoder" else torch.jit.trace(made, inputs), inputs
    return make


def quantized_vision(name: str) -> Callable[[], tuple]:
    """A maker of one of torchvision's quantized nets."""
    def make() -> tuple:
        import torchvision

        torch.backends.quantized.engine = "fbgemm"
        model = getattr(torchvision.models.quantization, name)(weights=None, quantize=True).eval()
        return torch.jit.script(model), (torch.randn(1, 3, 224, 224),)
    return make


_DETECTORS = (
    "fasterrcnn_resnet50_fpn fasterrcnn_mobilenet_v3_large_320_fpn retinanet_resnet50_fpn maskrcnn_resnet50_fpn "
    "ssdlite320_mobilenet_v3_large keypointrcnn_resnet50_fpn"
).split()
_SEGMENTERS = "deeplabv3_mobilenet_v3_large lraspp_mobilenet_v3_large fcn_resnet50".split()
_QUANTIZED = "resnet18 mobilenet_v2 mobilenet_v3_large googlenet shufflenet_v2_x1_0 resnet50 inception_v3".split()
MAKERS: dict[str, Callable[[], tuple]] = {
    "translator": translator,
    **{f"scripted_{name}": scripted_timm(name) for name in TIMM},
    **{f"traced_{name}": traced_timm(name) for name in TIMM},
    **{f"traced_tf_{name}": traced_transformer(name) for name in TRANSFORMERS},
    **{f"detector_{name}": detector(name) for name in _DETECTORS},
    **{f"video_{name}": video(name) for name in ("r3d_18", "mc3_18", "r2plus1d_18")},
    **{f"segmentation_{name}": segmentation(name) for name in _SEGMENTERS},
    **{f"quantized_{name}": quantized(name) for name in ("mlp", "lstm", "encoder")},
    **{f"quantized_{name}": quantized_vision(name) for name in _QUANTIZED},
}


def main() -> None:
    """Write archives; those that are there already are kept."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or MAKERS:
        path = folder / f"{name}.pt"
        if path.exists():
            continue
        torch.manual_seed(0)
        try:
            with torch.no_grad():
                model, inputs = MAKERS[name]()
                model(*inputs)
                torch.save({str(index): value for index, value in enumerate(inputs)}, folder / f"{name}.inputs.pt")
                torch.jit.save(model, path)
        except Exception as error:  # whatever a library raises for a model that can't be scripted
            print(f"{name}: {type(error).__name__}: {traceback.format_exception_only(error)[-1].strip()[:200]}", flush=True)
            continue
        print(name, flush=True)


if __name__ == "__main__":
    main()
