"""Files -> findings."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import cache, partial
from pathlib import Path

from speedlint import notebook, stacks, target
from speedlint.ask.program import Cache, Program
from speedlint.ask.script import Options, Script
from speedlint.config import Nearest, Settings
from speedlint.diagnostic import Diagnostic, Place, Proposal, Report
from speedlint.disk import Disk, digest
from speedlint.errors import UserError
from speedlint.facts import syntax
from speedlint.facts.store import Store
from speedlint.files import Problem
from speedlint.notebook import Cells, NotebookError, OtherLanguageError
from speedlint.registry import Registry, covers
from speedlint.rule import Edit, Estimate, Finding, Fix, Level, Related, Rule, Worth
from speedlint.shapes import acting, durations, entry, eras, evaluation, hosted, probes, startable, worth
from speedlint.solve import off
from speedlint.source import Source, SourceError
from speedlint.suppress import Suppressions, mentions
from speedlint.torch.words import FREQUENT, Frequency

_OLDEST = (1, 13)
_MOST_HELD = 400_000_000
"""Bytes of memory, by what nodes and answers take at most, for files and what is known of them: with Python itself and the
rules up to 290 MB in all. timm (284 files) takes 14 CPU seconds under it, 17 where it is 320 MB, 24 where it is 200 MB."""
_MOST_OF_FILES = 0.75
"""The share of it up to which files and their nodes stay when what was found out about them is let go."""
_BEYOND_ONE = 1.5
"""How many times what one file's check has needed may be held: where that is much, letting it go only makes it anew."""
_EXCERPT_LINES, _EXCERPT_WIDTH = 3, 300
_TEXT_WIDTH, _DIGITS = 160, 12
"""Characters of a finding's text, and of the digest of a longer one: 48 bits tell those of one function apart."""
_LONGEST = 600
_MOST_CALLERS = 3
_OFTEN = {Frequency.STEP: "in every training step", Frequency.EVAL_STEP: "in every evaluation step"}


class Engine:
    """The chosen rules over the programs of one run.

    ``disk`` gives files as they are, or as edited. ``options`` hold for every file; without
    them each file has the target release of its own project. ``asked`` are the files that will be checked: what is slow in
    one of them is reported there, and not where another one reaches it.
    """

    def __init__(
        self,
        settings: Settings,
        registry: Registry,
        disk: Disk | None = None,
        options: Options | None = None,
        cache: Cache | None = None,
        asked: Iterable[Path] = (),
        store: Store | None = None,
    ) -> None:
        self.settings = settings
        self.asked = tuple(asked)
        self._registry = registry
        self._nearest = Nearest(settings)
        self._chosen: dict[Path | None, tuple[tuple[Rule, ...], frozenset[str]]] = {}
        self.disk = disk or Disk()
        self._options = options
        self._cache = cache or Cache(store)
        self._programs: dict[Options, Program] = {}
        self._targets: dict[Path, Options] = {}
        self._most_held: float = _MOST_HELD
        self._has_let_go = False

    def check(self, path: Path, code: str | None = None) -> Report:
        """The findings in one file, of one rule or of all, notes included, in order of position."""
        try:
            self._let_go()
            return stacks.with_room(partial(self._check, path, code))
        except UserError:
            raise
        except SourceError as error:
            return Report(problems=(self._unparsed(path, error),))
        except OtherLanguageError as error:
            return Report(bounds=(f"{path}: {error.what}",))
        except NotebookError as error:
            return Report(problems=(Problem(path, error.line, error.what),))
        except OSError as error:
            return Report(problems=(Problem(path, None, f"cannot be read ({error.strerror or error})"),))
        except Exception as error:
            return Report(problems=(_fault("reading this file", path, error),))

    def _unparsed(self, path: Path, error: SourceError) -> Problem:
        """What kept a file from being parsed, by cell and line for a notebook."""
        if not notebook.is_notebook(error.path):
            return Problem(error.path, error.line, error.what)
        place = Cells(self.disk.read(error.path)).place(error.line)
        return Problem(path, place.line, error.what, place.cell)

    def script(self, path: Path) -> Script:
        """What is known of a file. Raises SourceError and OSError."""
        return self._program(path).script(path)

    def around(self, path: Path) -> tuple[Path, ...]:
        """The files of the programs that a file is part of, itself first."""
        return self._program(path).around(path)

    def _let_go(self) -> None:
        """Lets go what was found out where what is held takes much memory, and the files too where these alone do."""
        files = self._cache.held() + self.disk.held()
        memory = files + sum(program.held() for program in self._programs.values())
        if self._has_let_go:
            self._most_held = max(_MOST_HELD, _BEYOND_ONE * memory)
        self._has_let_go = memory > self._most_held
        if self._has_let_go:
            for program in self._programs.values():
                program.close()
            self._programs.clear()
            if files > self._most_held * _MOST_OF_FILES:
                self._cache.drop()
                self.disk.drop()

    def _check(self, path: Path, code: str | None) -> Report:
        data = self.disk.read(path)
        chosen = [rule for rule in self._rules_for(path) if code in (None, rule.code)]
        holds = cache(data.__contains__)
        rules = [rule for rule in chosen if any(map(holds, rule.triggers))]
        if not rules and not mentions(data, self._registry.letters):
            return Report()
        script = self._program(path).script(path)
        suppressions = Suppressions(script.source, self._registry)
        elsewhere = _Elsewhere(script, self._registry)
        found: dict[tuple[object, ...], Diagnostic] = {}
        problems = []
        for known in rules:
            try:
                rule = self._registry.loaded(known)
                for finding in look(rule, script):
                    if suppressions.silence(script.source.line(finding.node), rule.code, rule.name):
                        continue
                    if elsewhere.silences(finding, rule):
                        continue
                    if not _is_out_of_reach(finding, script) and not _is_idle(finding, script):
                        diagnostic = self._diagnostic(path, rule, finding, script)
                        diagnostic = _in_cell(diagnostic, script.source.cells)
                        found.setdefault(diagnostic.key, diagnostic)
            except (Exception, SystemExit) as error:
                problems.append(_rule_fault(known.code, path, error, self._registry.foreign(known.code)))
        unused = (
            suppressions.unused({rule.code for rule in chosen}, partial(_calls_away, script))
            if code is None and not problems and script.source.cells is None
            else ()
        )
        found_here = tuple(found[key] for key in sorted(found))
        remarks = (*_old_python(path, script), *self._program(path).bounds)
        return Report(found_here, tuple(problems), remarks, tuple(unused))

    def _program(self, path: Path) -> Program:
        folder = path.absolute().parent
        options = self._options or self._targets.get(folder)
        if options is None:
            own = self._nearest.within(folder)
            release, told = target.find(own, folder, self.disk).release, target.told(own, folder, self.disk)
            options = self._targets[folder] = Options(release, own.amp, told)
        if options not in self._programs:
            self._programs[options] = Program(options, self.disk, self._cache, self.asked)
        return self._programs[options]

    def _rules_for(self, path: Path) -> Iterable[Rule]:
        own = self._nearest.of(path)
        ignored = _ignored(own, path)
        return [rule for rule in self._choice(own)[0] if not any(covers(word, rule.code, rule.name) for word in ignored)]

    def _choice(self, own: Settings) -> tuple[tuple[Rule, ...], frozenset[str]]:
        """The rules that the settings of a file choose, and the codes of those that they name one by one."""
        if own.file not in self._chosen:
            named = self._registry.named((*own.select, *own.extend_select))
            self._chosen[own.file] = (self._registry.chosen(own), named)
        return self._chosen[own.file]

    def _diagnostic(self, path: Path, rule: Rule, finding: Finding, script: Script) -> Diagnostic:
        source = script.source
        start, end = source.span(finding.node)
        line, column = source.position(start)
        end_line, end_column = source.position(end)
        frequency = script.frequency(finding.node)
        level = finding.level or (Level.WARNING if frequency in FREQUENT else Level.NOTE)
        estimate = finding.worth or worth.at(rule.worth, frequency)
        if level is Level.WARNING and entry.is_never_called(script, finding.node):
            level = Level.NOTE
        if level is Level.WARNING and (lower := _worth_nothing(rule, finding, script)) is not None:
            level, estimate = Level.NOTE, lower
        if level is Level.WARNING and worth.is_fixed(estimate) and (long := durations.why_long(script)) is not None:
            level, estimate = Level.NOTE, Estimate(Worth.LOW, long)
        is_small = worth.is_fixed(estimate) or worth.is_one_wait(estimate)
        if level is Level.WARNING and is_small and acting.plays_first(script, finding.node):
            level, estimate = Level.NOTE, acting.EPISODES
        if level is Level.WARNING and worth.is_one_wait(estimate):
            asked = durations.why_one_wait_is_nothing if frequency is Frequency.STEP else durations.why_tenths_are_nothing
            if (long := asked(script)) is not None:
                estimate = Estimate(Worth.LOW, long)
        related = finding.related or _callers(script, finding.node, frequency)
        excerpt = [source.line_text(each) for each in range(line, min(end_line + 1, line + _EXCERPT_LINES))]
        return Diagnostic(
            path=path,
            line=line,
            column=column,
            end_line=end_line,
            end_column=end_column,
            code=rule.code,
            rule=rule.name,
            message=_one_line(finding.message),
            advice=_one_line(finding.advice),
            level=level,
            worth=estimate,
            cause=rule.cause(script, finding.node) if rule.cause is not None else "",
            frequency=frequency.name.lower(),
            related=tuple(_place(each) for each in related if not _is_dead(each, script)),
            fix=self._proposal(path, rule, finding.fix, level, script.options.torch),
            excerpt=tuple(excerpt) if max(map(len, excerpt)) <= _EXCERPT_WIDTH else (),
            case=finding.case,
            scope=_scope(source, finding.node),
            text=_text(source, finding.node, line),
            start=start,
            end=end,
        )

    def _proposal(
        self, path: Path, rule: Rule, fix: Fix | None, level: Level, torch: tuple[int, int] | None
    ) -> Proposal | None:
        return Proposal(fix.risk, fix.edits, self._withheld(path, rule, fix, level, torch)) if fix else None

    def _withheld(self, path: Path, rule: Rule, fix: Fix, level: Level, torch: tuple[int, int] | None) -> str:
        """Why the fix is only shown, or nothing."""
        own = self._nearest.of(path)
        if fix.since and fix.since > (torch or _OLDEST):
            known = f"the target is {_dotted(torch)}" if torch else "the target release is unknown"
            return f"needs torch {_dotted(fix.since)} or newer, and {known} (`--torch` sets it)"
        if not _is_fixable(rule, own):
            return f"{own.file} leaves it to you (`fixable` and `unfixable`)"
        if own.risk < fix.risk <= self.settings.risk:
            return f"{own.file} sets the risk to `{own.risk.name.lower()}`"
        if level is Level.NOTE and rule.code not in self._choice(own)[1]:
            return f"a note's fix is applied only when asked for: `--select {rule.code}`"
        return ""


class _Elsewhere:
    """The comments of files that are not checked, by which what a call reaches there is silenced at the call too."""

    def __init__(self, script: Script, registry: Registry) -> None:
        self._script, self._registry = script, registry
        self._known: dict[Path, Suppressions] = {}

    def silences(self, finding: Finding, rule: Rule) -> bool:
        """Whether all places of a finding in files that are not checked are silenced there."""
        places = [each for each in finding.related if self._is_out_of_check(each)]
        return bool(places) and all(
            self._of(each).silence(each.source.line(each.node), rule.code, rule.name) for each in places
        )

    def _is_out_of_check(self, related: Related) -> bool:
        other = self._script.program.reached(related.source.path)
        return other is not None and not self._script.is_reported(other)

    def _of(self, related: Related) -> Suppressions:
        path = related.source.path
        if path not in self._known:
            self._known[path] = Suppressions(related.source, self._registry)
        return self._known[path]


def _is_fixable(rule: Rule, settings: Settings) -> bool:
    """Whether the configuration lets the rule's fixes be written."""
    may = not settings.fixable or any(covers(word, rule.code, rule.name) for word in settings.fixable)
    return may and not any(covers(word, rule.code, rule.name) for word in settings.unfixable)


def _is_out_of_reach(finding: Finding, script: Script) -> bool:
    """Whether the script's code runs on no release that has the cure."""
    return finding.fix is not None and finding.fix.since is not None and not eras.can_run_on(script, finding.fix.since)


def _is_idle(finding: Finding, script: Script) -> bool:
    """Whether a line runs in no training worth the name: never, or for a handful of steps."""
    return script.loops.guards.never_runs(finding.node) or probes.is_tried_out(script, finding.node)


def _is_dead(related: Related, script: Script) -> bool:
    """Whether no run reaches another place of a finding."""
    other = script.program.reached(related.source.path)
    return other is not None and other.loops.guards.never_runs(related.node)


def _worth_nothing(rule: Rule, finding: Finding, script: Script) -> Estimate | None:
    """Why a finding gains nothing in the runs that are made, or None."""
    since = finding.since or rule.since or (finding.fix.since if finding.fix is not None else None)
    if since is not None and not eras.allows(script, since):
        return worth.TOO_NEW
    if since is not None and eras.is_told_older(script, since):
        return worth.TOLD_OLDER
    if rule.on_gpu and hosted.runs_on_host(script):
        return worth.ON_HOST
    if off.is_off(script, finding.node):
        return worth.OFF
    if not evaluation.trains_itself(script) and entry.is_of_self_test(script, finding.node):
        return worth.BY_ITSELF
    if script.frequency(finding.node) is Frequency.EVAL_STEP and evaluation.runs_once(script, finding.node):
        return worth.ONE_PASS
    ends = startable.why_not(script, finding.node)
    return Estimate(Worth.LOW, ends) if ends is not None else None


def look(rule: Rule, script: Script) -> Iterator[Finding]:
    """Everything one rule finds in one script."""
    for kind in rule.on if isinstance(rule.on, tuple) else (rule.on,):
        for node in script.loops.driven_nodes(kind) if rule.often else script.source.of(kind):
            yield from rule.check(node, script)


def _ignored(settings: Settings, path: Path) -> list[str]:
    """The codes and names that the settings ignore in this file."""
    if not settings.per_file_ignores:
        return []
    from pathspec import GitIgnoreSpec

    inside = os.path.relpath(path, settings.root)
    return [
        word
        for pattern, words in settings.per_file_ignores
        if GitIgnoreSpec.from_lines([pattern]).match_file(inside)
        for word in words
    ]


def _callers(script: Script, node: syntax.Node, frequency: Frequency) -> list[Related]:
    """The calls through which a line of a helper runs in each step."""
    if frequency not in FREQUENT:
        return []
    callers = script.loops.callers(node)[:_MOST_CALLERS]
    return [Related(other.source, call, f"called here, {_OFTEN[frequency]}") for other, call in callers]


def _calls_away(script: Script, lines: range) -> bool:
    """Whether some lines call what stands in another file that is asked for: what waits in it is told there, and at the call
    where this file is checked alone."""
    calls = (call for call in script.source.of(syntax.Call) if script.source.line(call) in lines)
    callees = (script.callee(call) for call in calls)
    return any(each is not None and each.script is not script and script.is_reported(each.script) for each in callees)


def _scope(source: Source, node: syntax.Node) -> str:
    """The dotted names of the classes and functions around a node."""
    around = (up for up in source.ancestors(node) if isinstance(up, (syntax.FunctionDef, syntax.ClassDef)))
    return ".".join(reversed([up.name.value for up in around]))


def _text(source: Source, node: syntax.Node, line: int) -> str:
    """An expression, or the first line of a statement, in one line; of a long one its digest stands for what is left out."""
    written = source.text(node) if isinstance(node, syntax.BaseExpression) else source.line_text(line)
    text = " ".join(written.split())
    return text if len(text) <= _TEXT_WIDTH else f"{text[:_TEXT_WIDTH]}... {digest(text.encode())[:_DIGITS]}"


def _place(related: Related) -> Place:
    source, line = related.source, related.source.line(related.node)
    if source.cells is None:
        return Place(source.path, line, related.message)
    cell, line = source.cells.place(line)
    return Place(source.path, line, related.message, cell)


def _in_cell(found: Diagnostic, cells: Cells | None) -> Diagnostic:
    """The finding with its place in its cell, where it is one of a notebook."""
    if cells is None:
        return found
    cell, line = cells.place(found.line)
    shift, start = found.line - line, cells.start(cell)
    return found._replace(
        cell=cell,
        line=line,
        end_line=found.end_line - shift,
        start=found.start - start,
        end=found.end - start,
        fix=found.fix and found.fix._replace(cells=tuple(_cell_of(each, cells) for each in found.fix.edits)),
    )


def _cell_of(edit: Edit, cells: Cells) -> tuple[int, int]:
    """The cell that an edit of a notebook's script changes, and the byte at which its code begins."""
    cell = cells.cell_at(edit.start)
    return cell, cells.start(cell)


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."


def _dotted(release: tuple[int, int]) -> str:
    return ".".join(map(str, release))


def _old_python(path: Path, script: Script) -> Iterator[str]:
    """What to say of a file that the Python it is written for alone can run."""
    line = eras.line_of_older_python(script)
    if line is not None:
        yield f"{path}:{line}: no Python since 3.7 runs this, where `async` is a keyword: write `non_blocking`"


def _rule_fault(code: str, path: Path, error: BaseException, foreign: Path | None) -> Problem:
    """A fault of a rule, of one of the user's where its file is ``foreign``."""
    if foreign is None:
        return _fault(code, path, error)._replace(is_partial=True)
    what = f"{code} failed ({_told(error)}); mend {foreign}, or leave it out (`--ignore {code}`); all else was done"
    return Problem(path, None, what, is_partial=True)


def _fault(where: str, path: Path, error: BaseException) -> Problem:
    """A fault of speedlint's own, in one line."""
    return Problem(path, None, f"internal error in {where} ({_told(error)}); please report it; all else was done")


def _told(error: BaseException) -> str:
    """An exception in one line; with SPEEDLINT_DEBUG set it is raised."""
    if os.environ.get("SPEEDLINT_DEBUG"):
        raise error
    return _one_line(f"{type(error).__name__}: {error}")
