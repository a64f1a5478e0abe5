"""Which classes a pickle names, read from its opcodes: nothing is loaded, imported or run."""

from __future__ import annotations

import pickletools


def classes(data: bytes, most: int = 16) -> tuple[str, ...]:
    """Qualified names that the pickle would import, in order, at most `most`; broken pickles give what stands before the break."""
    found: dict[str, None] = {}
    strings: list[str] = []
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name == "GLOBAL" and isinstance(argument, str):
                found[argument.replace(" ", ".")] = None
            elif "UNICODE" in opcode.name and isinstance(argument, str):
                strings = [*strings[-1:], argument]
            elif opcode.name == "STACK_GLOBAL" and len(strings) == 2:
                found[".".join(strings)] = None
            if len(found) >= most:
                break
    except Exception:  # noqa: BLE001, S110 - a damaged pickle: what was seen is enough for the sentence
        pass
    return tuple(found)


def first_class(data: bytes) -> str:
    """The first class that is not of numpy's or the standard containers' own making, or the first at all, or the empty string."""
    names = classes(data)
    own = [name for name in names if not name.startswith(("numpy", "collections.", "builtins.", "__builtin__", "_codecs", "torch._utils", "torch.FloatStorage", "copyreg"))]
    return (own or list(names) or [""])[0]
