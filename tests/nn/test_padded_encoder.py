"""Encoders that evaluate drop padding as torch's do: zeros at padded positions, where the layers have the common form."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import rushlight as rl

ENDS, ELSEWHERE = [[0, 0, 1, 1], [0, 0, 0, 1]], [[1, 1, 0, 1], [0, 0, 0, 1]]
CASES = {
    "plain": ({}, {}, ENDS), "gelu": ({"activation": "gelu"}, {}, ENDS), "norm_first": ({"norm_first": True}, {}, ENDS),
    "one head": ({"nhead": 1}, {}, ENDS), "no bias": ({"bias": False}, {}, ENDS), "off": ({}, {"enable_nested_tensor": False}, ENDS),
    "elsewhere": ({}, {}, ELSEWHERE), "unchecked": ({}, {"mask_check": False}, ELSEWHERE),
}  # fmt: skip


def encoder(library, layer, options):
    given = {"d_model": 8, "nhead": 2, "dim_feedforward": 16, "batch_first": True, **layer}
    return library.nn.TransformerEncoder(library.nn.TransformerEncoderLayer(**given), 2, **options).eval()


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("records", [False, True])
def test_values_at_all_positions(case, records):
    torch = pytest.importorskip("torch")
    layer, options, padding = CASES[case]
    its = encoder(torch, layer, options)
    mine = encoder(rl, layer, options)
    mine.load_state_dict({name: rl.from_numpy(value.detach().numpy().copy()) for name, value in its.state_dict().items()})
    source = np.random.default_rng(0).normal(size=(2, 4, 8)).astype(np.float32)
    with contextlib.nullcontext() if records else rl.no_grad():
        found = mine(rl.from_numpy(source), src_key_padding_mask=rl.tensor(padding).bool())
    with contextlib.nullcontext() if records else torch.no_grad():
        expected = its(torch.from_numpy(source), src_key_padding_mask=torch.tensor(padding).bool())
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), atol=1e-5)


def test_masks_of_floats_and_scripted_encoders():
    model, source = encoder(rl, {}, {}), rl.randn(2, 4, 8)
    padding = rl.tensor(ENDS).bool()
    scripted = rl.jit.script(model)
    with rl.no_grad():
        expected = model(source, src_key_padding_mask=padding)
        floats = model(source, src_key_padding_mask=rl.zeros(2, 4).masked_fill(padding, float("-inf")))
        assert rl.allclose(scripted(source, src_key_padding_mask=padding), expected, atol=1e-6)
    assert (expected[padding] == 0).all() and rl.allclose(floats, expected, atol=1e-6)
