"""How weights travel back: one safetensors file a version, and a LATEST pointer that is replaced last.

The version stands in the file name and in its metadata, with a hash of the content and the parent version. A reader takes
a file only when all of these agree; a file that does not is reported and the weights in use stay in use.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from reference_loop.store import replace_with

FOLDER = "weights"


class UnreadableWeightsError(Exception):
    """LATEST or the file it names is missing, torn, or not what it says it is."""


@dataclass(frozen=True, slots=True)
class Weights:
    """One version of the actor's parameters."""

    policy_version: int
    parameters: dict[str, torch.Tensor]


def content_hash(parameters: dict[str, torch.Tensor]) -> str:
    """Hash names and bytes of all parameters, in the order of their names."""
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(parameters):
        digest.update(name.encode())
        digest.update(parameters[name].numpy().tobytes())
    return digest.hexdigest()


def in_order(content: bytes) -> bytes:
    """Sort a safetensors file's metadata, which the library leaves in random order, so that equal runs give equal bytes."""
    start, stop = 8, 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[start:stop])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    return content[:start] + json.dumps(header, separators=(",", ":")).encode().ljust(stop - start) + content[stop:]


def file_name(version: int) -> str:
    """Name the file of one version."""
    return f"v{version:06d}.safetensors"


def write(folder: Path, weights: Weights, *, parent: int, fsync: bool) -> None:
    """Write one version's file; nobody reads it before `point_to` names it."""
    place = folder / FOLDER
    place.mkdir(parents=True, exist_ok=True)
    metadata = {
        "policy_version": str(weights.policy_version),
        "parent_version": str(parent),
        "content_hash": content_hash(weights.parameters),
    }
    content = in_order(save(weights.parameters, metadata))
    replace_with(place / file_name(weights.policy_version), content, fsync=fsync)


def point_to(folder: Path, version: int, *, keep: int, fsync: bool) -> None:
    """Make `version` the latest and remove all but the newest `keep` files."""
    place = folder / FOLDER
    replace_with(place / "LATEST", file_name(version).encode() + b"\n", fsync=fsync)
    for path in sorted(place.glob("v*.safetensors"))[:-keep]:
        path.unlink()


def load_newer(folder: Path, known: int | None) -> Weights | None:
    """Load what LATEST names; None when nothing was published or it is the version already known.

    Raises:
        UnreadableWeightsError: see there.
    """
    pointer = folder / FOLDER / "LATEST"
    try:
        name = pointer.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None
    if known is not None and name == file_name(known):
        return None
    try:
        content = (pointer.parent / name).read_bytes()
        metadata = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]
        parameters = load(content)
        version = int(metadata["policy_version"])
    except (OSError, SafetensorError, ValueError, KeyError) as error:
        raise UnreadableWeightsError(f"{name or 'LATEST'}: {type(error).__name__} {error}") from None
    if name != file_name(version) or content_hash(parameters) != metadata.get("content_hash"):
        raise UnreadableWeightsError(f"{name}: its metadata speaks of version {version} or of another content")
    return Weights(version, parameters)
