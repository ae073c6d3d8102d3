"""peft: adapters on a network of transformers'."""

from __future__ import annotations

import tempfile

import peft
import torch
import transformers

from tests.clients.networks import Network, made_weights
from tests.clients.packages.transformers_encoders import TEXT, TOKENS
from tests.clients.stages import stage


def base():
    """A small Llama, with the weights that every process gives it."""
    module = transformers.LlamaForCausalLM(transformers.LlamaConfig(**TEXT, num_key_value_heads=2)).eval()
    module.load_state_dict(made_weights(module), strict=False)
    return module


class Adapter(Network):
    """A kind of adapter by its configuration."""

    def configuration(self):
        raise NotImplementedError

    def make(self):
        return peft.get_peft_model(base(), self.configuration())

    def inputs(self):
        return dict(input_ids=torch.tensor(TOKENS), labels=torch.tensor(TOKENS))

    def call(self, module):
        value = module(**self.inputs())
        return [value.loss, value.logits]

    def loss(self, module):
        return module(**self.inputs()).loss

    @stage
    def trainable(self):
        return list(self.module.get_nb_trainable_parameters())

    @stage
    def save_pretrained(self):
        with tempfile.TemporaryDirectory() as folder:
            self.module.save_pretrained(folder)
            again = peft.PeftModel.from_pretrained(base(), folder)
        with torch.no_grad():
            return again.eval()(**self.inputs()).loss.isfinite().item()


class Mergeable(Adapter):
    """An adapter that can be added to the weights."""

    @stage
    def disable(self):
        with self.module.disable_adapter(), torch.no_grad():
            return self.call(self.module)

    @stage
    def merge(self):
        merged = self.module.merge_and_unload()
        with torch.no_grad():
            return self.call(merged)


LAYERS = dict(target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")


class Lora(Mergeable):
    name = "LoRA"

    def configuration(self):
        return peft.LoraConfig(r=4, lora_alpha=8, **LAYERS)


class Dora(Mergeable):
    name = "DoRA"

    def configuration(self):
        return peft.LoraConfig(r=4, use_dora=True, **LAYERS)


class Loha(Mergeable):
    name = "LoHa"

    def configuration(self):
        return peft.LoHaConfig(r=4, **LAYERS)


class Lokr(Mergeable):
    name = "LoKr"

    def configuration(self):
        return peft.LoKrConfig(r=4, **LAYERS)


class Ia3(Mergeable):
    name = "IA3"

    def configuration(self):
        return peft.IA3Config(
            target_modules=["k_proj", "v_proj", "down_proj"], feedforward_modules=["down_proj"], task_type="CAUSAL_LM"
        )


class Vera(Mergeable):
    name = "VeRA"

    def configuration(self):
        return peft.VeraConfig(r=4, target_modules=["q_proj", "o_proj"], task_type="CAUSAL_LM")


class Oft(Mergeable):
    name = "OFT"

    def configuration(self):
        return peft.OFTConfig(oft_block_size=8, use_cayley_neumann=False, **LAYERS)


class PromptTuning(Adapter):
    name = "prompt tuning"

    def configuration(self):
        return peft.PromptTuningConfig(num_virtual_tokens=4, task_type="CAUSAL_LM")


class PrefixTuning(Adapter):
    name = "prefix tuning"

    def configuration(self):
        return peft.PrefixTuningConfig(num_virtual_tokens=4, task_type="CAUSAL_LM")
