"""The server's side of the Language Server Protocol."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from speedlint import __version__, docs
from speedlint.diagnostic import Diagnostic, Place, Proposal
from speedlint.errors import UserError
from speedlint.notebook import NotebookError, is_notebook, split
from speedlint.output.terminal import visible
from speedlint.registry import Registry
from speedlint.rule import Level, Risk
from speedlint.server.analysis import Analyst, IsCancelled, held, is_sound
from speedlint.server.documents import Document, Part, path_of, uri_of
from speedlint.server.places import Text

DEBOUNCE = 0.3
"""Seconds without a key stroke after which a document is checked."""
_PAUSE = 1.0
"""Seconds without a key stroke in a document after which the others that rest on it are checked."""
_STACK = 64 << 20
"""Bytes of stack for the thread that checks: the main thread's own are 8 MB, other threads' as few as half a megabyte."""
_FIX_ALL = "source.fixAll.speedlint"
_NAME = "speedlint"
_DEFAULT_UNITS = lsp.PositionEncodingKind.Utf16
_RISKS = {
    Risk.EXACT: "exact: the same training, bit for bit",
    Risk.NUMERIC: "numeric: rounding or the random stream may differ",
    Risk.BEHAVIOR: "behavior: what is computed, logged or saved may change",
}
_WORTHS = ("high", "medium", "low", "unknown")
_SEVERITIES = {Level.WARNING: lsp.DiagnosticSeverity.Warning, Level.NOTE: lsp.DiagnosticSeverity.Information}

Answer = TypeVar("Answer")


class Service:
    """The open documents of one editor, checked one at a time in a thread of their own."""

    def __init__(self, server: LanguageServer) -> None:
        self.server = server
        self.documents: dict[str, Document] = {}
        self.shows_notes = False
        self._analyst: Analyst | None = None
        self._said: set[str] = set()
        threading.stack_size(_STACK)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=_NAME)

    # Documents

    def open(self, uri: str, text: str, version: int | None) -> None:
        """Takes a script and checks it; what is no Python file is left alone."""
        if (path := path_of(uri, ".py")) is not None:
            self.close(uri)
            self.documents[uri] = Document(path, {None: Part(uri, Text(text, self._units), version)})
            self.check(uri)

    def open_notebook(self, uri: str, cells: Sequence[lsp.TextDocumentItem]) -> None:
        """Takes a notebook and checks it; what is no file is left alone."""
        if (path := path_of(uri, ".ipynb")) is not None:
            self.close(uri)
            self.documents[uri] = Document(path, {})
            self.order(uri, cells)
            self.check(uri)

    def order(self, uri: str, new: Iterable[lsp.TextDocumentItem]) -> None:
        """Makes the cells of a notebook those that it has now, of which some are new."""
        held = self.server.workspace.get_notebook_document(notebook_uri=uri)
        cells = [each.document for each in held.cells] if held is not None else []
        parts = [Part(each.uri, Text(each.text, self._units, "utf-8"), each.version) for each in new]
        self.clear(self.documents[uri].order(cells, parts))

    @property
    def _units(self) -> lsp.PositionEncodingKind | str:
        """What the editor counts a line's characters in."""
        return self.server.workspace.position_encoding or _DEFAULT_UNITS

    def changed(self, uri: str) -> None:
        """Checks a document after a while, since it was typed in, and later those that rest on it."""
        path = os.path.realpath(self.documents[uri].path)
        self.documents[uri].checked = None
        self.check(uri, DEBOUNCE)
        for other, document in self.documents.items():
            if other != uri and document.checked is not None and path in document.checked.rests_on:
                self.check(other, _PAUSE)

    def close(self, uri: str) -> None:
        """Lets a document go, and takes its diagnostics away."""
        document = self.documents.pop(uri, None)
        if document is not None:
            document.rest()
            self.clear(document.parts.values())

    def clear(self, parts: Iterable[Part]) -> None:
        """Takes the diagnostics of some texts away."""
        for part in parts:
            self._publish(part, [])

    def check(self, uri: str, wait: float = 0) -> None:
        """Checks a document after ``wait`` seconds; what was under way for it is cancelled."""
        document = self.documents[uri]
        document.rest()
        document.task = asyncio.get_running_loop().create_task(self._check(uri, document, wait))

    def check_all(self, wait: float = 0) -> None:
        """Checks every document, as a file that they rest on may have changed."""
        for uri in [*self.documents]:
            self.check(uri, wait)

    async def _check(self, uri: str, document: Document, wait: float) -> None:
        await asyncio.sleep(wait)
        texts, checked = self._texts(), None
        if document.path in texts:
            checked = await self.ask(lambda analyst, is_cancelled: analyst.check(document.path, texts, is_cancelled))
        if self.documents.get(uri) is document:
            document.checked, document.sound = checked, {}
            for cell, part in document.parts.items():
                self._publish(part, [*self._diagnostics(document, cell)])
            self._refresh()

    async def ask(self, question: Callable[[Analyst, IsCancelled], Answer]) -> Answer | None:
        """What the thread that checks has to say; None where that is told to the user instead. Cancelled with its task."""
        stop = threading.Event()
        asked = asyncio.get_running_loop().run_in_executor(self._pool, lambda: question(self._own_analyst(), stop.is_set))
        try:
            return await asked
        except UserError as error:
            self._say(str(error))
        except Exception as error:
            self._say(f"internal error ({type(error).__name__}: {error}); please report it")
        finally:
            stop.set()
        return None

    def _own_analyst(self) -> Analyst:
        if self._analyst is None:
            self._analyst = Analyst()
        return self._analyst

    def _texts(self) -> dict[Path, bytes]:
        """What the open documents hold; a notebook without code, or that cannot be one script, is left out."""
        found = {}
        for document in self.documents.values():
            with contextlib.suppress(NotebookError):
                found[document.path] = document.data
        return {path: data for path, data in found.items() if data or not is_notebook(path)}

    def _say(self, text: str) -> None:
        """Shows a message once."""
        if text not in self._said:
            self._said.add(text)
            told = f"{_NAME}: {visible(text)}"
            self.server.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Error, told))

    def _refresh(self) -> None:
        workspace = self.server.client_capabilities.workspace
        if workspace is not None and workspace.code_lens is not None and workspace.code_lens.refresh_support:
            self.server.workspace_code_lens_refresh(None)

    # Diagnostics

    def _publish(self, part: Part, diagnostics: Sequence[lsp.Diagnostic]) -> None:
        self.server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(part.uri, diagnostics, part.version))

    def found(self, document: Document) -> list[Diagnostic]:
        """The findings that are shown of a document."""
        found = document.checked.report.diagnostics if document.checked is not None else ()
        return [each for each in found if self.shows_notes or each.level is Level.WARNING]

    def _diagnostics(self, document: Document, cell: int | None) -> Iterator[lsp.Diagnostic]:
        for found in self.found(document):
            if found.cell == cell:
                yield self._diagnostic(document.parts[cell].text, found)
        for problem in document.checked.report.problems if document.checked is not None else ():
            if problem.cell == cell:
                at = document.parts[cell].text.at(problem.line or 1, 1)
                yield lsp.Diagnostic(lsp.Range(at, at), visible(problem.what), lsp.DiagnosticSeverity.Error, source=_NAME)

    def _diagnostic(self, text: Text, found: Diagnostic) -> lsp.Diagnostic:
        advice = f"\n{visible(found.advice)}" if found.advice else ""
        url = docs.rule_url(found.code)
        return lsp.Diagnostic(
            range=_range(text, found),
            message=f"{visible(found.message)}{advice}",
            severity=_SEVERITIES[found.level],
            code=found.code,
            code_description=lsp.CodeDescription(url) if url else None,
            source=_NAME,
            related_information=[each for place in found.related if (each := self._related(place)) is not None],
        )

    def _related(self, place: Place) -> lsp.DiagnosticRelatedInformation | None:
        part = self._part_at(place.path, place.cell)
        if part is None:
            return None
        at = part.text.at(place.line, 1)
        return lsp.DiagnosticRelatedInformation(lsp.Location(part.uri, lsp.Range(at, at)), visible(place.message))

    def _part_at(self, path: Path, cell: int | None) -> Part | None:
        """A text: as its editor has it, else the file's as it is on disk; None where it cannot be read."""
        real = os.path.realpath(path)
        for document in self.documents.values():
            if os.path.realpath(document.path) == real:
                return document.parts.get(cell)
        if is_notebook(path):
            return None
        try:
            return Part(uri_of(path), Text.of_file(path.read_bytes(), self._units), None)
        except (OSError, SyntaxError, LookupError, ValueError):
            return None

    # What is asked of a place

    def part_of(self, uri: str) -> tuple[Document, int | None, Part] | None:
        """The document and the cell that an editor's text is; None for one that is not looked at."""
        for document in self.documents.values():
            for cell, part in document.parts.items():
                if part.uri == uri:
                    return document, cell, part
        return None

    def at(self, uri: str, place: lsp.Range) -> Iterator[tuple[Document, Part, Diagnostic]]:
        """The findings that a range touches."""
        if (home := self.part_of(uri)) is None:
            return
        document, cell, part = home
        first, last = sorted((part.text.byte(place.start), part.text.byte(place.end)))
        for found in self.found(document):
            if found.cell == cell and found.start <= last and first <= found.end:
                yield document, part, found

    def quick_fixes(self, uri: str, place: lsp.Range) -> Iterator[lsp.CodeAction]:
        """The fixes of the findings that a range touches, those that leave sound files."""
        for document, part, found in self.at(uri, place):
            fix = found.fix
            if fix is None or not fix.applicable or self._is_late(document, fix) or not self._is_sound(document, found, fix):
                continue
            if (edit := self._edit(fix)) is not None:
                title = f"Fix {found.code} {found.rule} ({_RISKS[fix.risk]})"
                cured, preferred = [self._diagnostic(part.text, found)], fix.risk is Risk.EXACT
                yield lsp.CodeAction(title, lsp.CodeActionKind.QuickFix, cured, is_preferred=preferred, edit=edit)

    def _is_late(self, document: Document, fix: Proposal) -> bool:
        """Whether a file that the fix changes has changed, in its editor or on disk, since it was found."""
        edited = {each.path for each in fix.edits}
        then = document.checked.held if document.checked is not None else {}
        return not edited <= then.keys() or held(edited, self._texts()) != {path: then[path] for path in edited}

    def _is_sound(self, document: Document, found: Diagnostic, fix: Proposal) -> bool:
        """Whether the fix leaves sound files, found out once: it takes a third of a second for 5,000 lines."""
        if found.key not in document.sound:
            document.sound[found.key] = is_sound(fix, self._texts())
        return document.sound[found.key]

    def _edit(self, fix: Proposal) -> lsp.WorkspaceEdit | None:
        changes: list[tuple[Part, lsp.TextEdit]] = []
        for each, (cell, begins) in zip(fix.edits, fix.cells or itertools.repeat((None, 0)), strict=False):
            part = self._part_at(each.path, cell)
            if part is None:
                return None
            edit = part.text.edit(each.start - begins, each.end - begins, each.text)
            changes.append((part, edit))
        return self._workspace_edit(changes)

    def _workspace_edit(self, changes: Iterable[tuple[Part, lsp.TextEdit]]) -> lsp.WorkspaceEdit:
        """The edits of some texts, of these versions of them where the editor takes that, so that it refuses late ones."""
        edits: dict[str, list[lsp.TextEdit]] = {}
        versions: dict[str, int | None] = {}
        for part, edit in changes:
            edits.setdefault(part.uri, []).append(edit)
            versions[part.uri] = part.version
        workspace = self.server.client_capabilities.workspace
        if workspace is None or workspace.workspace_edit is None or not workspace.workspace_edit.document_changes:
            return lsp.WorkspaceEdit(changes=edits)
        named = ((lsp.OptionalVersionedTextDocumentIdentifier(uri, versions[uri]), edits[uri]) for uri in edits)
        return lsp.WorkspaceEdit(document_changes=[lsp.TextDocumentEdit(*each) for each in named])

    def fix_all(self, uri: str) -> lsp.CodeAction | None:
        """The action that applies all exact fixes, without its edit; None where there is none."""
        home = self.part_of(uri)
        fixes = [each.fix for each in self.found(home[0])] if home is not None else []
        if any(fix is not None and fix.applicable and fix.risk is Risk.EXACT for fix in fixes):
            return lsp.CodeAction(f"Fix all that are exact ({_NAME})", _FIX_ALL, data={"uri": uri})
        return None

    async def resolved(self, action: lsp.CodeAction) -> lsp.CodeAction:
        """The action with its edit, unless what it edits has changed meanwhile."""
        home = self.part_of(str(action.data.get("uri"))) if isinstance(action.data, dict) else None
        if home is None:
            return action
        document, texts = home[0], self._texts()
        if document.path not in texts:
            return action
        after = await self.ask(lambda analyst, is_cancelled: analyst.fixed(document.path, texts, is_cancelled))
        if after is not None and self._texts().get(document.path) == texts[document.path]:
            action.edit = self._workspace_edit(_changes(document, after))
        return action

    def hover(self, uri: str, position: lsp.Position) -> lsp.Hover | None:
        """What is known of the findings at a place, each with its rule's page."""
        found = list(self.at(uri, lsp.Range(position, position)))
        if not found:
            return None
        pages = [_explained(document.checked.registry, each) for document, _, each in found if document.checked is not None]
        _, part, first = found[0]
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, "\n\n---\n\n".join(pages)), _range(part.text, first))

    def lenses(self, uri: str) -> Iterator[lsp.CodeLens]:
        """What each training loop's findings are worth, above the loop."""
        home = self.part_of(uri)
        if home is None or home[0].checked is None:
            return
        _, cell, part = home
        for loop in home[0].checked.loops:
            if loop.cell == cell:
                counts = ", ".join(f"{loop.counts[worth]} {worth}" for worth in _WORTHS if worth in loop.counts)
                total = sum(loop.counts.values())
                title = f"{_NAME}: {total} {'finding' if total == 1 else 'findings'} in each step ({counts})"
                at = part.text.at(loop.line, 1)
                yield lsp.CodeLens(lsp.Range(at, at), lsp.Command(title, ""))


def _changes(document: Document, after: bytes) -> Iterator[tuple[Part, lsp.TextEdit]]:
    """The edits, by whole lines, that make a document's texts those of a file."""
    if None in document.parts:
        part = document.parts[None]
        texts = [(part, after.decode(part.text.encoding))]
    else:
        texts = [(document.parts[cell], code) for cell, code in split(after.decode())]
    for part, code in texts:
        for edit in part.text.edits(code):
            yield part, edit


def _explained(registry: Registry, found: Diagnostic) -> str:
    worth = f"{found.worth.worth.value}: {found.worth.because}" if found.worth.because else ""
    told = _verbatim("\n".join(filter(None, (found.message, worth))))
    return f"### {found.code} {found.rule}\n\n{told}\n\n{docs.page(registry.loaded(registry.by_code[found.code]))}"


def _verbatim(text: str) -> str:
    """Lines that hold pieces of a script as Markdown in which these are no markup: an image's address would be opened."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return "\n".join((f"{fence}text", *map(visible, text.split("\n")), fence))


def _range(text: Text, found: Diagnostic) -> lsp.Range:
    return lsp.Range(text.at(found.line, found.column), text.at(found.end_line, found.end_column))


def _wants(only: Iterable[str] | None, kind: str) -> bool:
    """Whether a client that asks for some kinds of actions, or for all, asks for one."""
    return only is None or any(kind == each or kind.startswith(f"{each}.") for each in only)


def made() -> LanguageServer:
    """The server, to be started."""
    cells = lsp.NotebookDocumentFilterWithCells([lsp.NotebookCellLanguage("python")], "jupyter-notebook")
    # Have: whole texts, since pygls counts lines as str.splitlines does, which no editor does, and moves ranges by it.
    # Editors send parts of cells all the same; `Part` takes them, and pygls need not say each time that it cannot.
    logging.getLogger("pygls.workspace.text_document").disabled = True
    server = LanguageServer(
        _NAME,
        __version__,
        text_document_sync_kind=lsp.TextDocumentSyncKind.Full,
        notebook_document_sync=lsp.NotebookDocumentSyncOptions([cells], save=True),
    )
    service = Service(server)

    @server.feature(lsp.INITIALIZE)
    def initialize(params: lsp.InitializeParams) -> None:
        options = params.initialization_options
        service.shows_notes = isinstance(options, dict) and options.get("notes") is True

    @server.feature(lsp.SHUTDOWN)
    async def shutdown(_: None) -> None:
        for document in service.documents.values():
            document.rest()

    _follow_texts(server, service)
    _follow_notebooks(server, service)
    _answer(server, service)
    return server


def _follow_texts(server: LanguageServer, service: Service) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    async def did_open(params: lsp.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        service.open(document.uri, document.text, document.version)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def did_change(params: lsp.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        document = service.documents.get(uri)
        if document is not None and None in document.parts:
            document.parts[None].change(params.content_changes, params.text_document.version)
            service.changed(uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    async def did_save(params: lsp.DidSaveTextDocumentParams) -> None:
        service.check_all()

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    async def did_change_files(params: lsp.DidChangeWatchedFilesParams) -> None:
        service.check_all(DEBOUNCE)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    async def did_close(params: lsp.DidCloseTextDocumentParams) -> None:
        service.close(params.text_document.uri)


def _follow_notebooks(server: LanguageServer, service: Service) -> None:
    @server.feature(lsp.NOTEBOOK_DOCUMENT_DID_OPEN)
    async def did_open(params: lsp.DidOpenNotebookDocumentParams) -> None:
        service.open_notebook(params.notebook_document.uri, params.cell_text_documents)

    @server.feature(lsp.NOTEBOOK_DOCUMENT_DID_CHANGE)
    async def did_change(params: lsp.DidChangeNotebookDocumentParams) -> None:
        uri, cells = params.notebook_document.uri, params.change.cells
        document = service.documents.get(uri)
        if document is None or cells is None:
            return
        if cells.structure is not None:
            service.order(uri, cells.structure.did_open or ())
        for content in cells.text_content or ():
            for part in document.parts.values():
                if part.uri == content.document.uri:
                    part.change(content.changes, content.document.version)
        service.changed(uri)

    @server.feature(lsp.NOTEBOOK_DOCUMENT_DID_SAVE)
    async def did_save(params: lsp.DidSaveNotebookDocumentParams) -> None:
        service.check_all()

    @server.feature(lsp.NOTEBOOK_DOCUMENT_DID_CLOSE)
    async def did_close(params: lsp.DidCloseNotebookDocumentParams) -> None:
        service.close(params.notebook_document.uri)


def _answer(server: LanguageServer, service: Service) -> None:
    @server.feature(
        lsp.TEXT_DOCUMENT_CODE_ACTION,
        lsp.CodeActionOptions([lsp.CodeActionKind.QuickFix, _FIX_ALL], resolve_provider=True),
    )
    async def code_action(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        uri, only = params.text_document.uri, params.context.only
        actions: list[lsp.CodeAction] = []
        if _wants(only, lsp.CodeActionKind.QuickFix):
            actions += service.quick_fixes(uri, params.range)
        if _wants(only, _FIX_ALL) and (action := service.fix_all(uri)) is not None:
            actions.append(action if _resolves(server.client_capabilities) else await service.resolved(action))
        return actions

    @server.feature(lsp.CODE_ACTION_RESOLVE)
    async def resolve(action: lsp.CodeAction) -> lsp.CodeAction:
        return await service.resolved(action)

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    async def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        return service.hover(params.text_document.uri, params.position)

    @server.feature(lsp.TEXT_DOCUMENT_CODE_LENS)
    async def code_lens(params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
        return list(service.lenses(params.text_document.uri))


def _resolves(client: lsp.ClientCapabilities) -> bool:
    """Whether a client asks for an action's edit when it is chosen."""
    document = client.text_document
    support = document.code_action.resolve_support if document is not None and document.code_action is not None else None
    return support is not None and "edit" in support.properties
