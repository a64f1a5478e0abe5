"""Notebooks: the Python in them, and the way back to the line of the file that a person opens."""

import ast
import json
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gyrecheck.model.errors import GyreError
from gyrecheck.model.finding import Evidence, Finding, Severity
from gyrecheck.source.json_places import read_json
from gyrecheck.source.notebooks import read_notebook


def notebook(*cells, indent=1, **metadata):
    listed = [
        {"cell_type": "markdown", "source": [cell[3:]], "metadata": {}}
        if cell.startswith("md:")
        else {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": cell.splitlines(keepends=True)}
        for cell in cells
    ]
    return json.dumps({"cells": listed, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}, indent=indent).encode()


def source(*cells):
    return read_notebook(notebook(*cells)).source.decode()


def test_code_cells_are_joined_with_a_blank_line_between():
    """Markdown is left out; every code cell keeps its lines."""
    assert source("import gym\nenv = gym.make('x')", "md:# title", "env.step(0)") == "import gym\nenv = gym.make('x')\n\nenv.step(0)\n\n"


def test_a_finding_lands_on_its_line_and_column_of_the_file():
    """The line of the .ipynb holds the very text, also behind escapes, and the message names cell and line."""
    data = notebook("md:x", 'a = 1\ns = "é\\t"; env.step(0)\n', "b = 2")
    book = read_notebook(data)
    text = book.source.decode().splitlines()
    column = text[1].index("env.step") + 1
    finding = Finding(
        "GYR204", "n", Severity.ERROR, "m", "x.ipynb", 2, column, 2, column + 8, evidence=(Evidence("x.ipynb", 4), Evidence("a.py", 4))
    )
    moved = book.relocate(finding, "x.ipynb")
    line = data.decode().splitlines()[moved.line - 1]
    assert line[moved.column - 1 : moved.end_column - 1] == "env.step"
    assert moved.message == "m (cell 2, line 2)"
    assert "b = 2" in data.decode().splitlines()[moved.evidence[0].line - 1]
    assert moved.evidence[0].label == "cell 3, line 1"
    assert moved.evidence[1] == Evidence("a.py", 4)


def test_a_file_on_one_line_still_gives_cell_and_column():
    """Without indentation all is on line 1; the column still points at the text."""
    data = notebook("a = 1\nenv.step(0)", indent=None)
    book = read_notebook(data)
    line, column, words = book.place(2, 1)
    assert (line, words) == (1, "cell 1, line 2")
    assert data.decode()[column - 1 :].startswith("env.step")


@pytest.mark.parametrize(
    ("cell", "wanted"),
    [
        ("%matplotlib inline\nx = 1", "pass\nx = 1"),
        ("!pip install gym\nx = 1", "pass\nx = 1"),
        ("if a:\n    !ls\n    x = 1", "if a:\n    pass\n    x = 1"),
        ("files = !ls *.py\nx = 1", "files = None\nx = 1"),
        ("here = %pwd", "here = None"),
        ("env.step?\nx = 1", "pass\nx = 1"),
        ("?env.step", "pass"),
        ("!pip install \\\n  gym\nx = 1", "pass\n\nx = 1"),
        ("%%time\nx = 1", "pass\nx = 1"),
        ("%%bash\npip install gym", "\n"),
        ("%%html", ""),
        ("x = (5\n%3)", "x = (5\n%3)"),
        ("x = 5 \\\n%3", "x = 5 \\\n%3"),
        ('s = """\n!no magic\n"""', 's = """\n!no magic\n"""'),
        ("x = a != b", "x = a != b"),
        ("x = a % b", "x = a % b"),
    ],
)
def test_magics_are_made_harmless(cell, wanted):
    """Each line that is IPython's becomes one that does nothing; Python's own `%` and `!=` stay."""
    text = source(cell)
    assert text == wanted + "\n\n"
    ast.parse(text)


def test_a_broken_cell_does_not_hide_the_others():
    """The cell becomes blank lines and is reported at its line; the cells around it are read."""
    book = read_notebook(notebook("x = 1", "a = 1\ndef f(:\n", "y = 2"))
    assert book.source.decode() == "x = 1\n\n\n\n\ny = 2\n\n"
    assert [(b.line, b.message) for b in book.broken] == [(4, "invalid syntax")]
    assert book.place(4)[2] == "cell 2, line 2"


def test_top_level_await_is_python_here():
    """IPython allows it, so the cell is no broken one."""
    assert read_notebook(notebook("await env.reset()")).broken == ()


def test_another_language_has_no_python():
    """A Julia notebook is read without a finding."""
    assert read_notebook(notebook("x = 1", kernelspec={"language": "julia"})).source == b""
    assert read_notebook(notebook("x = 1", language_info={"name": "python"})).source == b"x = 1\n\n"


def test_format_3_and_sources_in_one_text():
    """Older notebooks keep cells in worksheets under `input`; a source may be one text instead of a list."""
    book = {"worksheets": [{"cells": [{"cell_type": "code", "input": "a = 1\nb = 2"}]}], "nbformat": 3}
    assert read_notebook(json.dumps(book).encode()).source == b"a = 1\nb = 2\n\n"


@pytest.mark.parametrize("data", [b"", b"{", b"[1]", b"{}", b"\xff\xfe", b"[" * 200_000, b'{"cells": 3}', b"nul\x00"])
def test_what_is_no_notebook_is_an_error(data):
    """One sentence, never a traceback."""
    with pytest.raises(GyreError):
        read_notebook(data)


@pytest.mark.parametrize(
    "cells", [[3], [{"cell_type": "code", "source": 3}], [{"cell_type": "code"}], [{"cell_type": "code", "source": [1, None, "x = 1"]}]]
)
def test_odd_cells_are_passed_over(cells):
    """A cell without text adds no line that could be judged."""
    assert read_notebook(json.dumps({"cells": cells}).encode()).broken == ()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(VALUES, st.sampled_from([None, 1]), st.booleans())
def test_values_are_those_of_the_standard_decoder(value, indent, ascii_only):
    """Any JSON value reads the same as with the standard library."""
    assert read_json(json.dumps(value, indent=indent, ensure_ascii=ascii_only)) == value


@given(st.lists(st.text(max_size=12), min_size=1, max_size=5), st.sampled_from([None, 1]), st.booleans(), st.data())
def test_every_character_is_found_where_it_stands(texts, indent, ascii_only, data):
    """The place of a character in a text points at its own (escaped) form in the file."""
    written = json.dumps(texts, indent=indent, ensure_ascii=ascii_only)
    nth = data.draw(st.integers(0, len(texts) - 1))
    text = read_json(written)[nth]
    if text:
        offset = data.draw(st.integers(0, len(text) - 1))
        row, column = text.place(offset)
        rest = written.split("\n")[row - 1][column - 1 :]
        assert rest.startswith(json.dumps(texts[nth][offset], ensure_ascii=ascii_only)[1:-1])


@given(st.lists(st.text(alphabet="%!?=x ()\\\n'\"#\t:;,/", max_size=30), max_size=4))
def test_any_cell_gives_parsable_source(cells):
    """Whatever the cells hold, the joined source parses and has a place for every line."""
    book = read_notebook(notebook(*cells))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the drawn text may hold invalid escapes
        ast.parse(book.source)
    assert book.source.count(b"\n") == len(book.lines)
