"""transformers: language models, which generate: greedy, by beams and sampled."""

from __future__ import annotations

import torch
import transformers

from tests.clients.networks import ramp
from tests.clients.packages.transformers_encoders import TEXT, TOKENS, Transformer
from tests.clients.stages import stage


class Language(Transformer):
    """A decoder or an encoder-decoder: its generated text is compared token by token."""

    def prompt(self):
        return dict(input_ids=torch.tensor(TOKENS))

    def generate(self, **options):
        limits = dict(max_new_tokens=8, min_new_tokens=8, pad_token_id=0)
        return self.module.generate(**self.prompt(), **limits, **options)

    @stage
    def generate_greedy(self):
        return self.generate(do_sample=False)

    @stage
    def generate_beam(self):
        return self.generate(num_beams=3, do_sample=False)

    @stage
    def generate_sampled(self):
        return self.generate(do_sample=True, top_k=20, top_p=0.9, temperature=0.8)


class Gpt2(Language):
    name, kind = "GPT-2", "GPT2_LMHeadModel"
    configuration = dict(vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64)


class Llama(Language):
    name, kind, configuration = "Llama", "Llama_ForCausalLM", dict(TEXT, num_key_value_heads=2)


class Mistral(Language):
    name, kind, configuration = "Mistral", "Mistral_ForCausalLM", dict(TEXT, num_key_value_heads=2, sliding_window=6)


class Qwen2(Language):
    name, kind, configuration = "Qwen2", "Qwen2_ForCausalLM", dict(TEXT, num_key_value_heads=2)


class Qwen3(Language):
    name, kind, configuration = "Qwen3", "Qwen3_ForCausalLM", dict(TEXT, num_key_value_heads=2, head_dim=8)


class Gemma(Language):
    name, kind, configuration = "Gemma", "Gemma_ForCausalLM", dict(TEXT, num_key_value_heads=2, head_dim=8)


class Gemma2(Language):
    name, kind = "Gemma2", "Gemma2_ForCausalLM"
    configuration = dict(TEXT, num_key_value_heads=2, head_dim=8, sliding_window=6)


class Phi(Language):
    name, kind, configuration = "Phi", "Phi_ForCausalLM", TEXT


class GptNeoX(Language):
    name, kind, configuration = "GPT-NeoX", "GPTNeoX_ForCausalLM", TEXT


class Opt(Language):
    name, kind = "OPT", "OPT_ForCausalLM"
    configuration = dict(
        vocab_size=99,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        ffn_dim=37,
        max_position_embeddings=64,
        word_embed_proj_dim=32,
    )


class Bloom(Language):
    name, kind, configuration = "BLOOM", "Bloom_ForCausalLM", dict(vocab_size=99, hidden_size=32, n_layer=2, n_head=4)


class Falcon(Language):
    name, kind = "Falcon", "Falcon_ForCausalLM"
    configuration = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4)


class Mixtral(Language):
    """A mixture of experts."""

    name, kind = "Mixtral", "Mixtral_ForCausalLM"
    configuration = dict({**TEXT, "intermediate_size": 40}, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2)


class Mamba(Language):
    """A state-space model, through its path in Python."""

    name, kind = "Mamba", "Mamba_ForCausalLM"
    configuration = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, state_size=8)


class T5(Language):
    name, kind = "T5", "T5_ForConditionalGeneration"
    configuration = dict(
        vocab_size=99, d_model=32, d_kv=8, d_ff=37, num_layers=2, num_heads=4, decoder_start_token_id=0, dropout_rate=0.0
    )

    def inputs(self):
        return dict(input_ids=torch.tensor(TOKENS), labels=torch.tensor(TOKENS))


class Bart(Language):
    name, kind = "BART", "Bart_ForConditionalGeneration"
    configuration = dict(
        vocab_size=99,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=37,
        decoder_ffn_dim=37,
        max_position_embeddings=64,
    )

    def inputs(self):
        return dict(input_ids=torch.tensor(TOKENS), decoder_input_ids=torch.tensor(TOKENS))


class Whisper(Language):
    name, kind = "Whisper", "Whisper_ForConditionalGeneration"
    configuration = dict(
        vocab_size=99,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=37,
        decoder_ffn_dim=37,
        num_mel_bins=8,
        max_source_positions=16,
        max_target_positions=32,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )

    def inputs(self):
        return dict(input_features=ramp(2, 8, 32), decoder_input_ids=torch.tensor(TOKENS))

    def prompt(self):
        return dict(input_features=ramp(2, 8, 32), decoder_input_ids=torch.tensor(TOKENS))


class VisionEncoderDecoder(Language):
    """Captions: an encoder of images before a decoder of text."""

    name, kind = "ViT with GPT-2", "VisionEncoderDecoder_Model"

    def make(self):
        from tests.clients.packages.transformers_encoders import IMAGE

        text = transformers.GPT2Config(**Gpt2.configuration, add_cross_attention=True, is_decoder=True)
        both = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(transformers.ViTConfig(**IMAGE), text)
        both.decoder_start_token_id, both.pad_token_id = 1, 0
        return transformers.VisionEncoderDecoderModel(both)

    def inputs(self):
        return dict(pixel_values=ramp(2, 3, 32, 32), decoder_input_ids=torch.tensor(TOKENS))

    def prompt(self):
        return dict(pixel_values=ramp(2, 3, 32, 32), decoder_start_token_id=1)
