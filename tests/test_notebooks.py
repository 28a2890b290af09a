"""Notebooks are checked as one script, and fixes change their cells' code and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import nbclient
import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speedlint import api, magics, notebook
from tests.conftest import Project

TRAINING = """\
for step in range(1000):
    %time 1
    loss = model(torch.randn(64, 8, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()"""
CELLS = (
    "%matplotlib inline\n!pip install torch==2.1 \\\n  numpy\nimport torch\nfiles = !ls\nprint?",
    "%%time\nmodel = torch.nn.Linear(8, 1).cuda()\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\ntotal = 0.0",
    "%%bash\nfor f in *; do echo $f; done",
    TRAINING,
    "print(total)",
)

LOADING = (
    """\
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

class Photos(Dataset):
    def __init__(self, paths):
        self.paths, self.change = paths, transforms.ToTensor()

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return self.change(Image.open(self.paths[index]))

loader = DataLoader(Photos(["a.jpg"] * 10_000), batch_size=64)""",
    """\
model = torch.nn.Linear(8, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in loader:
    loss = model(batch.cuda()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()""",
)


def written(cells: Sequence[str], **changes: Any) -> str:
    """A notebook of a text cell and these code cells, each with an output, as Jupyter writes it."""
    made = nbformat.v4.new_notebook()
    made.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    made.cells = [nbformat.v4.new_markdown_cell("# Training\n`exactly()`")]
    for code in cells:
        output = nbformat.v4.new_output("stream", text="é exactly()\n")
        made.cells.append(nbformat.v4.new_code_cell(code, outputs=[output], metadata={"tags": ["keep"]}))
    return str(nbformat.writes(nbformat.from_dict({**made, **changes})))


def code_of(text: str) -> list[str]:
    """The code cells' texts."""
    return [cell.source for cell in nbformat.reads(text, as_version=4).cells if cell.cell_type == "code"]


@pytest.fixture
def own_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A folder that is checked with speedlint's own rules."""
    monkeypatch.chdir(tmp_path)
    project = Project(tmp_path)
    project.write("speedlint.toml", 'torch = "2.13"\nselect = ["SPD301"]')
    return project


def test_findings_have_their_cell_and_the_line_within(own_rules: Project) -> None:
    own_rules.write("train.ipynb", written(CELLS))
    (found,) = own_rules.findings("train.ipynb")
    assert (found["code"], found["cell"], found["line"], found["column"]) == ("SPD301", 5, 7, 14)
    edits = found["fix"]["edits"]
    assert [edit["cell"] for edit in edits] == [5, 6]
    for edit, old in zip(edits, ("item", "total"), strict=True):
        assert CELLS[edit["cell"] - 2].encode()[edit["start"] : edit["end"]].decode() == old
    assert own_rules.run("check", ".").stdout.startswith("train.ipynb:cell 5:7:14 SPD301")


def test_a_fix_over_cells_changes_their_code_and_no_other_byte(own_rules: Project) -> None:
    before = written(CELLS)
    path = own_rules.write("train.ipynb", before)
    shown = own_rules.run("fix", path, "--risk", "numeric").stdout
    assert "# train.ipynb:cell 5:7 SPD301" in shown and "+++ b/train.ipynb:cell 6\n" in shown
    assert own_rules.run("fix", path, "--risk", "numeric", "--apply").exit_code == 0
    after = Path(path).read_text("utf-8")
    assert after == before.replace("loss.item()", "loss.detach()").replace("print(total)", "print(float(total))")
    nbformat.validate(nbformat.reads(after, as_version=4))


@pytest.mark.parametrize(
    "layout",
    [
        lambda text: json.dumps(json.loads(text)),
        lambda text: json.dumps(json.loads(text), indent="\t", ensure_ascii=False) + "\n\n",
        lambda text: json.dumps(json.loads(text), separators=(",", ":"), sort_keys=True),
        lambda text: json.dumps(json.loads(text), indent=1, ensure_ascii=False).replace("\n", "\r\n"),
    ],
    ids=["one line", "tabs", "tight", "crlf"],
)
@pytest.mark.parametrize("as_text", [False, True])
def test_the_layout_of_the_file_stays(project: Project, layout: Any, as_text: bool) -> None:
    held = json.loads(written(['é = "☃"\nexactly(é)\n', "exactly(2)", "pass"]))
    if as_text:
        for cell in held["cells"]:
            cell["source"] = "".join(cell["source"])
    before = layout(json.dumps(held))
    path = project.write("a.ipynb", before)
    assert project.run("fix", path, "--apply").exit_code == 0
    after = Path(path).read_bytes().decode()
    assert after == before.replace('exactly(é)', 'print(é)').replace("exactly(\\u00e9)", "print(\\u00e9)").replace(
        "exactly(2)", "print(2)"
    )  # fmt: skip


def test_of_keys_that_are_written_twice_the_last_one_counts(project: Project) -> None:
    cells = '{"cells": [{"source": 1}], "cells": [{"source": "pass", "source": "exactly()"}], "nbformat": 4}'
    path = project.write("a.ipynb", cells)
    assert project.run("fix", path, "--apply").exit_code == 0
    assert Path(path).read_text() == cells.replace("exactly", "print")


def test_new_lines_are_laid_out_as_the_others() -> None:
    before = written(["a = 1\nb = 2", "c = 3"])
    script = notebook.script(before.encode()).replace(b"a = 1\n", b"import os\n\na = 1\n").replace(b"c = 3", b"c = 3\nd = 4")
    after = notebook.replaced(before.encode(), script).decode()
    assert code_of(after) == ["import os\n\na = 1\nb = 2", "c = 3\nd = 4"]
    assert after == str(nbformat.writes(nbformat.reads(after, as_version=4)))


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), max_size=4), st.data())
def test_what_is_written_back_is_read_again(codes: list[str], data: st.DataObject) -> None:
    held = {"cells": [{"cell_type": "code", "source": code.splitlines(keepends=True)} for code in codes], "nbformat": 4}
    text = json.dumps(held, indent=data.draw(st.sampled_from([None, 1])), ensure_ascii=data.draw(st.booleans())).encode()
    assert notebook.replaced(text, notebook.script(text)) == text
    new = [
        (number, data.draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=40)))
        for number in range(1, len(codes) + 1)
    ]
    script = notebook.joined(new)
    assert notebook.script(notebook.replaced(text, script)) == script


def test_a_fixed_notebook_runs(project: Project) -> None:
    path = project.write("a.ipynb", written(["exactly = print\n!echo shell", "%%time\nexactly('ran')"]))
    assert project.run("fix", path, "--apply").exit_code == 0
    fixed = nbformat.read(path, as_version=4)
    nbformat.validate(fixed)
    nbclient.NotebookClient(fixed, timeout=60).execute()
    assert "ran" in "".join(output.get("text", "") for output in fixed.cells[2].outputs)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "a.ipynb:1: is no notebook: broken JSON (Expecting value); mend or exclude it"),
        ('{"cells": [\n}', "a.ipynb:2: is no notebook: broken JSON"),
        ("[]", "a.ipynb: is no notebook: it holds no cells; exclude it"),
        ("[" * 100_000, "a.ipynb: is no notebook"),
        (b"\xff\xfe", "a.ipynb: is no notebook: it is not UTF-8"),
        ('{"nbformat": 3, "worksheets": []}', "a.ipynb: is of a notebook format other than 4"),
        ('{"cells": [{"source": ["exactly()", 3]}]}', "a.ipynb: cell 1 has a source that is no text"),
        ('{"cells": [{"source": "\\ud800"}]}', "a.ipynb: holds half a surrogate pair"),
        (
            f'{{"cells": [{{"source": "exactly()"}}], "x": {"1" * 5000}}}',
            "a.ipynb: is no notebook: it holds a number of more",
        ),
        ("# coding: utf-8, notebook cell x\nexactly()\n", "a.ipynb:1: is no notebook: broken JSON"),
        ('{"cells": [{"source": "pass"}, {"source": "pass\\nexactly("}]}', "a.ipynb:cell 2:2: syntax error"),
        ('{"cells": [{"source": "exactly(["}, {"source": "])"}]}', "a.ipynb:cell 1:1: syntax error"),
        ('{"cells": [{"source": "pass"}, {"source": "exactly()\\u0000"}]}', "a.ipynb:cell 2:1: holds NUL bytes"),
    ],
)
def test_bad_notebooks_cost_one_line(project: Project, text: str | bytes, said: str) -> None:
    project.write("a.ipynb", text)
    for command in (("check",), ("fix",), ("check", "--no-cache")):
        result = project.run(*command, "a.ipynb")
        assert result.exit_code == 2
        assert result.stderr.startswith(f"error: {said}")
        assert result.stderr.count("\n") == 1


def test_a_notebook_that_is_mended_is_checked_again(project: Project) -> None:
    project.write("a.ipynb", "{")
    assert project.run("check", "a.ipynb").exit_code == 2
    project.write("a.ipynb", written(["exactly()"]))
    assert len(project.findings("a.ipynb")) == 1


def test_a_notebook_of_another_language_is_said_and_no_error(project: Project) -> None:
    project.write("a.ipynb", written(["exactly()"], metadata={"language_info": {"name": "R"}}))
    result = project.run("check", ".")
    assert result.exit_code == 0
    assert result.stderr == "note: a.ipynb: is a notebook of R, not Python; not looked at\n"


def test_verify_says_that_it_times_scripts(project: Project) -> None:
    project.write("a.ipynb", written(["exactly(1)"]))
    result = project.run("verify", "a.ipynb")
    assert result.exit_code == 2 and "a.ipynb: is a notebook" in result.stderr


def test_workers_that_are_spawned_lack_what_a_notebook_defines(own_rules: Project) -> None:
    own_rules.write("speedlint.toml", 'torch = "2.13"\nselect = ["SPD201"]')
    own_rules.write("train.ipynb", written(LOADING))
    (found,) = own_rules.findings("train.ipynb")
    assert found["cell"] == 2 and found["fix"] is None
    assert "do not have what a notebook defines" in " ".join(own_rules.run("check", ".").stdout.split())


@pytest.mark.parametrize("style", ["sarif", "github", "gitlab", "junit", "azure", "rdjson"])
def test_formats_of_files_name_the_cell_at_the_first_line(project: Project, style: str) -> None:
    project.write("a.ipynb", written(["pass", "pass\nexactly(1)"]))
    project.write("broken.ipynb", written(["pass\nexactly("]))
    printed = project.run("check", ".", "--format", style).stdout
    assert "cell 3, line 2: `exactly(1)` is slow" in printed
    assert "cell 2, line 2: syntax error" in printed
    assert "replacements" not in printed, "an edit's place in the file is not known"


def test_json_of_a_notebook_keeps_to_its_schema(project: Project) -> None:
    project.write("a.ipynb", written(["pass\nexactly(1)", "exactly("]))
    project.write("b.ipynb", written(["pass\nexactly(1)"]))
    schema = json.loads(project.run("schema", "check").stdout)
    report = json.loads(project.run("check", ".", "--format", "json").stdout)
    jsonschema.validate(report, schema)
    assert [(each["path"], each["cell"]) for each in (*report["errors"], *report["findings"])] == [
        ("a.ipynb", 3),
        ("b.ipynb", 2),
    ]


def test_a_comment_silences_a_line_of_its_cell(project: Project) -> None:
    project.write("a.ipynb", written(["exactly(1)\nexactly(2)", "exactly(3)  # speedlint: ignore[TOY308]"]))
    assert [(found["cell"], found["line"]) for found in project.findings("a.ipynb")] == [(2, 1), (2, 2)]


def test_what_changes_while_it_is_fixed_is_left(project: Project) -> None:
    before = written(["exactly(1)"])
    result = api.fix_source(before, "a.ipynb")
    assert result.source == before.replace("exactly(1)", "print(1)")
    assert [(each.cell, each.line) for each in result.applied] == [(2, 1)]


@pytest.mark.parametrize(
    "code",
    [
        "!pip install x\nimport os",
        "!pip install \\\n  x\n%cd /tmp",
        "if x:\n    !ls\nelse:\n    %time y\nz",
        "a = !ls -l\nb = %timeit f(x)\na, b = !x",
        "%%bash\nif [ 1 ]; then\n  echo 'a\nfi",
        "%%time\nx = (1\n% 2)\n",
        "\n%%capture out\nx = 1",
        "x?\nx.y??\n?x\n??x.y",
        "pip install -q torch==2.1\ncd /content\nls",
        's = """\n!no magic\n%neither\n"""\n!ls',
        "f(a\n%b)\n%time c",
        ",f a b\n/f a",
        "é = !écho é\n    \n!“x”",
        "é?\nif x:\n    é.y??",
    ],
)
def test_magics_are_hidden_where_they_stand(code: str) -> None:
    hidden = magics.hidden(code)
    compile(hidden, "cell", "exec")
    assert len(hidden) == len(code) and len(hidden.encode()) == len(code.encode())
    assert hidden.count("\n") == code.count("\n")


@pytest.mark.parametrize("code", ["x = (1\n% 2)\ny = a != b", 's = """\n!a\n%b\n"""', "print('a?')\n# ls?", "x = 5 \\\n% 3"])
def test_what_is_python_is_left(code: str) -> None:
    assert magics.hidden(code) == code


@pytest.mark.parametrize(
    "text",
    [
        "# %%\n# !pip install torch\n# %matplotlib inline\nexactly(1)\n",
        "# %%\n!pip install torch\n%matplotlib inline\nexactly(1)\n",
        "# In[1]:\n\nget_ipython().run_line_magic('matplotlib', 'inline')\nget_ipython().system('ls')\nexactly(1)\n",
    ],
)
def test_scripts_in_cells_and_exports(project: Project, text: str) -> None:
    path = project.write("export.py", text)
    assert project.run("fix", path, "--apply").exit_code == 0
    assert Path(path).read_text() == text.replace("exactly", "print")


def test_magics_outside_cells_are_no_python(project: Project) -> None:
    path = project.write("a.py", "!pip install torch\nexactly(1)\n")
    assert "a.py:1: syntax error" in project.run("check", path).stderr


def test_nbqa_checks_notebooks_too(project: Project) -> None:
    project.write("a.ipynb", written(["%time 1\npass", "exactly(1)"]))
    command = [sys.executable, "-m", "nbqa", "speedlint check", "a.ipynb", "--config", "speedlint.toml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=project.root)
    assert "a.ipynb:cell_2:1:1 TOY308" in done.stdout, done.stdout + done.stderr
