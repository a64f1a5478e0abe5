"""One way to write a result: whole or not at all, and never in place of a device, a pipe or a link."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path


def exists_as_file(path: Path) -> bool:
    """Whether something would be lost by writing there; a device or a pipe takes what it is given."""
    return path.exists() and (path.is_file() or path.is_dir())


def write_whole(path: Path, data: bytes) -> None:
    """Bytes to a file under a temporary name first; a link's target is replaced, with its mode, and the link stays.

    Raises:
        OSError: it cannot be written; what stood there stands there still.
    """
    target = path.resolve()
    if target.exists() and not target.is_file():
        path.write_bytes(data)
        return
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(data)
        with suppress(FileNotFoundError):
            partial.chmod(stat.S_IMODE(target.stat().st_mode))
        partial.replace(target)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
