"""What a checkpoint names, found without reading it."""

from __future__ import annotations

import json
import pickle
import zipfile

import pytest

import rushlight as torch


def test_unsafe_globals_of_a_checkpoint(tmp_path):
    torch.save(torch.nn.Linear(1, 1), tmp_path / "whole")
    torch.save({"a": torch.ones(1)}, tmp_path / "plain")
    find = torch.serialization.get_unsafe_globals_in_checkpoint
    assert find(tmp_path / "whole") == ["torch.nn.modules.linear.Linear"] and find(tmp_path / "plain") == []
    with torch.serialization.safe_globals([torch.nn.Linear]):
        assert find(tmp_path / "whole") == []
    (tmp_path / "text").write_text("no checkpoint")
    with pytest.raises(ValueError, match="zip format"):
        find(tmp_path / "text")


def archive(path, content: bytes):
    """A checkpoint of which only the pickle matters."""
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("archive/data.pkl", content)
    return path


@pytest.mark.parametrize("protocol", range(6))
def test_names_in_pickles_of_all_protocols(tmp_path, protocol):
    kinds = [zipfile.ZipFile, json.JSONDecoder, zipfile.ZipInfo, zipfile.ZipFile]  # the fourth protocol writes a text once
    path = archive(tmp_path / "kinds", pickle.dumps({"some": ["text", kinds]}, protocol=protocol))
    names = {f"{kind.__module__}.{kind.__qualname__}" for kind in kinds}
    assert torch.serialization.get_unsafe_globals_in_checkpoint(path) == sorted(names)


@pytest.mark.parametrize("content", [b"\x80\x04\x8c\x02os\x8c\x06system20\x93.", b"\x80\x04\x8c\x02os\x93.", b"\x80\x04\x93.", b"\x80\x02\x82\x01."])
def test_names_that_a_pickle_makes_by_instructions(tmp_path, content):
    with pytest.raises(ValueError, match="by instructions"):
        torch.serialization.get_unsafe_globals_in_checkpoint(archive(tmp_path / "made", content))
