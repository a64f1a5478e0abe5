"""The bytes of a counter shard: one file of fixed size per process, the same for the hook that writes and the stream that reads.

Header (magic, layout, identity of the process), named int64 cells, then counted entries and call sites (count and name).
A cell is one aligned 8-byte word, so a reader never sees half a store. The header is whole before the file gets its
final name; `SIZE` never changes for a layout.
"""

from __future__ import annotations

import struct

MAGIC = b"GYRSHRD\x01"
LAYOUT = 1
SUFFIX = ".shard"
EVENTS_SUFFIX = ".events.jsonl"

HEADER = struct.Struct("<8sIIqqq64s64s40s256s32s")
"""magic, layout, cells, pid, parent pid, start time (ns since the epoch), run id, host, boot id, argument line, Python version."""

CELLS = (
    "sample_calls",  # of entries that found no place in the table below; all others are counted there
    "update_calls",
    "sample_rows",  # env steps times the number of copies that one vectorised env steps at once
    "reset_calls",
    "optimizer_steps",
    "backward_calls",
    "zero_grad_calls",
    "scheduler_calls",
    "load_calls",
    "turns_marked",  # marked updates that had at least one sample call since the update before
    "turns_hooked",  # the same for optimizer steps
    "published",
    "published_version",  # newest version given to publish(); -1 before
    "loaded",
    "loaded_version",
    "events",
    "events_lost",
    "sequence",  # odd while the ledger cells below are being written
    "ledger_calls",
    "sampled",
    "taken",
    "drawn",
    "dropped_stale",
    "dropped_other",
    "left",
    "in_flight",
    "nested_updates",  # updates begun while an outer one was open, such as the optimizer steps of a marked update
)
COUNTED = ("sampled", "taken", "drawn", "dropped_stale", "dropped_other")
"""Ledger terms that only grow."""
LEVELS = ("left", "in_flight")
"""Ledger terms that say what is there now."""
LEDGER = (*COUNTED, *LEVELS)
INDEX = {name: index for index, name in enumerate(CELLS)}

CELLS_AT = 1024
CELL_ROOM = 128
SITES_AT = CELLS_AT + 8 * CELL_ROOM
SITE = struct.Struct("<q248s")
"""Calls, then the name: `E` (entry, exact) or `C` (call site), `S` or `T`, role, label. The name is whole before the count leaves 0."""
SITE_ROOM = 250
SIZE = SITES_AT + SITE.size * SITE_ROOM
