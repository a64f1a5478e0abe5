"""Whether two arrays hold the same numbers, in any order and at any width. Imports numpy: import inside the function that calls it."""

from __future__ import annotations

import numpy as np

from gyrecheck.model.fields import Array

DISTINCT = 20
"""Different numbers that an array must hold before equal content means anything; flags and small counts meet by chance."""
PROBED = 4096


def same_content(whole: Array, part: Array) -> bool:
    """Every number of `part` (a sample of `PROBED`) occurs in `whole`, both seen as float32, and there are many different ones."""
    a, b = np.asarray(whole), np.asarray(part)
    if a.dtype.kind not in "fiu" or b.dtype.kind not in "fiu" or not a.size or not b.size:
        return False
    if (a.dtype.kind == "f") != (b.dtype.kind == "f"):
        return False
    probe = b.reshape(-1)[:: max(1, b.size // PROBED)].astype(np.float32)
    probe = probe[np.isfinite(probe)]
    distinct = np.unique(probe)
    if distinct.size < DISTINCT or (b.dtype.kind != "f" and distinct.size < 0.5 * probe.size):
        return False
    return bool(np.isin(distinct, a.reshape(-1).astype(np.float32)).mean() > 0.99)
