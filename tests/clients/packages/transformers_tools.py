"""transformers: pipelines and Trainer, with a tokenizer made here."""

from __future__ import annotations

import tempfile

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

from tests.clients.networks import made_weights
from tests.clients.packages.transformers_encoders import IMAGE, TEXT
from tests.clients.stages import Client, stage

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] the a cat dog sat ran on under mat tree quick lazy and".split()


def tokenizer():
    """Whole words, with BERT's special tokens."""
    words = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    special = dict(pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]")
    return transformers.PreTrainedTokenizerFast(tokenizer_object=words, model_max_length=32, **special)


def network(kind, configuration):
    """A model with the weights that every process gives it."""
    module = getattr(transformers, kind)(configuration).eval()
    module.load_state_dict(made_weights(module), strict=False)
    return module


class Pipelines(Client):
    name = "pipeline"

    @stage
    def text_classification(self):
        module = network("BertForSequenceClassification", transformers.BertConfig(**TEXT))
        return transformers.pipeline("text-classification", model=module, tokenizer=tokenizer())("the cat sat on the mat")

    @stage
    def fill_mask(self):
        module = network("BertForMaskedLM", transformers.BertConfig(**{**TEXT, "vocab_size": len(WORDS)}))
        return transformers.pipeline("fill-mask", model=module, tokenizer=tokenizer())("the cat [MASK] on the mat", top_k=3)

    @stage
    def feature_extraction(self):
        module = network("BertModel", transformers.BertConfig(**TEXT))
        return torch.tensor(transformers.pipeline("feature-extraction", model=module, tokenizer=tokenizer())("the dog ran"))

    @stage
    def text_generation(self):
        options = dict(vocab_size=len(WORDS), n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=2, eos_token_id=3)
        module = network("GPT2LMHeadModel", transformers.GPT2Config(**options))
        write = transformers.pipeline("text-generation", model=module, tokenizer=tokenizer())
        return write("the quick cat", max_new_tokens=6, do_sample=False)[0]["generated_text"]

    @stage
    def image_classification(self):
        from PIL import Image

        module = network("ViTForImageClassification", transformers.ViTConfig(**IMAGE, num_labels=4))
        processor = transformers.ViTImageProcessor(size=dict(height=32, width=32))
        told = transformers.pipeline("image-classification", model=module, image_processor=processor)
        return told(Image.linear_gradient("L").convert("RGB"), top_k=2)


class Sentences(torch.utils.data.Dataset):
    """Sixteen sentences with labels."""

    def __len__(self):
        return 16

    def __getitem__(self, index):
        tokens = [5 + (index * 7 + k * 3) % 13 for k in range(8)]
        return dict(input_ids=torch.tensor(tokens), labels=torch.tensor(index % 2))


class Training(Client):
    name = "Trainer"

    def trainer(self, folder, **options):
        configuration = transformers.BertConfig(**TEXT, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
        module = network("BertForSequenceClassification", configuration)
        common = dict(output_dir=folder, num_train_epochs=2, per_device_train_batch_size=4, learning_rate=1e-3, seed=3)
        quiet = dict(report_to=[], use_cpu=True, disable_tqdm=True, logging_steps=2)
        arguments = transformers.TrainingArguments(**common, **quiet, **{"save_strategy": "no", **options})
        return transformers.Trainer(model=module, args=arguments, train_dataset=Sentences(), eval_dataset=Sentences())

    @stage
    def train(self):
        with tempfile.TemporaryDirectory() as folder:
            trainer = self.trainer(folder)
            trainer.train()
            return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]

    @stage
    def evaluate(self):
        with tempfile.TemporaryDirectory() as folder:
            return self.trainer(folder).evaluate()["eval_loss"]

    @stage
    def accumulate_and_clip(self):
        with tempfile.TemporaryDirectory() as folder:
            trainer = self.trainer(folder, gradient_accumulation_steps=2, max_grad_norm=0.1, lr_scheduler_type="cosine")
            return trainer.train().training_loss

    @stage
    def bfloat16(self):
        with tempfile.TemporaryDirectory() as folder:
            return round(self.trainer(folder, bf16=True).train().training_loss, 1)

    @stage
    def resume(self):
        with tempfile.TemporaryDirectory() as folder:
            self.trainer(folder, save_strategy="epoch", max_steps=4).train()
            again = self.trainer(folder, save_strategy="epoch")
            again.train(resume_from_checkpoint=True)
            return [entry["loss"] for entry in again.state.log_history if "loss" in entry]

    @stage
    def compiled(self):
        options = dict(torch_compile=True)
        if "rushlight" not in torch.__version__:
            options["torch_compile_backend"] = "eager"
        with tempfile.TemporaryDirectory() as folder:
            return self.trainer(folder, **options).train().training_loss
