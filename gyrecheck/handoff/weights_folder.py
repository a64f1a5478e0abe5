"""A folder of published weights: one file a version, its number in the name (`v000017.safetensors`) and, where given, in its metadata.

Weights are read without running code: safetensors, or torch files with `weights_only`. Imports torch only inside `load`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gyrecheck.model.errors import GyreError

if TYPE_CHECKING:
    import torch

SUFFIXES = (".safetensors", ".pt", ".pth", ".bin")
LARGEST_HEADER = 100 << 20
NUMBER = re.compile(r"(\d+)(?!.*\d)")


@dataclass(frozen=True, slots=True)
class WeightsFolder:
    """Which file holds which version."""

    path: Path
    files: dict[int, Path]

    def load(self, version: int) -> dict[str, torch.Tensor]:
        """The parameters of one version, on the CPU.

        Raises:
            GyreError: the file cannot be read without running code, or its metadata names another version.
        """
        path = self.files[version]
        told = metadata(path).get("policy_version") if path.suffix == ".safetensors" else None
        if told is not None and told != str(version):
            raise GyreError(f"{path}: its metadata says version {told}, its name {version}", hint="one of the two was copied or renamed")
        try:
            if path.suffix == ".safetensors":
                from safetensors.torch import load_file

                loaded: Any = load_file(str(path))
            else:
                import torch

                loaded = torch.load(path, map_location="cpu", weights_only=True)
        except ModuleNotFoundError as error:
            raise GyreError(f"{path}: needs {error.name} to be read", hint="pip install 'gyrecheck[loop]'") from error
        except Exception as error:
            raise GyreError(f"{path}: is no weights file that can be read without running code ({type(error).__name__})") from error
        for key in ("state_dict", "model", "model_state_dict", "policy"):
            if isinstance(loaded, dict) and isinstance(loaded.get(key), dict):
                loaded = loaded[key]
        if not isinstance(loaded, dict):
            raise GyreError(f"{path}: holds a {type(loaded).__name__}, expected a dict of tensors")
        return loaded

    def near(self, version: int, reach: int = 3) -> tuple[int, ...]:
        """Other versions at most `reach` away, nearest first."""
        close = [v for v in self.files if v != version and abs(v - version) <= reach]
        return tuple(sorted(close, key=lambda v: (abs(v - version), v)))


def weights_folder(path: Path) -> WeightsFolder:
    """The versions in the folder, or in its `weights` subfolder.

    Raises:
        GyreError: no folder, no weights file, or two files of one version.
    """
    if not path.is_dir():
        raise GyreError(f"{path}: is no folder of weights", hint="expected files such as v000017.safetensors")
    files: dict[int, Path] = {}
    for file in sorted(path.iterdir()):
        number = NUMBER.search(file.stem)
        if file.suffix not in SUFFIXES or number is None or file.name.startswith("."):
            continue
        version = int(number[1])
        if version in files:
            raise GyreError(f"{file} and {files[version].name} both claim version {version}")
        files[version] = file
    if not files and (path / "weights").is_dir():
        return weights_folder(path / "weights")
    if not files:
        raise GyreError(f"{path}: holds no weights file with a version in its name", hint="expected files such as v000017.safetensors")
    return WeightsFolder(path, files)


def metadata(path: Path) -> dict[str, str]:
    """The `__metadata__` of a safetensors file; empty when it has none.

    Raises:
        GyreError: the header is damaged.
    """
    try:
        with path.open("rb") as stream:
            size = int.from_bytes(stream.read(8), "little")
            header = json.loads(stream.read(min(size, LARGEST_HEADER)))
        return {str(k): str(v) for k, v in header.get("__metadata__", {}).items()}
    except (OSError, ValueError, AttributeError) as error:
        raise GyreError(f"{path}: is no whole safetensors file ({error})") from error
