"""One counter file per process: a counted call is one aligned 8-byte store, and a process killed at any moment loses none.

The file is allocated under a temporary name, its header written, then renamed into place. After a fork the child's own file is mapped
over the same addresses, so cells that wrappers hold stay valid and the parent's file is never touched. A folder that cannot be written
gives memory of this process instead: counting goes on, nothing is raised.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import time

from gyrecheck.model import shard_layout as layout

_MAP_FIXED = 0x10


class Cell(ctypes.c_int64 * 1):  # type: ignore[misc]
    """One counter. `cell[0] += 1` on an array of one is the cheapest store of pure Python: 82 ns, `c_int64.value` 143, memoryview 132.

    A wrapper that is pickled by value (a class of `__main__` sent to a worker) takes its cell along by name and counts in the worker's
    shard.
    """

    __slots__ = ("name",)

    def __reduce__(self) -> tuple[object, ...]:
        """The cell of the same name in the process that unpickles it."""
        from gyrecheck.hook.runtime import cell_again

        return (cell_again, (self.name,))


class Shard:
    """The cells of this process. `recording` is false when they live in memory only; `problem` then says why."""

    def __init__(self, folder: str, run_id: str) -> None:
        self.folder, self.run_id = folder, run_id
        self.name = ""
        self.problem = ""
        self._sites: dict[str, Cell] = {}
        self._spare = Cell()
        self._spare.name = "sample_calls"
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.mmap.restype = ctypes.c_void_p
        self._libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
        self._size = -(-layout.SIZE // mmap.PAGESIZE) * mmap.PAGESIZE
        self.address = self._map(None)
        self.cells = {name: _at(self.address + layout.CELLS_AT + 8 * index, name) for name, index in layout.INDEX.items()}
        self._start()

    @property
    def recording(self) -> bool:
        """Whether counts reach a file."""
        return bool(self.name)

    def renew(self) -> None:
        """In a child after fork: counts start at 0 in a file of its own, at the same addresses."""
        self.address = self._map(self.address)
        for place, name in enumerate(tuple(self._sites)):  # wrappers hold these cells: the names go into the new file at the same places
            raw = name.encode("utf-8", "replace")[: layout.SITE.size - 9]
            ctypes.memmove(self.address + layout.SITES_AT + layout.SITE.size * place + 8, raw, len(raw))
        self._start()

    def site(self, name: str) -> Cell:
        """The cell of a call site; one that no file holds when all places are taken."""
        return self.place_for(name) or self._spare

    def place_for(self, name: str) -> Cell | None:
        """The cell under `name` (`E` entry or `C` call site, side, role, label), made on first use; None when all places are taken."""
        cell = self._sites.get(name)
        if cell is None and len(self._sites) < layout.SITE_ROOM:
            at = self.address + layout.SITES_AT + layout.SITE.size * len(self._sites)
            raw = name.encode("utf-8", "replace")[: layout.SITE.size - 9]
            ctypes.memmove(at + 8, raw, len(raw))
            cell = self._sites[name] = _at(at, name)
        return cell

    def _start(self) -> None:
        self.cells["published_version"][0] = self.cells["loaded_version"][0] = -1

    def _map(self, fixed: int | None) -> int:
        """Map a new file, or memory when there can be none; at address `fixed` when given."""
        self.name, self.problem = "", ""
        fd = -1
        if self.folder:
            try:
                fd = self._create()
            except Exception as error:
                self.name, self.problem = "", f"{self.folder}: {getattr(error, 'strerror', None) or error}"
        flags = mmap.MAP_SHARED if fd >= 0 else mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        flags |= _MAP_FIXED if fixed else 0
        try:
            address = self._libc.mmap(fixed, self._size, mmap.PROT_READ | mmap.PROT_WRITE, flags, fd, 0)
        finally:
            if fd >= 0:
                os.close(fd)
        if address is None or address == ctypes.c_void_p(-1).value:
            raise OSError(ctypes.get_errno(), "mmap failed")
        return int(address)

    def _create(self) -> int:
        """The file under its final name, whole, open; raises OSError."""
        now = time.time_ns()
        stem = f"{_host()}-{os.getpid()}-{now:x}-{os.urandom(3).hex()}"
        partial = os.path.join(self.folder, f".{stem}.partial")
        fd = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o644)
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(fd, 0, self._size)  # a full disk is said here, not by SIGBUS at a later store
            else:
                os.write(fd, bytes(self._size))
            os.pwrite(fd, self._header(now), 0)
            os.rename(partial, os.path.join(self.folder, stem + layout.SUFFIX))
        except BaseException:
            os.close(fd)
            try:
                os.unlink(partial)
            except OSError:
                pass
            raise
        self.name = stem
        return fd

    def _header(self, now: int) -> bytes:
        line = " ".join(getattr(sys, "orig_argv", sys.argv))
        words = (self.run_id, os.uname().nodename, _boot_id(), line, sys.version.split()[0])
        sizes = (64, 64, 40, 256, 32)
        fields = [word.encode("utf-8", "replace")[: size - 1] for word, size in zip(words, sizes, strict=True)]
        return layout.HEADER.pack(layout.MAGIC, layout.LAYOUT, len(layout.CELLS), os.getpid(), os.getppid(), now, *fields)


def _at(address: int, name: str) -> Cell:
    cell: Cell = Cell.from_address(address)
    cell.name = name
    return cell


def _host() -> str:
    return "".join(c if c.isalnum() else "_" for c in os.uname().nodename)[:32] or "host"


def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except Exception:
        return ""
