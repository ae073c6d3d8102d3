"""Checkpoints of one process: what is kept, and what is refused."""

from __future__ import annotations

import threading

import pytest

import rushlight as torch
from rushlight.distributed.checkpoint import CheckpointException, DefaultLoadPlanner, async_save, load, save
from rushlight.distributed.checkpoint.filesystem import FileSystemWriter
from rushlight.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, get_state_dict, set_state_dict


def _state(value: float) -> dict:
    numbers = {"half": torch.full((3,), value, dtype=torch.bfloat16), "count": torch.tensor(int(value)), "empty": torch.ones(0)}
    return {"nested": [numbers, {"name": f"run {value}"}], "step": int(value), "none": None}


def _filled(folder) -> dict:
    state = _state(0)
    load(state, checkpoint_id=folder)
    return state


def test_values_come_back(tmp_path):
    save(_state(3), checkpoint_id=tmp_path)
    found = _filled(tmp_path)
    assert found["step"] == 3 and found["none"] is None and found["nested"][1]["name"] == "run 3"
    assert found["nested"][0]["half"].tolist() == [3.0] * 3 and found["nested"][0]["count"].item() == 3


def test_a_save_in_the_background_keeps_the_state_of_the_call(tmp_path, monkeypatch):
    commit, may_end = FileSystemWriter.commit, threading.Event()
    monkeypatch.setattr(FileSystemWriter, "commit", lambda *words: may_end.wait() and commit(*words))
    state = {"a": torch.ones(3, requires_grad=True), "b": [1, {"c": [2]}]}
    pending = async_save(state, checkpoint_id=tmp_path)
    state["a"].data.zero_()
    state["b"][1]["c"][0] = 7
    assert not pending.done()
    may_end.set()
    pending.result()
    load(found := {"a": torch.zeros(3), "b": [0, {"c": [0]}]}, checkpoint_id=tmp_path)
    assert found["a"].tolist() == [1.0] * 3 and found["b"] == [1, {"c": [2]}]
    monkeypatch.setattr(FileSystemWriter, "commit", lambda *words: 1 / 0)
    with pytest.raises(CheckpointException, match="ZeroDivisionError"):
        async_save(state, checkpoint_id=tmp_path).result()
    with pytest.raises(ValueError, match="needs a folder"):
        async_save(state)


def test_an_interrupted_save_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    save(_state(1), checkpoint_id=tmp_path)

    def stop(self, metadata):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(FileSystemWriter, "commit", stop)
        with pytest.raises(KeyboardInterrupt):
            save(_state(2), checkpoint_id=tmp_path)
    assert _filled(tmp_path)["step"] == 1
    save(_state(3), checkpoint_id=tmp_path)
    assert _filled(tmp_path)["step"] == 3
    assert len(list(tmp_path.glob("*.distcp"))) == 1


def test_what_is_not_whole_is_refused(tmp_path):
    with pytest.raises(CheckpointException, match="no whole checkpoint"):
        _filled(tmp_path)
    save(_state(1), checkpoint_id=tmp_path)
    (file,) = tmp_path.glob("*.distcp")
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(CheckpointException, match="was cut off"):
        _filled(tmp_path)
    file.unlink()
    with pytest.raises(CheckpointException, match="is missing"):
        _filled(tmp_path)
    (tmp_path / ".metadata").write_text('{"format": "other"}')
    with pytest.raises(CheckpointException, match="not one of this library"):
        _filled(tmp_path)


def test_names_and_shapes_must_match(tmp_path):
    save({"a": torch.ones(3)}, checkpoint_id=tmp_path)
    with pytest.raises(CheckpointException, match="Missing key in checkpoint state_dict: b"):
        load({"a": torch.ones(3), "b": torch.ones(3)}, checkpoint_id=tmp_path)
    state = {"a": torch.zeros(3), "b": 7}
    load(state, checkpoint_id=tmp_path, planner=DefaultLoadPlanner(allow_partial_load=True))
    assert state["a"].tolist() == [1.0] * 3 and state["b"] == 7
    with pytest.raises(CheckpointException, match="Size mismatch"):
        load({"a": torch.ones(4)}, checkpoint_id=tmp_path)


def test_frozen_parameters_are_left_out_of_a_wrapped_model():
    model = torch.nn.Linear(2, 2)
    model.bias.requires_grad_(False)
    options = StateDictOptions(ignore_frozen_params=True)
    assert list(get_model_state_dict(torch.compile(model), options=options)) == ["weight"]


def test_model_and_optimizer_go_on_by_names(tmp_path):
    def training():
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
        return model, torch.optim.Adam(model.parameters(), lr=0.1)

    def step(model, optimizer):
        optimizer.zero_grad()
        model(torch.linspace(-1, 1, 6).view(2, 3)).square().sum().backward()
        optimizer.step()

    model, optimizer = training()
    step(model, optimizer)
    states = get_state_dict(model, optimizer)
    assert "0.weight" in states[1]["state"]
    save({"model": states[0], "optimizer": states[1]}, checkpoint_id=tmp_path)
    step(model, optimizer)

    other, fresh = training()
    states = get_state_dict(other, fresh)
    state = {"model": states[0], "optimizer": states[1]}
    load(state, checkpoint_id=tmp_path)
    set_state_dict(other, fresh, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    step(other, fresh)
    for mine, theirs in zip(other.parameters(), model.parameters(), strict=True):
        assert torch.equal(mine, theirs)
