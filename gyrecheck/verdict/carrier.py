"""Does the carrier carry? What is written and never read, refused for its form, or sent to a port on which nobody listens."""

from __future__ import annotations

import re

from gyrecheck.model.finding import Severity, State
from gyrecheck.model.snapshot import Series
from gyrecheck.verdict.ruling import Because, Docket, count
from gyrecheck.verdict.view import View

_PORT = re.compile(r"(?:port[ =:]+|:)(\d{2,5})\b(?!:)")


def lost_port(run: View, docket: Docket) -> bool:
    """A port that is connected to, and nobody listens on."""
    heard = [(m, p) for m in run.snapshot.marked("listening") for p in _PORT.findall(_untimed(m.place.text))]
    knocked = [(m, p) for m in run.snapshot.marked("connecting") for p in _PORT.findall(_untimed(m.place.text))]
    if not heard or not knocked or run.snapshot.marked("connected"):
        return False
    open_ports = {p for _, p in heard}
    lost = [(m, p) for m, p in knocked if p not in open_ports]
    if not lost or len(lost) < len(knocked):
        return False
    mark, port = lost[0]
    docket.add(
        "GYR602",
        State.BROKEN,
        f"connects to port {port}, on which nobody listens; {', '.join(sorted(open_ports))} is listened on",
        quantity="port",
        value=int(port),
        first=mark.place,
        because=[Because(heard[0][0].place, "listens"), Because(mark.place, "connects")],
        hint="give both sides the same address, read from one place",
    )
    return True


def unread(run: View, docket: Docket) -> None:
    """Written and not read."""
    written = _best(run.series("written"))
    read = _best(run.series("read"))
    if written is None or read is None or written.key.unit != read.key.unit or written.count < 3:
        return
    put = written.last if written.falls == 0 and written.rises else written.total
    got = read.last if read.falls == 0 and read.rises else read.total
    if put > 0 and got == 0:
        docket.add(
            "GYR504",
            State.BROKEN,
            f"{count(put)} written (`{written.name}`), none read (`{read.name}`)",
            quantity=read.name,
            value=0,
            first=read.first_place,
            because=[written.last_place, read.last_place],
            hint="compare the two sides' folder, queue or port",
        )


def rejected(run: View, docket: Docket) -> None:
    """Data refused for its form."""
    marks = run.snapshot.marked("rejected")
    if marks:
        docket.add(
            "GYR505",
            State.BROKEN,
            (f"the consumer refuses data for its form, {len(marks)} line{'s' if len(marks) > 1 else ''}, the first {marks[0].place.line}"),
            quantity="rejected",
            value=len(marks),
            first=marks[0].place,
            because=[marks[0].place],
            hint="mend the sampler's writer: gyrecheck handoff check shows the field",
            at_most=None if len(marks) >= 3 or not run.taken or run.taken.last == 0 else Severity.WARNING,
        )


def _untimed(text: str) -> str:
    return re.sub(r"\d{1,2}:\d\d(:\d\d)?", "", text)


def _best(found: tuple[Series, ...]) -> Series | None:
    return max(found, key=lambda s: s.count) if found else None
