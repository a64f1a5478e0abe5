"""Weights by their values: fingerprints, and how far two networks of one architecture are apart.

Looked at on the rare side only (a load, the first sampling call after an update). At most `PART` elements of a tensor are read, evenly
spread, so the cost does not grow with the model; a difference in what was read is a difference, equality of a part is said to be one.
Nothing draws random numbers, records gradients or writes.
"""

from __future__ import annotations

import ctypes
import sys
import zlib

TYPE_CHECKING = False  # importing `typing` costs more than this package; type checkers know the name
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Literal

PART = 4096
TENSORS = 512
PEEK = 64
_CODES: dict[int, Literal["f", "d"]] = {4: "f", 8: "d"}


def parameters_of(module: Any) -> list[Any]:
    """The parameters of a module in its own order, or the tensors of a state dict."""
    if hasattr(module, "parameters"):
        return list(module.parameters())
    if isinstance(module, dict):
        return [value for value in module.values() if hasattr(value, "data_ptr")]
    return []


def shape_of(tensors: Sequence[Any]) -> str:
    """Eight hex digits that two lists of tensors share exactly when their shapes agree in order."""
    return f"{zlib.crc32(repr([tuple(t.shape) for t in tensors]).encode()):08x}"


def fingerprint(tensors: Sequence[Any]) -> str:
    """Sixteen hex digits over the values (a spread part of large tensors); empty when they cannot be read."""
    if not tensors:
        return ""
    a = b = 0
    for tensor in tensors[:TENSORS]:
        raw = _bytes(tensor)
        a, b = zlib.crc32(raw, a), zlib.adler32(raw, b)
    return f"{a:08x}{b:08x}"


def differing(ours: Sequence[Any], theirs: Sequence[Any]) -> tuple[int, float]:
    """How many of the paired tensors differ in value, and the largest difference of an element seen."""
    count, largest = 0, 0.0
    for one, other in zip(ours[:TENSORS], theirs[:TENSORS], strict=False):
        if one is other or _bytes(one) == _bytes(other):
            continue
        count += 1
        gap = (_part(one).double() - _part(other).double()).abs().max()
        largest = max(largest, float(gap))
    return count, largest


def counterpart(ours: Sequence[Any], trained: Sequence[Any]) -> list[tuple[Sequence[Any], Sequence[Any]]]:
    """Runs of tensors with the same shapes in order: `ours` within `trained`, or `trained` within `ours`."""
    small, large, turned = (ours, trained, False) if len(ours) <= len(trained) else (trained, ours, True)
    shapes, within = [tuple(t.shape) for t in small], [tuple(t.shape) for t in large]
    found: list[tuple[Sequence[Any], Sequence[Any]]] = []
    for start in range(len(within) - len(shapes) + 1) if shapes else ():
        if within[start : start + len(shapes)] == shapes:
            run = large[start : start + len(shapes)]
            found.append((run, small) if turned else (small, run))
    return found


def roots_of(fired: Iterable[Any]) -> list[Any]:
    """Of modules that were called, newest first, those that no other called one contains; at most four."""
    roots: list[Any] = []
    inside: set[int] = set()
    for module in fired:
        if id(module) in inside:
            continue
        roots.append(module)
        inside.update(id(part) for part in module.modules())
        if len(roots) == 4:
            break
    return roots


def compiling() -> bool:
    """Whether a compiler has traced or is tracing code here: then nothing may be hooked on or off."""
    utils = sys.modules.get("torch._dynamo.utils")
    return bool(utils is not None and getattr(utils, "counters", {}).get("frames"))


def _part(tensor: Any) -> Any:
    flat = tensor.detach().reshape(-1)
    step = -(-flat.numel() // PART)
    return flat[::step] if step > 1 else flat


def peek(tensor: Any) -> float:
    """The sum of the first `PEEK` numbers of a tensor on the CPU, read where they lie; 0 where that tells nothing.

    One tensor operation costs more than all else that is asked of a gradient at each step.
    """
    code = _CODES.get(tensor.element_size())
    try:
        if code is None or not (tensor.is_cpu and tensor.is_floating_point() and tensor.is_contiguous() and _there(tensor)):
            return 0.0
        raw = ctypes.string_at(tensor.data_ptr(), min(tensor.numel(), PEEK) * tensor.element_size())
    except Exception:  # a sparse gradient has no memory of its own
        return 0.0
    return sum(memoryview(raw).cast(code).tolist())


def _there(tensor: Any) -> bool:
    """Whether the memory that a tensor speaks of exists: a wrapper of other tensors has none, nor has a shard that was let go."""
    return tensor.numel() > 0 and bool(tensor.untyped_storage().data_ptr())


def _bytes(tensor: Any) -> bytes:
    if not _there(tensor):
        return b""
    if not (tensor.is_cpu and tensor.numel() <= PART and tensor.is_contiguous()):
        tensor = _part(tensor).to("cpu").contiguous()
        if not _there(tensor):
            return b""
    return ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size())
