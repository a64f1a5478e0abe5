"""Which classes a pickle names, read from its opcodes: nothing is loaded, imported or run."""

from __future__ import annotations

import io
import pickletools


def classes(data: bytes, most: int = 16) -> tuple[str, ...]:
    """Qualified names that the pickle would import, in order, at most `most`; broken pickles give what stands before the break."""
    found: dict[str, None] = {}
    strings: list[str] = []
    memo: dict[int, str] = {}
    last = ""
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name == "GLOBAL" and isinstance(argument, str):
                found[argument.replace(" ", ".")] = None
            elif "UNICODE" in opcode.name and isinstance(argument, str):
                strings, last = [*strings[-1:], argument], argument
            elif opcode.name == "MEMOIZE":
                memo[len(memo)] = last
            elif opcode.name in {"BINPUT", "LONG_BINPUT", "PUT"} and isinstance(argument, int):
                memo[argument] = last
            elif opcode.name in {"BINGET", "LONG_BINGET", "GET"} and isinstance(argument, int):
                strings = [*strings[-1:], memo.get(argument, "")]
            elif opcode.name == "STACK_GLOBAL" and len(strings) == 2:
                found[".".join(strings)] = None
                last = ""
            if len(found) >= most:
                break
    except Exception:  # noqa: BLE001, S110 - a damaged pickle: what was seen is enough for the sentence
        pass
    return tuple(found)


def _all_pickles(data: bytes) -> tuple[str, ...]:
    """Names of several pickles behind one another, as old torch files hold them."""
    stream = io.BytesIO(data)
    found: list[str] = []
    while stream.tell() < len(data) and len(found) < 16:
        start = stream.tell()
        found += classes(data[start:])
        try:
            for _ in pickletools.genops(stream):
                pass
        except Exception:  # noqa: BLE001 - a damaged pickle ends the search
            break
    return tuple(dict.fromkeys(found))


def first_class(data: bytes) -> str:
    """The first class that is not of numpy's or the standard containers' own making, or the first at all, or the empty string."""
    names = _all_pickles(data)
    own = [
        name
        for name in names
        if not name.startswith(
            ("numpy", "collections.", "builtins.", "__builtin__", "_codecs", "torch._utils", "torch.FloatStorage", "copyreg")
        )
    ]
    return (own or list(names) or [""])[0]
