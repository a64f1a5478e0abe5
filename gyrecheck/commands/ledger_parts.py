"""A large plain log read by several processes, each a part of it between two line ends; the tallies are joined in the log's order.

The answer is that of one process. What one part of a log can change in the meaning of the next (a table's header, times of day that
pass midnight) cannot be read in parts: then there is no answer, and the caller reads the log in one go.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING

from gyrecheck.stream.logs import Ask, OpenLog, joined, part_of, read_batches
from gyrecheck.stream.open_log import cuts, is_plain, newlines_before
from gyrecheck.stream.scan import Seen
from gyrecheck.verdict.tally import Tally

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

LARGE = 32 << 20
"""Bytes from which a second process is worth its start."""
MOST = 4


def processes_for(log: OpenLog) -> int:
    """How many processes should read a log."""
    if log.log.size < LARGE or not is_plain(log.log):
        return 1
    import multiprocessing  # most logs are small, and a start must not pay for it

    if "fork" not in multiprocessing.get_all_start_methods():
        return 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(MOST, usable, log.log.size // (LARGE // 2)))


def tally_in_parts(log: OpenLog, ask: Ask, processes: int, tally: Tally, progress: Callable[[int], None] | None = None) -> bool:
    """Fill an empty tally; False where the log cannot be read in parts, and the tally is then of no use.

    Nothing is left running, also when Ctrl-C interrupts it: the tally then holds what the first part gave.
    """
    spans = list(pairwise(cuts(log.log, processes)))
    if len(spans) < 2:
        return False
    import multiprocessing

    context = multiprocessing.get_context("fork")
    parts = [part_of(log, ask, span, 1) for span in spans]
    workers = []
    log.scan = parts[0].scan
    try:
        for part, span in zip(parts[1:], spans[1:], strict=True):
            here, there = context.Pipe(duplex=False)
            worker = context.Process(target=_work, args=(there, log, ask, span), daemon=True)
            worker.start()
            there.close()
            workers.append((worker, here, part))
        for batch in read_batches(parts[0], (lambda size: progress(size * len(spans))) if progress is not None else None):
            tally.feed_batch(batch)
            log.readings = parts[0].readings
        whole = parts[0].scan.divisible
        for _, here, part in workers:
            answer = here.recv()
            if answer is None or not whole:
                return False
            later, part.scan.seen, part.readings, whole = answer
            tally.absorb(later)
    except EOFError:
        return False
    finally:
        for worker, here, _ in workers:
            here.close()
            worker.terminate()
            worker.join()
    log.scan.seen, log.readings = joined(parts)
    return whole


def _work(there: Connection, log: OpenLog, ask: Ask, span: tuple[int, int]) -> None:
    """One part, in a process of its own; any error is the caller's to meet again when it reads the log in one go."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answer: tuple[Tally, Seen, int, bool] | None = None
    with suppress(Exception):
        part = part_of(log, ask, span, 1 + newlines_before(log.log, span[0]))
        tally = Tally()
        for batch in read_batches(part):
            tally.feed_batch(batch)
        answer = (tally.settled(), part.scan.seen, part.readings, part.scan.divisible)
    there.send(answer)
    there.close()
