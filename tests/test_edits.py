"""Edits as a reader of the diff sees them: each case is a text, and what it becomes."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from speedlint import edits
from speedlint.edits import CannotEdit
from speedlint.facts import syntax
from speedlint.fixer import apply_edits
from speedlint.rule import Edit
from speedlint.source import Source

patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def parse(text: str) -> Source:
    return Source.parse(Path("train.py"), text.encode())


def edited(source: Source, *changes: Edit) -> str:
    after = apply_edits(source, changes)
    ast.parse(after)
    return after.decode()


def call_of(source: Source) -> syntax.Call:
    return source.of(syntax.Call)[0]


def statement_named(source: Source, name: str) -> syntax.Node:
    return next(node for node in source.of(syntax.Name) if node.value == name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f()", "f(z=1)"),
        ("f(  # none\n)", "f(  # none\nz=1)"),
        ("f(a)", "f(a, z=1)"),
        ("(f(a))", "(f(a, z=1))"),
        ("f(a,)", "f(a, z=1,)"),
        ("f(a, )", "f(a, z=1, )"),
        ("f(*args)", "f(*args, z=1)"),
        ("f(a, **options)", "f(a, **options, z=1)"),
        ("f((a))", "f((a), z=1)"),
        ("f(x for x in y)", "f((x for x in y), z=1)"),
        ("f((x for x in y))", "f((x for x in y), z=1)"),
        ("f(\n    a,\n    b,\n)", "f(\n    a,\n    b,\n    z=1,\n)"),
        ("f(\n    a,\n    b\n)", "f(\n    a,\n    b,\n    z=1\n)"),
        ("f(\n\ta\n)", "f(\n\ta,\n\tz=1\n)"),
        ("f(\n    a,\n    b  # é, c\n)", "f(\n    a,\n    b,  # é, c\n    z=1\n)"),
        ("f(\n    a,  # c, d\n    # e\n)", "f(\n    a,  # c, d\n    z=1,\n    # e\n)"),
        ("f(\n    a  # é, b\n    ,\n)", "f(\n    a  # é, b\n    ,\n    z=1,\n)"),
        ("f(a,\n  b)", "f(a,\n  b,\n  z=1)"),
        ("f(a, b  # c\n  )", "f(a, b, z=1  # c\n  )"),
        ("f(a # c,\n , b\n )", "f(a # c,\n , b, z=1\n )"),
        ("f(\n    g(\n        1\n    ),\n)", "f(\n    g(\n        1\n    ),\n    z=1,\n)"),
        ("f('é', (\n  1))", "f('é', (\n  1), z=1)"),
    ],
)
def test_add_argument(text: str, expected: str) -> None:
    source = parse(text)
    assert edited(source, edits.add_argument(source, call_of(source), "z=1")) == expected


def test_set_argument_replaces_the_value_or_adds() -> None:
    source = parse("f(a, z=(0), b=2)")
    assert edited(source, edits.set_argument(source, call_of(source), "z", "1")) == "f(a, z=1, b=2)"
    assert edited(source, edits.set_argument(source, call_of(source), "c", "1")) == "f(a, z=(0), b=2, c=1)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f(x)", "f()"),
        ("f(x,)", "f()"),
        ("f(x, b)", "f(b)"),
        ("f(a, x)", "f(a)"),
        ("f(a, x,)", "f(a,)"),
        ("f(a, x, b)", "f(a, b)"),
        ("f(x,  # c\n  b)", "f(  # c\n  b)"),
        ("f(a,  # c\n  x)", "f(a,  # c\n  )"),
        ("f(a, x,\n  b)", "f(a,\n  b)"),
        ("f(\n    x\n)", "f(\n)"),
        ("f(\n    x,  # gone with its line\n    b,\n)", "f(\n    b,\n)"),
        ("f(\n    a,\n    x,\n    b\n)", "f(\n    a,\n    b\n)"),
        ("f(\n    a,\n    x\n)", "f(\n    a\n)"),
        ("f(\n    a,  # kept\n    x  # gone\n)", "f(\n    a,  # kept\n)"),
    ],
)
def test_remove_argument(text: str, expected: str) -> None:
    source = parse(text)
    argument = next(arg for arg in source.of(syntax.Arg) if source.text(arg) == "x")
    assert edited(source, edits.remove_argument(source, argument)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("return_((a))", "return_(b)"),
        ("x = not(a)", "x = not b"),
        ("x = 1 if(a)else 2", "x = 1 if b else 2"),
        ("(a) . c", "b . c"),
    ],
)
def test_replace_takes_the_parentheses_along_and_keeps_words_apart(text: str, expected: str) -> None:
    source = parse(text)
    assert edited(source, edits.replace(source, statement_named(source, "a"), "b")) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x", "new\nx"),
        ("# above\nx  # beside\n", "# above\nnew\nx  # beside\n"),
        ("if a:\n\tx\n", "if a:\n\tnew\n\tx\n"),
        ("@decorator\n@other\ndef f(): x\n", None),
        ("# above\n@x\ndef f():\n    pass\n", "# above\nnew\n@x\ndef f():\n    pass\n"),
        ("x; y\n", "new\nx; y\n"),
        ("y; x\n", None),
        ("if a: x\n", None),
        ("if a:\n    pass\nelif x:\n    pass\n", None),
        ("y; \\\n  x\n", None),
        ("\f\nx\n", "\f\nnew\nx\n"),
        ("if a:\n\f    x\n", "if a:\n\f    new\n    x\n"),
        ("\ufeffx\n", "\ufeffnew\nx\n"),
    ],
)
def test_insert_before(text: str, expected: str | None) -> None:
    check_statement(text, expected, lambda source, node: (edits.insert_before(source, node, ["new"]),))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y\n# the model\nx\n", "y\nnew\n# the model\nx\n"),
        ("y\n\n# one\n# two\nx\n", "y\n\nnew\n# one\n# two\nx\n"),
        ("y\n# far\n\nx\n", "y\n# far\n\nnew\nx\n"),
        ("#!/usr/bin/python\n# about\nx\n", "#!/usr/bin/python\n# about\nnew\nx\n"),
        ("if a:\n    y\n# outside\n    x\n", "if a:\n    y\n# outside\n    new\n    x\n"),
        ("if a:\n    y\n    # inside\n    x\n", "if a:\n    y\n    new\n    # inside\n    x\n"),
        ("y\r\n# the model\r\nx\r\n", "y\r\nnew\r\n# the model\r\nx\r\n"),
    ],
)
def test_insert_before_the_comments_of_a_statement(text: str, expected: str) -> None:
    check_statement(text, expected, lambda source, node: (edits.insert_before(source, node, ["new"], above_comments=True),))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x", "x\nnew"),
        ("x\n", "x\nnew\n"),
        ("if a:\n\tx  # beside\n# below\n", "if a:\n\tx  # beside\n\tnew\n# below\n"),
        ("y; x\n", "y; x\nnew\n"),
        ("y; x;  # c\n", "y; x;  # c\nnew\n"),
        ("x; y\n", None),
        ("if a: x\n", None),
        ("if a:\n    pass\nelif x:\n    pass\n", None),
        ("x(\n  1)\ny\n", "x(\n  1)\nnew\ny\n"),
        (
            "while x:\n    y\n    # its end\n\n    # the very end\n\n# below\n",
            "while x:\n    y\n    # its end\n\n    # the very end\nnew\n\n# below\n",
        ),
        ("if x: y\nz", "if x: y\nnew\nz"),
    ],
)
def test_insert_after(text: str, expected: str | None) -> None:
    check_statement(text, expected, lambda source, node: (edits.insert_after(source, node, ["new"]),))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x", ""),
        ("y\nx", "y"),
        ("# above\nx  # beside\ny\n", "# above\ny\n"),
        ("x; y; z\n", "y; z\n"),
        ("y; x; z\n", "y; z\n"),
        ("y; z; x\n", "y; z\n"),
        ("if a: x\n", "if a: pass\n"),
        ("if a: x; y\n", "if a: y\n"),
        ("if a:\n    x  # beside\n", "if a:\n    pass  # beside\n"),
        ("if a:\n    x(\n        1)\n    y\n", "if a:\n    y\n"),
        ("if a:\n    y\n    for i in x:\n        z\n    # end\n", "if a:\n    y\n    # end\n"),
        ("y\n\nx\n\nz\n", "y\n\nz\n"),
        ("y\n\nx\nz\n", "y\n\nz\n"),
        ("y\nx\n\nz\n", "y\n\nz\n"),
        ("if a:\n    y\n    \n    x  # beside\n\n    z\n", "if a:\n    y\n    \n    z\n"),
        ("y\r\n\r\nx\r\n\r\nz\r\n", "y\r\n\r\nz\r\n"),
        ("y\n\nx\n\n", "y\n\n"),
    ],
)
def test_delete_statement(text: str, expected: str | None) -> None:
    check_statement(text, expected, edits.delete_statement)


def check_statement(text: str, expected: str | None, edit: Callable[[Source, syntax.Node], tuple[Edit, ...]]) -> None:
    source = parse(text)
    node = statement_named(source, "x")
    if expected is None:
        with pytest.raises(CannotEdit):
            edit(source, node)
    else:
        assert edited(source, *edit(source, node)) == expected


def test_blank_lines_and_own_indentation_of_inserted_lines() -> None:
    source = parse("if a:\n    x\n")
    insertion = edits.insert_before(source, statement_named(source, "x"), ["if b:", "    c", ""])
    assert edited(source, insertion) == "if a:\n    if b:\n        c\n\n    x\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("first\nlast\n", "with z:\n    first\n    last\n"),
        ("first; last", "with z:\n    first; last"),
        (
            "if a:\n  first\n\n  # between\n  last  # beside\n",
            "if a:\n  with z:\n    first\n\n    # between\n    last  # beside\n",
        ),
        ("if a:\n\tfirst\n\tlast\n", "if a:\n\twith z:\n\t\tfirst\n\t\tlast\n"),
        ("first\nlast('''a\nb\n''')\n", "with z:\n    first\n    last('''a\nb\n''')\n"),
        ("first\nlast(f'''a\n{\nb}\n''',\n1)\n", "with z:\n    first\n    last(f'''a\n{\nb}\n''',\n    1)\n"),
        ("first\nlast('a\\\nb')\n", "with z:\n    first\n    last('a\\\nb')\n"),
        ("first(1, \\\n  2)\nlast(\n3)\n", "with z:\n    first(1, \\\n      2)\n    last(\n    3)\n"),
        (
            "first\nfor last in a:\n    b\n    # end\n# below\n",
            "with z:\n    first\n    for last in a:\n        b\n        # end\n# below\n",
        ),
        ("@first\ndef f(): pass\nlast\n", "with z:\n    @first\n    def f(): pass\n    last\n"),
    ],
)
def test_wrap(text: str, expected: str) -> None:
    source = parse(text)
    first, last = statement_named(source, "first"), statement_named(source, "last")
    assert edited(source, *edits.wrap(source, first, last, "with z:")) == expected


@pytest.mark.parametrize("text", ["if a: first; last\n", "x; first\nlast\n", "first\nlast; x\n", "if first:\n    last\n"])
def test_wrap_refuses_half_lines_and_other_blocks(text: str) -> None:
    source = parse(text)
    with pytest.raises(CannotEdit):
        first, last = statement_named(source, "first"), statement_named(source, "last")
        edits.wrap(source, first, last, "with z:")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "import os\n"),
        ("x", "import os\n\nx"),
        ("\nx", "import os\n\nx"),
        (
            "#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n\nx\n",
            "#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n\nimport os\n\nx\n",
        ),
        ("# only a comment", "# only a comment\n\nimport os"),
        ('"""Docs."""\nx\n', '"""Docs."""\n\nimport os\n\nx\n'),
        ('"""Docs."""\n\nx\n', '"""Docs."""\n\nimport os\n\nx\n'),
        (
            '"""Docs."""\n\nfrom __future__ import annotations\nx\n',
            '"""Docs."""\n\nfrom __future__ import annotations\nimport os\nx\n',
        ),
        (
            "import a  # why\nimport b\n\ntry:\n    import c\nexcept E:\n    pass\n",
            "import a  # why\nimport b\nimport os\n\ntry:\n    import c\nexcept E:\n    pass\n",
        ),
        ("from a import (\n    b,\n)\nx", "from a import (\n    b,\n)\nimport os\nx"),
        ("try:\n    import c\nexcept E:\n    pass\n", "import os\n\ntry:\n    import c\nexcept E:\n    pass\n"),
        ("import a", "import a\nimport os"),
        ("\ufeffx = 1\n", "\ufeffimport os\n\nx = 1\n"),
    ],
)
def test_imports(text: str, expected: str) -> None:
    source = parse(text)
    assert edited(source, edits.imports_edit(source, "import os")) == expected


def test_edits_take_the_files_own_newline_and_encoding() -> None:
    source = Source.parse(Path("a.py"), "# coding: latin-1\r\nf(\r\n    'é',  # ü\r\n)\r\n".encode("latin-1"))
    after = apply_edits(source, [edits.add_argument(source, call_of(source), "z='à'")])
    assert after == "# coding: latin-1\r\nf(\r\n    'é',  # ü\r\n    z='à',\r\n)\r\n".encode("latin-1")


def test_a_character_the_encoding_lacks_is_refused() -> None:
    source = Source.parse(Path("a.py"), b"# coding: latin-1\nf()\n")
    with pytest.raises(CannotEdit, match="iso-8859-1"):
        apply_edits(source, [edits.add_argument(source, call_of(source), "z='→'")])


def test_overlapping_edits_are_refused_and_identical_ones_are_one() -> None:
    source = parse("abcdef\n")
    path = source.path
    with pytest.raises(CannotEdit):
        apply_edits(source, [Edit(path, 0, 3, "x"), Edit(path, 2, 4, "y")])
    assert (
        apply_edits(source, [Edit(path, 0, 3, "x"), Edit(path, 3, 3, "1"), Edit(path, 3, 3, "0"), Edit(path, 0, 3, "x")])
        == b"x10def\n"
    )


@patient
@given(st.data())
def test_untouched_bytes_stay_as_they_are(data: st.DataObject) -> None:
    body = data.draw(st.text("aé→# \t\r\n", max_size=60))
    source = Source.parse(Path("a.py"), "".join(f"# {line}\r\n" for line in body.split()).encode() + b"x")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(source.data)), unique=True, max_size=10)))
    pairs = list(zip(cuts[::2], cuts[1::2], strict=False))
    changes = [Edit(source.path, start, end, data.draw(st.text("bü\n", max_size=3))) for start, end in pairs]
    pieces, at = [], 0
    for change in changes:
        pieces += [source.data[at : change.start], change.text.replace("\n", source.newline).encode()]
        at = change.end
    assert apply_edits(source, data.draw(st.permutations(changes))) == b"".join([*pieces, source.data[at:]])
