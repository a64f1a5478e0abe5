"""`gyrecheck explain CODE|TOPIC`: what a finding means, when it is raised, when it is not, and how to mend it."""

from __future__ import annotations

import shutil
import sys
import textwrap
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from gyrecheck.commands.explain_topics import TOPICS
from gyrecheck.commands.options import Color, ColorWhen, Config, Force, Output, OutputFormat, Quiet, finish, write_file, write_stdout
from gyrecheck.model.errors import GyreError, did_you_mean
from gyrecheck.model.finding import Report, Table, Topology
from gyrecheck.rulebook.codes import FAMILIES, Code, Sample, load_codes
from gyrecheck.rulebook.project_config import load_project_config

PARTS = (("What", "what"), ("Why", "why"), ("Alarm", "alarm"), ("Not an alarm", "not_alarm"), ("Fix", "fix"))


def command(
    subject: Annotated[str | None, typer.Argument(metavar="[CODE|TOPIC]", help="A code, a rule's name, a family, or a topic.")] = None,
    *,
    samples: Annotated[bool, typer.Option("--samples", help="Show the samples that prove the rule.")] = False,
    config: Config = None,
    output_format: OutputFormat = None,
    output: Output = None,
    color: Color = ColorWhen.AUTO,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """What a code means and how to fix it."""
    extra = load_project_config(config, Path.cwd()).rules_folder
    codes = load_codes(extra)
    if subject is None:
        listed = "\n".join(f"  {name:<12} {about}" for name, (about, _) in TOPICS.items())
        text = f"gyrecheck explain CODE   one of {len(codes)} codes; gyrecheck rules lists them\ngyrecheck explain TOPIC\n{listed}\n"
        if not output_format or output_format == ["full"]:
            _print(text, output, force=force)
        rows = tuple((name, about) for name, (about, _) in TOPICS.items())
        report = Report(
            "explain", tables={"topics": Table(("topic", "what"), rows)}, summary=f"{len(codes)} codes; gyrecheck rules lists them."
        )
        finish(report, output_format=output_format, output=output, color=color, quiet=quiet, force=force)
    topic = TOPICS.get(subject.lower())
    if topic is not None:
        text, table = topic[1](extra), None
    else:
        found = find(codes, subject)
        text = "\n".join(explanation(code, codes, samples=samples) for code in found)
        table = Table(("code", "name", "part", "text"), tuple((c.code, c.name, key, getattr(c, key)) for c in found for _, key in PARTS))
    if not output_format or output_format == ["full"]:
        _print(text, output, force=force)
    tables = {"explanation": table or Table(("text",), tuple((line,) for line in text.splitlines()))}
    report = Report("explain", inputs=(subject,), tables=tables)
    finish(report, output_format=output_format, output=output, color=color, quiet=quiet, force=force)


def _print(text: str, output: Path | None, *, force: bool) -> NoReturn:
    if output is not None:
        write_file(output, text, force=force)
    else:
        write_stdout(_wrapped(text), last=True)
    raise typer.Exit


def find(codes: dict[str, Code], subject: str) -> tuple[Code, ...]:
    """The code of a number (`GYR203`, `203`), of a name, or all of a family (`GYR2`).

    Raises:
        GyreError: neither code nor topic; the nearest is named.
    """
    word = subject.upper()
    number = word if word.startswith("GYR") else f"GYR{word}"
    if number in codes:
        return (codes[number],)
    named = tuple(code for code in codes.values() if code.name == subject.lower())
    family = tuple(code for code in codes.values() if number[3:4] in FAMILIES and len(number) < 6 and code.code.startswith(number))
    if named or family:
        return named or family
    digits = number[:3] + number[3:].replace("O", "0").replace("I", "1").replace("L", "1")
    near = f"did you mean `{digits}`?" if digits in codes else did_you_mean(subject, [*codes, *(c.name for c in codes.values()), *TOPICS])
    listed = "topics: " + ", ".join(TOPICS)
    raise GyreError(f"`{subject}` is neither a code nor a topic", hint=f"{near} {listed}".strip())


def explanation(code: Code, codes: dict[str, Code], *, samples: bool = False) -> str:
    """The page of one code as text, a line a part."""
    head = f"{code.code} {code.name}"
    about = f"{FAMILIES[code.code[3]]} · {', '.join(code.engines)} · since {code.since}"
    lines = [f"{head}{about.rjust(max(len(about) + 3, 88 - len(head)))}"]
    lines.append("severity   " + " · ".join(f"{t.value} {code.severity_in(t).value}" for t in Topology))
    lines.append("")
    for title, key in PARTS:
        text = getattr(code, key)
        if text:
            gap = " " * 3 if len(title) > 6 else " " * (7 - len(title))
            lines.append(f"{title}{gap}{' '.join(text.split())}")
    if code.see:
        lines.append("See    " + ", ".join(f"{n} {codes[n].name}" if n in codes else n for n in code.see))
    if samples:
        for at, sample in enumerate(code.samples, 1):
            lines += ["", *_sample(at, sample)]
    return "\n".join(lines) + "\n"


def _sample(at: int, sample: Sample) -> list[str]:
    where = f" at line {', '.join(map(str, sample.lines))}" if sample.lines else ""
    layout = f" ({sample.topology.value})" if sample.topology else ""
    lines = [f"Sample {at}, {sample.engine}{layout}: {sample.expect}{where}"]
    for number, text in enumerate(sample.text.splitlines(), 1):
        mark = ">" if number in sample.lines else " "
        lines.append(f"{mark}{number:>4} | {text}".rstrip())
    return lines


def _wrapped(text: str) -> str:
    """Long prose lines cut to the terminal's width; off a terminal nothing is cut."""
    if not sys.stdout.isatty():
        return text
    width = min(100, shutil.get_terminal_size().columns)
    out = []
    for line in text.splitlines():
        if len(line) <= width or " | " in line[:8]:
            out.append(line)
        else:
            out += textwrap.wrap(line, width, subsequent_indent="       ", break_long_words=False, break_on_hyphens=False)
    return "\n".join(out) + "\n"
