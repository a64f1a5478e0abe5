"""Notebooks as Python: the code cells of an .ipynb joined line for line, and the way back from a line to its cell and its line in the file.

Magics, shell lines and help lines become statements that do nothing on the same line, cells in another language and cells that do not
parse become blank lines, so one broken cell does not hide the rest. Findings are moved to the physical line and column of the .ipynb,
where an editor, grep and an annotation look, and name the cell.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from gyrecheck.model.errors import GyreError
from gyrecheck.model.finding import Evidence, Finding
from gyrecheck.source.json_places import Text, read_json

_MAGIC = re.compile(r"(?P<indent>[ \t]*)(?:[%!]|\?{1,2}\S|,\S|;\S|/\w)")
_HELP = re.compile(r"[ \t]*[\w.*]+\?{1,2}\s*$")
_ASSIGNED = re.compile(r"(?P<targets>[ \t]*[\w.,\s\[\]'\"*]+?=\s*)[!%](?!=)")
_PYTHON_CELLS = {"time", "timeit", "capture", "prun", "python", "python3", "debug", "snakeviz", "memray_flamegraph", "mprun", "memit"}


@dataclass(frozen=True, slots=True)
class Line:
    """Where one line of the joined source stands: cell (1-based, all cells counted), line in the cell, and the JSON text it is part of."""

    cell: int
    line: int
    text: Text | None = None
    start: int = 0
    """Offset of the line within the JSON text."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A cell that does not parse: line in the joined source, and what the parser says."""

    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Notebook:
    """The joined source (UTF-8, one blank line between cells) with a `Line` for each of its lines."""

    source: bytes
    lines: tuple[Line, ...]
    broken: tuple[Broken, ...] = ()

    def place(self, line: int, column: int = 0) -> tuple[int, int, str]:
        """Physical line and column in the .ipynb (column 0 stays 0) and `cell 3, line 2`; line 0 is the whole file."""
        if not 1 <= line <= len(self.lines):
            return 0, 0, ""
        at = self.lines[line - 1]
        words = f"cell {at.cell}, line {at.line}"
        if at.text is None:
            return 0, 0, words
        row, physical = at.text.place(at.start + max(column - 1, 0))
        return row, physical if column else 0, words

    def relocate(self, finding: Finding, path: str) -> Finding:
        """The finding of the joined source at its place in the .ipynb `path`, the cell named in its message; so is its evidence."""
        line, column, words = self.place(finding.line, finding.column)
        end_line, end_column, _ = self.place(finding.end_line, finding.end_column)
        return replace(
            finding,
            message=f"{finding.message} ({words})" if words and finding.path == path else finding.message,
            line=line if finding.path == path else finding.line,
            column=column if finding.path == path else finding.column,
            end_line=end_line if finding.path == path else finding.end_line,
            end_column=end_column if finding.path == path else finding.end_column,
            snippet="" if finding.path == path else finding.snippet,  # a line of JSON is no frame for carets
            fixes=() if finding.path == path else finding.fixes,
            evidence=tuple(self._evidence(e) if e.path == path else e for e in finding.evidence),
        )

    def _evidence(self, evidence: Evidence) -> Evidence:
        line, column, words = self.place(evidence.line, evidence.column)
        _, end_column, _ = self.place(evidence.line, evidence.end_column)
        label = f"{evidence.label} ({words})" if evidence.label and words else evidence.label or words
        return replace(evidence, line=line, column=column, end_column=end_column, label=label)


def read_notebook(data: bytes) -> Notebook:
    """The notebook's Python code; a notebook of another language has none.

    Raises:
        GyreError: not UTF-8, no JSON, or JSON that is no notebook.
    """
    try:
        root = read_json(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise GyreError(f"is no valid notebook: {error or 'nested too deeply'}") from error
    cells = _cells(root)
    if cells is None:
        raise GyreError("is no notebook: it has no list of cells")
    if not _is_python(root):
        cells = []
    out: list[str] = []
    lines: list[Line] = []
    broken: list[Broken] = []
    for number, cell in enumerate(cells, 1):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        pieces = list(_lines(cell.get("source", cell.get("input", []))))
        code = _without_magics([piece for piece, _, _ in pieces])
        if problem := _problem(code):
            broken.append(Broken(len(out) + problem[0], problem[1]))
            code = [""] * len(code)
        lines += [Line(number, at, text, start) for at, (_, text, start) in enumerate(pieces, 1)]
        out += code
        lines.append(Line(number, len(pieces) + 1))
        out.append("")
    return Notebook("".join(f"{line}\n" for line in out).encode("utf-8", "surrogatepass"), tuple(lines), tuple(broken))


def _cells(root: Any) -> list[Any] | None:  # noqa: ANN401 - parsed JSON
    """Format 4 keeps cells at the top, format 3 in worksheets."""
    if not isinstance(root, dict):
        return None
    if isinstance(root.get("cells"), list):
        return list(root["cells"])
    sheets = root.get("worksheets")
    if isinstance(sheets, list):
        return [cell for sheet in sheets if isinstance(sheet, dict) and isinstance(sheet.get("cells"), list) for cell in sheet["cells"]]
    return None


def _is_python(root: dict[str, Any]) -> bool:
    meta = root.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    for table, key in (("language_info", "name"), ("kernelspec", "language")):
        named = meta.get(table)
        if isinstance(named, dict) and key in named:
            return str(named[key]).lower() in {"python", "ipython", "python3"}
    return True


def _lines(source: Any) -> Iterator[tuple[str, Text, int]]:  # noqa: ANN401 - parsed JSON
    """Each line of a cell without its end, with the JSON text it comes from and its offset there; a text may hold several lines."""
    texts = source if isinstance(source, list) else [source]
    rest: tuple[str, Text, int] | None = None
    for text in texts:
        if not isinstance(text, Text):
            continue
        start = 0
        for piece in re.split(r"(?<=\n)", text):
            if not piece:
                continue
            line = (rest[0] + piece, rest[1], rest[2]) if rest else (piece, text, start)
            start += len(piece)
            rest = None if piece.endswith("\n") else line
            if rest is None:
                yield line[0].rstrip("\r\n"), line[1], line[2]
    if rest:
        yield rest


def _without_magics(lines: list[str]) -> list[str]:
    """The cell's lines with everything that is IPython's and not Python's made harmless, indentation kept."""
    first = next((line.strip() for line in lines if line.strip()), "")
    if first.startswith("%%") and first[2:].split(None, 1)[:1] not in [[name] for name in _PYTHON_CELLS]:
        return [""] * len(lines)
    out: list[str] = []
    continued = quoted = joined = False
    depth = 0
    for line in lines:
        inner = quoted or joined or depth > 0  # `%` here is an operator and `!` part of a string
        mine = False
        if continued:
            out.append("")
            mine = True
        elif not inner and (magic := _MAGIC.match(line)):
            out.append(f"{magic['indent']}pass")
            mine = True
        elif not inner and _HELP.match(line):
            out.append("pass")
        elif not inner and (assigned := _ASSIGNED.match(line)):
            out.append(f"{assigned['targets']}None")
            mine = True
        else:
            out.append(line)
            quoted ^= bool((line.count('"""') + line.count("'''")) % 2)
            depth = max(0, depth + sum(map(line.count, "([{")) - sum(map(line.count, ")]}")))
        ends_open = line.rstrip().endswith("\\")
        continued = mine and ends_open
        joined = not mine and ends_open
    return out


def _problem(lines: list[str]) -> tuple[int, str] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse("\n".join(lines) + "\n")
    except SyntaxError as error:
        return max(error.lineno or 1, 1), error.msg or "invalid syntax"
    except (ValueError, RecursionError, MemoryError) as error:
        return 1, str(error) or "nested too deeply"
    return None
