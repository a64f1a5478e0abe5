"""Numbers as logs spell them, and a line made ready so that what stands around them no longer hides them.

Numbers of forms that cannot be trusted are no numbers (`12..40`, `1:02:03`, `0x1F` is one, `2.8s` is none).
"""

from __future__ import annotations

import re

NUMBER = re.compile(
    r"(?<![\w.])(?:[-+](?=[\d.]))?(?:0[xX][0-9a-fA-F]+|\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d,])|\d+\.\d+(?:[eE][-+]?\d+)?|\d+\.?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf|NaN|Infinity)"
    r"(?![\w])(?!\.\.)(?!\.\d)(?!:\d\d)"
)
_WRAPPED = re.compile(
    r"\b(?:(?:np|numpy|torch|jnp|tf)\.)?(?:u?int|float|bfloat|long|double|tensor|Tensor|array)\d*\(\[?\s*([-+\w.]+)[^()]*\)"
)
_AT = re.compile(r"(?<=[a-z])@(?=v?\d)")
_ASIDE = re.compile(r"(?<=\w) \(([a-z][a-z |]{2,30})\)(?= [-+]?[\d.])")
_VERSION = re.compile(r"(?<![\w.\-/])[vV](\d+)(?:\s?(?P<range>-|\.\.\.?|to)\s?[vV]\d+)?(?![\w.])")
OF_VERSION, OLDEST = "\u02c5", "\u02c4"
"""Set before a number that was spelled as a version, `v7`, or as the first of several, `v5-v7`."""
_QUOTES = str.maketrans("", "", "'\"`")


def prepared(text: str) -> str:
    """The text with wrapped numbers opened (`np.float64(1.25)`) and quotes gone; both plan and numbers are read from this."""
    if "(" in text and ("np." in text or "tensor(" in text or "float" in text or "int" in text):
        text = _WRAPPED.sub(r"\1", text)
    if "@" in text:
        text = _AT.sub(" at ", text)  # `trainer@72`
    if ") " in text:
        text = _ASIDE.sub(r" \1", text)  # `gap (mean abs) 0.3`
    if "v" in text:
        text = _VERSION.sub(lambda found: (OLDEST if found["range"] else OF_VERSION) + found[1], text)
    return text.translate(_QUOTES)


def numbers(text: str) -> list[float]:
    """All numbers of a prepared line, in order; what a plan's indices count."""
    return [number(found) for found in NUMBER.findall(text)]


def number(text: str) -> float:
    """One number as spelled: `1e3`, `-4`, `1,024`, `0x10`, `nan`."""
    if "x" in text or "X" in text:
        return float(int(text, 16))
    return float(text.replace(",", ""))
