"""transformers: encoders of text, images and sound."""

from __future__ import annotations

import tempfile

import torch
import transformers

from tests.clients.networks import Network, ramp, tensors_of
from tests.clients.stages import stage

TEXT = dict(
    vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37, max_position_embeddings=64
)
IMAGE = dict(
    image_size=32,
    patch_size=8,
    num_channels=3,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=37,
)
TOKENS = [[5, 6, 7, 8, 9, 10, 11, 12], [13, 14, 15, 16, 17, 18, 19, 20]]
transformers.logging.set_verbosity_error()


class Transformer(Network):
    """A model made from its configuration, with the library's own files beside the common stages."""

    kind = ""
    configuration: dict = {}

    def make(self):
        configuration = getattr(transformers, self.kind[: self.kind.index("_")] + "Config")(**self.configuration)
        return getattr(transformers, self.kind.replace("_", ""))(configuration)

    def inputs(self):
        return dict(input_ids=torch.tensor(TOKENS))

    @stage
    def save_pretrained(self):
        with tempfile.TemporaryDirectory() as folder:
            self.module.save_pretrained(folder)
            again = type(self.module).from_pretrained(folder).eval()
        with torch.no_grad():
            return self.call(again)


class Vision(Transformer):
    """The same for images."""

    size = 32

    def inputs(self):
        return dict(pixel_values=ramp(2, 3, self.size, self.size))


class Bert(Transformer):
    name, kind, configuration = "BERT", "Bert_ForMaskedLM", TEXT

    def inputs(self):
        mask = torch.ones(2, 8, dtype=torch.long)
        mask[1, 6:] = 0
        return dict(input_ids=torch.tensor(TOKENS), attention_mask=mask, labels=torch.tensor(TOKENS))


class Roberta(Transformer):
    name, kind, configuration = "RoBERTa", "Roberta_Model", TEXT


class DistilBert(Transformer):
    name, kind = "DistilBERT", "DistilBert_ForSequenceClassification"
    configuration = dict(vocab_size=99, dim=32, n_layers=2, n_heads=4, hidden_dim=37, max_position_embeddings=64)


class Albert(Transformer):
    name, kind, configuration = "ALBERT", "Albert_Model", dict(TEXT, embedding_size=16)


class Electra(Transformer):
    name, kind, configuration = "ELECTRA", "Electra_Model", dict(TEXT, embedding_size=16)


class Deberta(Transformer):
    name, kind = "DeBERTa-v2", "DebertaV2_Model"
    configuration = dict(TEXT, relative_attention=True, pos_att_type=["p2c", "c2p"])


class ViT(Vision):
    name, kind, configuration = "ViT", "ViT_ForImageClassification", IMAGE


class DeiT(Vision):
    name, kind, configuration = "DeiT", "DeiT_Model", IMAGE


class Dinov2(Vision):
    name, kind, configuration = "DINOv2", "Dinov2_Model", IMAGE


class ConvNext(Vision):
    name, kind, size = "ConvNeXT", "ConvNext_Model", 64
    configuration = dict(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1])


class ResNet(Vision):
    name, kind, size = "ResNet", "ResNet_ForImageClassification", 64
    configuration = dict(embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], layer_type="basic")


class Swin(Vision):
    name, kind = "Swin", "Swin_Model"
    configuration = dict(image_size=32, patch_size=2, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=4)


class Segformer(Vision):
    name, kind, size = "SegFormer", "Segformer_ForSemanticSegmentation", 64
    configuration = dict(
        depths=[1, 1, 1, 1], hidden_sizes=[8, 16, 24, 32], num_attention_heads=[1, 2, 2, 4], decoder_hidden_size=16
    )


class Clip(Transformer):
    name, kind = "CLIP", "CLIP_Model"
    configuration = dict(
        text_config=dict(TEXT, projection_dim=16, bos_token_id=0, eos_token_id=20),
        vision_config=dict(IMAGE, projection_dim=16),
        projection_dim=16,
    )

    def inputs(self):
        return dict(input_ids=torch.tensor(TOKENS), pixel_values=ramp(2, 3, 32, 32))


class Wav2Vec2(Transformer):
    name, kind = "Wav2Vec2", "Wav2Vec2_Model"
    configuration = dict(
        vocab_size=32,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=37,
        conv_dim=(16, 16),
        conv_stride=(5, 2),
        conv_kernel=(10, 3),
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=2,
    )

    def inputs(self):
        return dict(input_values=ramp(2, 400))

    def call(self, module):
        return tensors_of(module(**self.inputs()).last_hidden_state)
