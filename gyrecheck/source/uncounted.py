"""A stretch of a run whose objects live to its end: counting them again and again for cycles finds nothing and costs a tenth."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncounted() -> Iterator[None]:
    """Without the cycle collector; what is left afterwards is set aside until the next such stretch begins."""
    if not gc.isenabled():
        yield
        return
    gc.unfreeze()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
