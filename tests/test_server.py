"""The language server, driven by a client over its standard input and output as an editor does."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import IO

import pytest
import pytest_lsp
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcRequestCancelled
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

from speedlint.server.analysis import Analyst, CancelledError
from speedlint.server.places import Text
from tests.conftest import ROOT, TOY_RULES, Project

in_one_session = pytest.mark.asyncio(loop_scope="module")
PATIENCE = 30
"""Seconds: the machine may have much else to do."""
SLOW = "é = '😀'; exactly(é)\nrisky()\n"
LOOP = """\
import torch
model = torch.nn.Linear(8, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0.0
for step in range(1000):
    loss = model(torch.randn(64, 8, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()
print(total)
"""


@pytest_lsp.fixture(  # type: ignore[untyped-decorator]
    scope="module", config=ClientServerConfig(server_command=[sys.executable, "-m", "speedlint", "server", "--stdio"])
)
async def editor(lsp_client: LanguageClient) -> AsyncIterator[None]:
    """A client that counts as VS Code does, in UTF-16."""

    @lsp_client.feature(lsp.WORKSPACE_CODE_LENS_REFRESH)  # type: ignore[untyped-decorator]
    def refresh(_: None) -> None:
        """Lenses are asked for anew by each test."""

    capabilities = client_capabilities("visual-studio-code")
    await lsp_client.initialize_session(lsp.InitializeParams(capabilities=capabilities))
    yield
    await lsp_client.shutdown_session()


def uri_of(project: Project, name: str) -> str:
    return (project.root / name).as_uri()


def opened(editor: LanguageClient, uri: str, text: str) -> None:
    document = lsp.TextDocumentItem(uri, "python", 1, text)
    editor.text_document_did_open(lsp.DidOpenTextDocumentParams(document))


def changed(editor: LanguageClient, uri: str, text: str, version: int = 2) -> None:
    whole = lsp.TextDocumentContentChangeWholeDocument(text)
    place = lsp.VersionedTextDocumentIdentifier(version, uri)
    editor.text_document_did_change(lsp.DidChangeTextDocumentParams(place, [whole]))


async def told(
    editor: LanguageClient, uri: str, is_it: Callable[[Sequence[lsp.Diagnostic]], bool] = bool
) -> Sequence[lsp.Diagnostic]:
    """The diagnostics of a document, once they are as they should be."""
    while uri not in editor.diagnostics or not is_it(editor.diagnostics[uri]):
        await asyncio.wait_for(editor.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS), PATIENCE)
    return editor.diagnostics[uri]


async def actions(
    editor: LanguageClient, uri: str, place: lsp.Range, only: Sequence[str] | None = None
) -> list[lsp.CodeAction]:
    context = lsp.CodeActionContext([], only=only)
    params = lsp.CodeActionParams(lsp.TextDocumentIdentifier(uri), place, context)
    found = await editor.text_document_code_action_async(params)
    return [each for each in found or [] if isinstance(each, lsp.CodeAction)]


def changes_of(edit: lsp.WorkspaceEdit | None) -> dict[str, list[lsp.TextEdit]]:
    """The edits of each document."""
    assert edit is not None and edit.changes is None
    named = [each for each in edit.document_changes or () if isinstance(each, lsp.TextDocumentEdit)]
    return {each.text_document.uri: [one for one in each.edits if isinstance(one, lsp.TextEdit)] for each in named}


def applied(text: str, edit: lsp.WorkspaceEdit | None, uri: str) -> str:
    """The text with the edits of a client that counts UTF-16."""
    changes = changes_of(edit)
    lines = text.split("\n")

    def offset(place: lsp.Position) -> int:
        units = lines[place.line].encode("utf-16-le")[: 2 * place.character]
        return sum(len(line) + 1 for line in lines[: place.line]) + len(units.decode("utf-16-le"))

    for each in sorted(changes[uri], key=lambda each: (each.range.start.line, each.range.start.character), reverse=True):
        text = text[: offset(each.range.start)] + each.new_text + text[offset(each.range.end) :]
    return text


def span(line: int, start: int, end: int) -> lsp.Range:
    return lsp.Range(lsp.Position(line, start), lsp.Position(line, end))


@in_one_session
async def test_findings_are_shown_as_the_buffer_changes(editor: LanguageClient, project: Project) -> None:
    uri = uri_of(project, "train.py")
    project.write("train.py", "pass\n")
    opened(editor, uri, SLOW)
    first, second = await told(editor, uri, lambda found: len(found) == 2)
    assert (first.code, first.source, first.severity) == ("TOY308", "speedlint", lsp.DiagnosticSeverity.Warning)
    assert first.range == span(0, 10, 20), "an emoji takes two units"
    assert second.range == span(1, 0, 7)
    changed(editor, uri, f"\n{SLOW}")
    assert (await told(editor, uri, lambda found: bool(found) and found[0].range.start.line == 1))[0].code == "TOY308"
    changed(editor, uri, "pass\n", 3)
    await told(editor, uri, lambda found: not found)


@in_one_session
async def test_quick_fixes_say_their_risk(editor: LanguageClient, project: Project) -> None:
    uri = uri_of(project, "fixes.py")
    opened(editor, uri, SLOW)
    await told(editor, uri)
    (exact,) = await actions(editor, uri, span(0, 12, 12), [lsp.CodeActionKind.QuickFix])
    assert exact.title == "Fix TOY308 exact-call (exact: the same training, bit for bit)" and exact.is_preferred
    assert applied(SLOW, exact.edit, uri) == SLOW.replace("exactly", "print")
    (risky,) = await actions(editor, uri, span(1, 0, 0), [lsp.CodeActionKind.QuickFix])
    assert "(behavior: what is computed, logged or saved may change)" in risky.title and not risky.is_preferred


@in_one_session
async def test_all_exact_fixes_at_once(editor: LanguageClient, project: Project) -> None:
    uri, text = uri_of(project, "all.py"), f"{SLOW}if é:\n    exactly(2)"
    opened(editor, uri, text)
    await told(editor, uri)
    (action,) = await actions(editor, uri, span(0, 0, 0), ["source.fixAll"])
    assert action.kind == "source.fixAll.speedlint"
    resolved = action if action.edit else await editor.code_action_resolve_async(action)
    assert applied(text, resolved.edit, uri) == text.replace("exactly", "print")
    assert not await actions(editor, uri, span(0, 0, 0), ["source.organizeImports"])


@in_one_session
async def test_what_an_editor_asks_of_places_that_are_not_there(editor: LanguageClient, project: Project) -> None:
    uri = uri_of(project, "short.py")
    opened(editor, uri, "exactly(1)")
    await told(editor, uri)
    backwards = lsp.Range(lsp.Position(9999, 9999), lsp.Position(0, 9999))
    assert len(await actions(editor, uri, backwards, ["quickfix"])) == 1
    assert not await actions(editor, uri_of(project, "never-opened.py"), backwards)
    far = lsp.HoverParams(lsp.TextDocumentIdentifier(uri), lsp.Position(5000, 2**31 - 1))
    assert await editor.text_document_hover_async(far) is not None, "beyond the text is its end"
    unknown = lsp.CodeLensParams(lsp.TextDocumentIdentifier("git:/nothing"))
    assert not await editor.text_document_code_lens_async(unknown)


@in_one_session
async def test_a_document_that_closes_while_it_is_checked(editor: LanguageClient, project: Project) -> None:
    uri, other = uri_of(project, "closing.py"), uri_of(project, "other.py")
    opened(editor, uri, SLOW)
    changed(editor, uri, SLOW * 2)
    editor.text_document_did_close(lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(uri)))
    changed(editor, uri, SLOW * 3, 3)
    opened(editor, other, SLOW)
    await told(editor, other)
    assert not editor.diagnostics[uri]


@in_one_session
async def test_documents_that_are_no_files_are_left_alone(editor: LanguageClient, project: Project) -> None:
    for uri in ("untitled:Untitled-1", "git:/a.py?HEAD", "file:", uri_of(project, "a.txt"), "not a uri"):
        opened(editor, uri, SLOW)
        changed(editor, uri, SLOW * 2)
    uri = uri_of(project, "after.py")
    opened(editor, uri, SLOW)
    await told(editor, uri)
    assert not any(each in editor.diagnostics for each in ("untitled:Untitled-1", "git:/a.py?HEAD", "file:"))


@in_one_session
async def test_roots_with_their_own_settings(editor: LanguageClient, project: Project) -> None:
    for name, code in (("one", "TOY308"), ("two", "TOY306")):
        project.write(f"{name}/speedlint.toml", f"rule-paths = [{str(TOY_RULES)!r}]\nselect = [{code!r}]")
        opened(editor, uri_of(project, f"{name}/train.py"), SLOW)
    assert [each.code for each in await told(editor, uri_of(project, "one/train.py"))] == ["TOY308"]
    assert [each.code for each in await told(editor, uri_of(project, "two/train.py"))] == ["TOY306"]


@in_one_session
async def test_a_wrong_configuration_is_said_once_and_mended(editor: LanguageClient, project: Project) -> None:
    uri = uri_of(project, "wrong/train.py")
    project.write("wrong/speedlint.toml", "selct = []")
    opened(editor, uri, SLOW)
    await told(editor, uri, lambda found: not found)
    assert any("unknown key `selct`" in each.message for each in editor.messages)
    project.write("wrong/speedlint.toml", f"rule-paths = [{str(TOY_RULES)!r}]\nselect = ['TOY']")
    editor.text_document_did_save(lsp.DidSaveTextDocumentParams(lsp.TextDocumentIdentifier(uri)))
    await told(editor, uri)


@in_one_session
async def test_text_that_is_no_python_is_one_error(editor: LanguageClient, project: Project) -> None:
    uri = uri_of(project, "broken.py")
    opened(editor, uri, "pass\nexactly(\n")
    (problem,) = await told(editor, uri)
    assert problem.severity == lsp.DiagnosticSeverity.Error and problem.range.start.line == 1


@in_one_session
async def test_a_change_in_another_buffer_is_seen(editor: LanguageClient, tmp_path: Path) -> None:
    (tmp_path / "speedlint.toml").write_text('torch = "2.13"\nselect = ["SPD3"]')
    (tmp_path / "main.py").write_text("import steps\n")
    (tmp_path / "steps.py").write_text("")
    main, helper = (tmp_path / "main.py").as_uri(), (tmp_path / "steps.py").as_uri()
    opened(editor, helper, "def reads(loss):\n    return 0\n")
    opened(editor, main, f"from steps import reads\n{LOOP}".replace("loss.item()", "reads(loss)"))
    await told(editor, main, lambda found: not found)
    changed(editor, helper, "def reads(loss):\n    return loss.item()\n")
    (found,) = await told(editor, helper)
    assert found.code == "SPD301"
    assert [each.location.uri for each in found.related_information or []] == [main]
    assert (await told(editor, main))[0].code == "SPD311", "what rests on it is checked again"


@in_one_session
async def test_hover_and_lens_of_a_training_loop(editor: LanguageClient, tmp_path: Path) -> None:
    (tmp_path / "speedlint.toml").write_text('torch = "2.13"\nselect = ["SPD301"]')
    uri = (tmp_path / "loop.py").as_uri()
    opened(editor, uri, LOOP)
    await told(editor, uri)
    place = lsp.TextDocumentIdentifier(uri)
    hover = await editor.text_document_hover_async(lsp.HoverParams(place, lsp.Position(9, 15)))
    assert hover is not None and isinstance(hover.contents, lsp.MarkupContent)
    assert hover.contents.value.startswith("### SPD301 item-in-loop") and "## Why it is slow" in hover.contents.value
    assert await editor.text_document_hover_async(lsp.HoverParams(place, lsp.Position(0, 0))) is None
    (lens,) = await editor.text_document_code_lens_async(lsp.CodeLensParams(place)) or []
    assert lens.range.start.line == 4
    assert lens.command is not None and lens.command.title == "speedlint: 1 finding in each step (1 medium)"
    (fix,) = await actions(editor, uri, span(9, 15, 15), ["quickfix"])
    assert "float(total)" in applied(LOOP, fix.edit, uri)


@in_one_session
async def test_what_is_typed_in_parts(editor: LanguageClient, project: Project) -> None:
    uri = uri_of(project, "typed.py")
    opened(editor, uri, "x = '\f\u2028😀'; pass\n")
    edits = [
        lsp.TextDocumentContentChangePartial(span(0, 12, 16), "exactly(1)"),
        lsp.TextDocumentContentChangePartial(lsp.Range(lsp.Position(900, 0), lsp.Position(900, 3)), "exactly(2)"),
    ]
    place = lsp.VersionedTextDocumentIdentifier(2, uri)
    editor.text_document_did_change(lsp.DidChangeTextDocumentParams(place, edits))
    first, second = await told(editor, uri, lambda found: len(found) == 2)
    assert (first.range, second.range) == (span(0, 12, 22), span(1, 0, 10))


@in_one_session
async def test_a_request_that_is_cancelled(editor: LanguageClient, project: Project) -> None:
    uri = uri_of(project, "cancelled.py")
    opened(editor, uri, SLOW)
    await told(editor, uri)
    (action,) = await actions(editor, uri, span(0, 0, 0), ["source.fixAll"])
    action.edit, action.data = None, {"uri": uri}
    asked = editor.protocol.send_request_async(lsp.CODE_ACTION_RESOLVE, action, msg_id="resolving")
    editor.cancel_request(lsp.CancelParams("resolving"))
    with contextlib.suppress(JsonRpcRequestCancelled):
        await asked
    assert len(await actions(editor, uri, span(0, 12, 12), ["quickfix"])) == 1


@in_one_session
async def test_the_cells_of_a_notebook(editor: LanguageClient, tmp_path: Path) -> None:
    (tmp_path / "speedlint.toml").write_text('torch = "2.13"\nselect = ["SPD301"]')
    uri = (tmp_path / "train.ipynb").as_uri()
    cells = [f"vscode-notebook-cell:{(tmp_path / 'train.ipynb').as_posix()}#W{number}" for number in range(4)]
    head, tail = LOOP.split("for step")
    texts = [f"%matplotlib inline\n{head}", f"for step{tail}".replace("print(total)\n", ""), "print(total)"]
    items = [lsp.TextDocumentItem(cell, "python", 1, text) for cell, text in zip(cells, texts, strict=False)]
    held = [lsp.NotebookCell(lsp.NotebookCellKind.Code, cell) for cell in cells[:3]]
    document = lsp.NotebookDocument(uri, "jupyter-notebook", 1, held)
    editor.notebook_document_did_open(lsp.DidOpenNotebookDocumentParams(document, items))
    (found,) = await told(editor, cells[1])
    assert found.range == span(5, 13, 24)
    (fix,) = await actions(editor, cells[1], span(5, 20, 20), ["quickfix"])
    assert set(changes_of(fix.edit)) == {cells[1], cells[2]}
    assert applied(texts[2], fix.edit, cells[2]) == "print(float(total))"
    (lens,) = await editor.text_document_code_lens_async(lsp.CodeLensParams(lsp.TextDocumentIdentifier(cells[1]))) or []
    assert lens.range.start.line == 0

    now = lsp.VersionedNotebookDocumentIdentifier(2, uri)
    added = lsp.TextDocumentItem(cells[3], "python", 1, "!ls\n")
    array = lsp.NotebookCellArrayChange(0, 0, [lsp.NotebookCell(lsp.NotebookCellKind.Code, cells[3])])
    structure = lsp.NotebookDocumentCellChangeStructure(array, did_open=[added])
    typed = lsp.NotebookDocumentCellContentChanges(
        lsp.VersionedTextDocumentIdentifier(2, cells[1]), [lsp.TextDocumentContentChangePartial(span(0, 0, 0), "\n")]
    )
    change = lsp.NotebookDocumentChangeEvent(cells=lsp.NotebookDocumentCellChanges(structure, text_content=[typed]))
    editor.notebook_document_did_change(lsp.DidChangeNotebookDocumentParams(now, change))
    await told(editor, cells[1], lambda found: bool(found) and found[0].range.start.line == 6)
    editor.notebook_document_did_close(
        lsp.DidCloseNotebookDocumentParams(lsp.NotebookDocumentIdentifier(uri), [lsp.TextDocumentIdentifier(cells[1])])
    )
    await told(editor, cells[1], lambda found: not found)


@in_one_session
async def test_a_fix_of_a_file_that_is_not_open(editor: LanguageClient, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    shutil.copytree(ROOT / "fixtures" / "projects" / "clothes_bisenet", folder)
    (folder / "speedlint.toml").write_text('torch = "2.13"\nselect = ["SPD201"]')
    (tmp_path / "link").symlink_to(folder)
    config, text = folder / "config.py", (folder / "config.py").read_text()
    config.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    train, other = tmp_path / "link" / "train.py", (tmp_path / "link" / "config.py").as_uri()
    opened(editor, train.as_uri(), train.read_text())
    (found,) = await told(editor, train.as_uri())
    (fix,) = await actions(editor, train.as_uri(), found.range, ["quickfix"])
    assert applied(text, fix.edit, other).replace("\r", "") == text.replace(
        "import Tuple", "import Tuple\nimport os"
    ).replace("num_workers: int = 0", "num_workers: int = min(8, os.cpu_count() or 1)")
    config.write_text(f"# longer\n{text}")
    assert not await actions(editor, train.as_uri(), found.range, ["quickfix"]), "what it edits has changed on disk"


@in_one_session
async def test_edits_are_of_a_version_and_of_the_name_that_is_open(editor: LanguageClient, project: Project) -> None:
    project.write("real/train.py", SLOW)
    (project.root / "link").symlink_to("real")
    uri = uri_of(project, "link/train.py")
    opened(editor, uri, SLOW)
    await told(editor, uri)
    changed(editor, uri, f"{SLOW}\n", 7)
    await told(editor, uri)
    while not (found := await actions(editor, uri, span(0, 12, 12), ["quickfix"])):
        await asyncio.sleep(0.05)
    (edit,) = (found[0].edit and found[0].edit.document_changes) or ()
    assert isinstance(edit, lsp.TextDocumentEdit)
    assert (edit.text_document.uri, edit.text_document.version) == (uri, 7)


@in_one_session
async def test_a_script_is_no_markup_where_it_is_told_of(editor: LanguageClient, project: Project) -> None:
    uri = uri_of(project, "markup.py")
    opened(editor, uri, "exactly('```![a](https://host/a.png)\x1b')\n")
    (found,) = await told(editor, uri)
    assert "\x1b" not in found.message
    hover = await editor.text_document_hover_async(lsp.HoverParams(lsp.TextDocumentIdentifier(uri), lsp.Position(0, 1)))
    assert hover is not None and isinstance(hover.contents, lsp.MarkupContent)
    assert "\n````text\n`exactly('```![a](https://host/a.png)\\x1b')` is slow\n````\n" in hover.contents.value


@in_one_session
async def test_a_cell_is_utf_8_whatever_it_declares(editor: LanguageClient, project: Project) -> None:
    uri, cell = uri_of(project, "coded.ipynb"), "vscode-notebook-cell:/coded.ipynb#1"
    text = "# coding: latin-1\né = 1; exactly(é)"
    held = [lsp.NotebookCell(lsp.NotebookCellKind.Markup, f"{cell}0"), lsp.NotebookCell(lsp.NotebookCellKind.Code, cell)]
    editor.notebook_document_did_open(
        lsp.DidOpenNotebookDocumentParams(
            lsp.NotebookDocument(uri, "jupyter-notebook", 1, held), [lsp.TextDocumentItem(cell, "python", 1, text)]
        )
    )
    await told(editor, cell)
    (fix,) = await actions(editor, cell, span(1, 8, 8), ["quickfix"])
    assert applied(text, fix.edit, cell) == text.replace("exactly", "print")


@pytest_lsp.fixture(  # type: ignore[untyped-decorator]
    config=ClientServerConfig(server_command=[sys.executable, "-m", "speedlint", "server", "--stdio"])
)
async def neovim(lsp_client: LanguageClient) -> AsyncIterator[None]:
    """A client that counts in UTF-8."""
    capabilities = client_capabilities("neovim@v0.11.0")
    assert capabilities.general is not None
    capabilities.general.position_encodings = [lsp.PositionEncodingKind.Utf8, lsp.PositionEncodingKind.Utf16]
    await lsp_client.initialize_session(lsp.InitializeParams(capabilities=capabilities))
    yield
    await lsp_client.shutdown_session()


@pytest.mark.asyncio
async def test_a_client_that_counts_bytes(neovim: LanguageClient, project: Project) -> None:
    uri = uri_of(project, "train.py")
    opened(neovim, uri, SLOW)
    first, _ = await told(neovim, uri)
    assert first.range == span(0, 13, 24)
    (exact,) = await actions(neovim, uri, span(0, 13, 13), ["quickfix"])
    assert exact.edit is not None and exact.edit.changes is not None, "it knows no edits of versions"
    assert [each.range for each in exact.edit.changes[uri]] == [span(0, 13, 20)]


def test_the_protocol_alone_is_on_standard_output(project: Project) -> None:
    project.write("loud/rule.py", (TOY_RULES / "exact_call.py").read_text() + "\nprint('loud')\n")
    project.write("speedlint.toml", "rule-paths = ['loud']")
    document = {"uri": uri_of(project, "a.py"), "languageId": "python", "version": 1, "text": "exactly()\n"}
    messages: list[dict[str, object]] = [
        {"id": 1, "method": "initialize", "params": {"processId": None, "rootUri": None, "capabilities": {}}},
        {"method": "initialized", "params": {}},
        {"method": "textDocument/didOpen", "params": {"textDocument": document}},
    ]
    command = [sys.executable, "-m", "speedlint", "server"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as server:
        assert server.stdin is not None and server.stdout is not None and server.stderr is not None
        for each in messages:
            _send(server.stdin, each)
        received = ""
        while "publishDiagnostics" not in received:
            received = _received(server.stdout)
        _send(server.stdin, {"id": 2, "method": "shutdown"})
        _received(server.stdout)
        _send(server.stdin, {"method": "exit"})
        assert server.wait(PATIENCE) == 0
        said = server.stderr.read().decode()
    assert "TOY308" in received
    assert "loud" in said and "Traceback" not in said


def _send(stream: IO[bytes], message: dict[str, object]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    stream.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    stream.flush()


def _received(stream: IO[bytes]) -> str:
    """The next message; what else is in the stream fails."""
    length, size = stream.readline(), 0
    while length.strip():
        name, _, value = length.decode().partition(":")
        assert name in ("Content-Length", "Content-Type")
        size = int(value) if name == "Content-Length" else size
        length = stream.readline()
    return stream.read(size).decode()


def test_fixes_that_are_not_wanted_any_more_end(project: Project) -> None:
    path, asked = project.root / "long.py", iter([False, True])
    with pytest.raises(CancelledError):
        Analyst().fixed(path, {path: SLOW.encode()}, lambda: next(asked))


def test_a_check_that_is_not_wanted_any_more_ends(project: Project) -> None:
    path, asked = project.root / "long.py", iter([False, False, True])
    with pytest.raises(CancelledError):
        Analyst().check(path, {path: SLOW.encode()}, lambda: next(asked))
    assert next(asked, None) is None, "no rule was asked after that"


def test_a_check_that_is_asked_for_again_rests_on_the_files_and_settings_as_they_are_now(tmp_path: Path) -> None:
    train, helper, other = tmp_path / "train.py", tmp_path / "helper.py", tmp_path / "other.py"
    reading, keeping = "def kept(loss):\n    return loss.item()\n", "def kept(loss):\n    return loss.detach()\n"
    text = f"from helper import kept\n{LOOP.replace('loss.item()', 'kept(loss)')}".encode()
    train.write_bytes(text)
    helper.write_text(reading)
    other.write_text("from helper import kept\nprint(kept)\n")
    analyst = Analyst()

    def waits(**open_: str) -> bool:
        texts = {train: text, **{tmp_path / f"{name}.py": held.encode() for name, held in open_.items()}}
        return "SPD311" in {each.code for each in analyst.check(train, texts).report.diagnostics}

    assert waits()
    other.write_text("print(1)\n")
    assert waits()
    assert not waits(helper=keeping), "as an editor has it"
    assert waits()
    helper.write_text(keeping)
    assert not waits(), "as it is on disk"
    helper.write_text(reading)
    (tmp_path / "speedlint.toml").write_text('ignore = ["SPD311"]\n')
    assert not waits()


def test_without_pygls_it_says_what_to_install(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "speedlint.server.service", None)
    result = project.run("server")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1 and "pip install 'speedlint[server]'" in result.stderr


@pytest.mark.parametrize(("units", "column"), [("utf-8", 13), ("utf-16", 8), ("utf-32", 7)])
def test_positions_in_each_unit(units: str, column: int) -> None:
    text = Text("x\r\né = 😀\f\u2028;", units)
    offset = "x\r\né = 😀\f\u2028".encode()
    place = text.at_byte(len(offset))
    assert (place.line, place.character) == (1, column)
    assert text.byte(place) == len(offset)
    assert text.at(2, 8) == place
    assert text.byte(lsp.Position(7, 0)) == len(text.data)
    assert text.byte(lsp.Position(0, 99)) == 1, "a line ends before its line break"


LINES = st.lists(st.sampled_from(["a", "é😀", "\n", "\r", "\r\n", "\f", "\u2028", "b"]), max_size=12).map("".join)


@given(LINES, st.sampled_from(list(lsp.PositionEncodingKind)), st.booleans())
def test_bytes_and_positions_are_the_same_places(text: str, units: lsp.PositionEncodingKind, is_marked: bool) -> None:
    data = (b"\xef\xbb\xbf" if is_marked else b"") + text.encode()
    held = Text.of_file(data, units)
    assert (held.text, held.data) == (text, data)
    for at in range(len(text) + 1):
        offset = len(data) - len(text[at:].encode())
        inside_break = text[at - 1 : at + 1] == "\r\n"
        assert held.byte(held.at_byte(offset)) == offset - inside_break


@given(LINES, LINES)
def test_edits_by_lines_make_the_other_text(before: str, after: str) -> None:
    text = Text(before, lsp.PositionEncodingKind.Utf16)
    for each in reversed(list(text.edits(after))):
        text = text.replaced(each.range, each.new_text)
    assert text.text == after
