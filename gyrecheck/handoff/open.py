"""Any trajectory files as one stream of batches: a file, several, or a folder with its segments in order.

The reader is chosen by the file's first bytes, then by its name. Nothing is executed: a pickle is refused with the class it names.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from gyrecheck.handoff.source import magic, packing
from gyrecheck.model.errors import GyreError
from gyrecheck.model.fields import RecordBatch
from gyrecheck.rulebook.contract import Contract, load_contract

SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json_file",
    ".csv": "csv_file",
    ".tsv": "csv_file",
    ".npz": "npz",
    ".npy": "npz",
    ".safetensors": "safetensors_file",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".parquet": "arrow",
    ".pt": "torch_file",
    ".pth": "torch_file",
    ".bin": "torch_file",
    ".h5": "hdf5",
    ".hdf5": "hdf5",
    ".pkl": "pickle_file",
    ".pickle": "pickle_file",
}
"""Name endings that are trajectory files, and the reader of each."""
SEGMENT_STATES = ("ready", "taken", "settled")
"""Subfolders of a run folder that hold its segments, one for each state of a segment."""
PACKED = (".gz", ".zst", ".zstd")


class Records:
    """Iterate over it for the batches of all files, in order; `notes` and `files` are complete when the iteration has ended."""

    def __init__(self, files: Sequence[Path], contract: Contract) -> None:
        self.files = tuple(files)
        self.notes: list[str] = []
        self.readers: list[str] = []
        self._contract = contract

    def __iter__(self) -> Iterator[RecordBatch]:
        for path in self.files:
            name = reader_of(path)
            self.readers.append(name)
            module = importlib.import_module(f"gyrecheck.handoff.readers.{name}")
            yield from module.read(path, self._contract, self.notes)
            self.notes[:] = dict.fromkeys(self.notes)


def open_records(paths: Sequence[Path], contract: Contract | None = None) -> Records:
    """All files' records as batches of constant size, nothing of which is read before it is iterated over.

    Raises:
        GyreError: a path does not exist, or a folder holds no trajectory file. While iterating: a file that cannot be read, or that could
            only be read by running code.
    """
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            found = folder_files(path)
            if not found:
                raise GyreError(f"{path}: holds no trajectory file", hint="known endings: " + ", ".join(SUFFIXES))
            files.extend(found)
        elif path.exists():
            files.append(path)
        else:
            raise GyreError(f"{path}: no such file")
    return Records(files, contract or load_contract())


def folder_files(folder: Path) -> list[Path]:
    """The segment files of a folder in order of their numbers; of mixed endings, in name order. Hidden and temporary files stay out.

    A run folder with `ready`, `taken` and `settled` in it gives the segments of all of these; a folder without files of its own gives those
    of its subfolders.
    """
    states = [folder / name for name in SEGMENT_STATES if (folder / name).is_dir()]
    found = [
        path for state in states for path in state.rglob("*") if path.is_file() and trajectory_name(path) and not _hidden(path, folder)
    ]
    if not found:
        found = [path for path in folder.iterdir() if path.is_file() and trajectory_name(path)]
    if not found:
        found = [path for path in folder.rglob("*") if path.is_file() and trajectory_name(path) and not _hidden(path, folder)]
    lines = [path for path in found if _suffix(path) != ".json"]  # a lone .json beside segments describes the run
    return sorted(lines or found, key=lambda path: _natural(path.name))


def trajectory_name(path: Path) -> bool:
    """Whether the name is one of a trajectory file."""
    if path.name.startswith((".", "_")) or path.name.endswith((".tmp", ".partial")):
        return False
    return _suffix(path) in SUFFIXES


def reader_of(path: Path) -> str:
    """The reader's module name, by first bytes, else by the name's ending.

    Raises:
        GyreError: no reader fits.
    """
    head = magic(path)
    suffix = _suffix(path)
    if head[:6] == b"\x93NUMPY":
        return "npz"
    if head[:4] == b"PK\x03\x04" or head[:4] == b"PK\x05\x06":
        return "torch_file" if suffix in {".pt", ".pth", ".bin", ".ckpt"} or _is_torch(path) else "npz"
    if head[:6] == b"ARROW1" or head[:4] == b"PAR1" or (head[:4] == b"\xff\xff\xff\xff" and suffix in {".arrow", ".ipc"}):
        return "arrow"
    if head[:8] == b"\x89HDF\r\n\x1a\n":
        return "hdf5"
    if len(head) > 9 and head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 1 << 32 and suffix not in {".jsonl", ".json"}:
        return "safetensors_file"
    if head[:1] == b"\x80" and len(head) > 1 and head[1] in range(2, 6):
        return "pickle_file"
    known = SUFFIXES.get(suffix)
    if known in {"jsonl", "json_file", "csv_file"}:
        return known
    if known is not None:
        wanted = {
            "npz": "numpy",
            "safetensors_file": "safetensors",
            "arrow": "Arrow or Parquet",
            "torch_file": "torch",
            "hdf5": "HDF5",
            "pickle_file": "pickle",
        }[known]
        found = f"begins with {head[:8]!r}" if head else "is empty"
        raise GyreError(
            f"{path}: is named {suffix} and {found}; expected a {wanted} file", hint="is it whole, and not a pointer to large-file storage?"
        )
    if head.lstrip()[:1] in {b"{", b"["}:
        return "jsonl"
    raise GyreError(f"{path}: is no trajectory file that can be read", hint="known endings: " + ", ".join(SUFFIXES))


def _suffix(path: Path) -> str:
    name = path.name
    for ending in PACKED:
        name = name.removesuffix(ending)
    return Path(name).suffix.lower()


def _is_torch(path: Path) -> bool:
    if packing(path):
        return False
    import zipfile

    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.endswith("/data.pkl") for name in archive.namelist()[:64])
    except (zipfile.BadZipFile, OSError):
        return False


def _hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def _natural(name: str) -> tuple[tuple[int, int | str], ...]:
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"(\d+)", name))
