"""How weights travel back, and what a reader refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from reference_loop.policy import initial_actor
from reference_loop.weights import UnreadableWeightsError, Weights, load_newer, point_to, write


def publish(folder: Path, version: int, seed: int = 1, keep: int = 3) -> Weights:
    """Publish fresh weights under a version."""
    parameters = {name: value.detach() for name, value in initial_actor(seed).state_dict().items()}
    write(folder, Weights(version, parameters), parent=version - 1, fsync=True)
    point_to(folder, version, keep=keep, fsync=True)
    return Weights(version, parameters)


def test_what_is_published_is_loaded_once(tmp_path: Path) -> None:
    """A reader gets the parameters bit for bit, and nothing when it already has that version or none was published."""
    assert load_newer(tmp_path, None) is None
    sent = publish(tmp_path, 3)
    got = load_newer(tmp_path, 2)
    assert got.policy_version == 3
    assert all(torch.equal(got.parameters[name], value) for name, value in sent.parameters.items())
    assert load_newer(tmp_path, 3) is None


def test_a_file_is_not_there_before_it_is_named(tmp_path: Path) -> None:
    """A written version that LATEST does not name is not loaded."""
    publish(tmp_path, 0)
    write(tmp_path, Weights(1, {"weight": torch.ones(2)}), parent=0, fsync=False)
    assert load_newer(tmp_path, 0) is None


def test_old_versions_are_removed(tmp_path: Path) -> None:
    """Of five versions the newest three stay."""
    for version in range(5):
        publish(tmp_path, version)
    assert sorted(path.name for path in (tmp_path / "weights").glob("v*")) == [f"v00000{version}.safetensors" for version in (2, 3, 4)]


@pytest.mark.parametrize("damage", ["torn", "other content", "other version", "gone", "empty pointer"])
def test_unreadable_weights_are_told(tmp_path: Path, damage: str) -> None:
    """A torn, swapped, renamed or missing file raises, and says which file it was."""
    publish(tmp_path, 1, seed=1)
    publish(tmp_path, 2, seed=2)
    first, second = (tmp_path / "weights" / f"v00000{version}.safetensors" for version in (1, 2))
    if damage == "torn":
        second.write_bytes(second.read_bytes()[:-100])
    elif damage == "other content":
        content = bytearray(second.read_bytes())
        content[-1] ^= 1
        second.write_bytes(bytes(content))
    elif damage == "other version":
        second.write_bytes(first.read_bytes())
    elif damage == "gone":
        second.unlink()
    else:
        (tmp_path / "weights" / "LATEST").write_text("")
    with pytest.raises(UnreadableWeightsError, match=r"LATEST|v000002\.safetensors"):
        load_newer(tmp_path, 1)


def test_both_sides_start_from_one_policy() -> None:
    """Equal seeds give equal first weights, other seeds give others, and the caller's random state is left alone."""
    torch.manual_seed(5)
    wanted = torch.rand(1)
    torch.manual_seed(5)
    first, second, other = initial_actor(1), initial_actor(1), initial_actor(2)
    assert torch.equal(torch.rand(1), wanted)
    assert torch.equal(first[0].weight, second[0].weight)
    assert not torch.equal(first[0].weight, other[0].weight)
