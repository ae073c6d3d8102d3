"""sentence-transformers: embeddings, search, losses and pairs scored together."""

from __future__ import annotations

import tempfile

import sentence_transformers
import torch
import transformers
from sentence_transformers import losses, util
from sentence_transformers.models import Normalize, Pooling, Transformer

from tests.clients.networks import compile_by
from tests.clients.packages.transformers_encoders import TEXT
from tests.clients.packages.transformers_tools import WORDS, network, tokenizer
from tests.clients.stages import Client, stage

SENTENCES = ["the cat sat on the mat", "a quick dog ran", "the lazy dog sat under a tree", "the cat ran"]


def saved(folder: str, kind: str = "BertModel", **options) -> str:
    """A folder with a network and its tokenizer."""
    configuration = transformers.BertConfig(**{**TEXT, "vocab_size": len(WORDS)}, **options)
    network(kind, configuration).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


class Embeddings(Client):
    name = "SentenceTransformer"

    @stage
    def build(self):
        with tempfile.TemporaryDirectory() as folder:
            words = Transformer(saved(folder), max_seq_length=16)
        pooling = Pooling(words.get_word_embedding_dimension(), pooling_mode="mean")
        self.module = sentence_transformers.SentenceTransformer(modules=[words, pooling, Normalize()], device="cpu")
        return [self.module.get_sentence_embedding_dimension(), len(list(self.module.parameters()))]

    @stage
    def encode(self):
        return self.module.encode(SENTENCES, batch_size=2)

    @stage
    def encode_tensor(self):
        return self.module.encode(SENTENCES, convert_to_tensor=True, precision="float32")

    @stage
    def similarity(self):
        return self.module.similarity(self.encode(), self.encode())

    @stage
    def search(self):
        found = util.semantic_search(self.encode_tensor()[:1], self.encode_tensor(), top_k=3)[0]
        return [[hit["corpus_id"] for hit in found], [hit["score"] for hit in found]]

    @stage
    def mine(self):
        return [list(pair[1:]) for pair in util.paraphrase_mining(self.module, SENTENCES)]

    @stage
    def quantize(self):
        return util.quantize_embeddings(self.encode(), precision="binary")

    @stage
    def losses(self):
        features = [self.module.tokenize(SENTENCES[:2]), self.module.tokenize(SENTENCES[2:])]
        labels = torch.tensor([0.3, 0.8])
        kinds = (losses.CosineSimilarityLoss, losses.MultipleNegativesRankingLoss, losses.CoSENTLoss)
        self.module.eval()
        return [kind(self.module)(features, labels).detach() for kind in kinds]

    @stage
    def backward(self):
        features = [self.module.tokenize(SENTENCES[:2]), self.module.tokenize(SENTENCES[2:])]
        losses.MultipleNegativesRankingLoss(self.module)(features, None).backward()
        found = torch.stack([p.grad.norm() for p in self.module.parameters() if p.grad is not None])
        self.module.zero_grad()
        return found

    @stage
    def compile(self):
        features = self.module.tokenize(SENTENCES)
        with torch.no_grad():
            return compile_by(self.module)(dict(features))["sentence_embedding"]

    @stage
    def save_and_load(self):
        with tempfile.TemporaryDirectory() as folder:
            self.module.save(folder)
            again = sentence_transformers.SentenceTransformer(folder, device="cpu")
        return again.encode(SENTENCES)


class Pairs(Client):
    name = "CrossEncoder"

    @stage
    def build(self):
        with tempfile.TemporaryDirectory() as folder:
            path = saved(folder, "BertForSequenceClassification", num_labels=1)
            self.module = sentence_transformers.CrossEncoder(path, device="cpu", max_length=16)
        return len(list(self.module.parameters()))

    @stage
    def predict(self):
        return self.module.predict([SENTENCES[:2], SENTENCES[2:]])

    @stage
    def rank(self):
        return [[hit["corpus_id"], float(hit["score"])] for hit in self.module.rank(SENTENCES[0], SENTENCES[1:])]
