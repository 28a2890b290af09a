"""The fixer with toy rules that are a regular expression and its replacement."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from speedlint import writing
from speedlint.fixer import Applied, Candidate, Outcome, Read, Result, fix_files, write_all
from speedlint.rule import Edit, Risk

Toy = Callable[[Path, str], list[list[Edit]]]


def swap(pattern: str, text: str) -> Toy:
    """A rule that replaces each match of ``pattern`` by ``text``, each match a fix of its own."""

    def look(path: Path, content: str) -> list[list[Edit]]:
        return [[Edit(path, *match.span(), text)] for match in re.finditer(pattern, content)]

    return look


def proposer(**rules: Toy) -> Callable[[Read, Path, str | None], Sequence[Candidate]]:
    def propose(read: Read, path: Path, code: str | None) -> Sequence[Candidate]:
        content = read(path).decode()
        return [
            Candidate(Applied(path, 1, name, name.lower(), Risk.EXACT, content[edits[0].start : edits[0].end]), tuple(edits))
            for name, look in rules.items()
            if code in (None, name)
            for edits in look(path, content)
        ]

    return propose


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "train.py"


def fix(file: Path, content: str, **rules: Toy) -> Result:
    file.write_bytes(content.encode())
    result = fix_files([file], proposer(**rules))
    assert file.read_bytes() == content.encode()
    return result


def after(result: Result) -> str:
    (outcome,) = result.outcomes
    return outcome.after.decode()


def test_rules_are_applied_one_after_the_other_until_nothing_changes(file: Path) -> None:
    result = fix(file, "one = 1\n", B=swap("two", "three"), A=swap("one", "two"))
    assert after(result) == "three = 1\n"
    assert [applied.code for applied in result.applied] == ["A", "B"]
    assert not result.problems


def test_what_an_early_rule_undoes_for_a_later_one_is_found_in_the_next_round(file: Path) -> None:
    assert after(fix(file, "b = 1\n", A=swap("c", "d"), B=swap("b", "c"))) == "d = 1\n"


def test_a_clean_file_is_looked_at_once(file: Path) -> None:
    looks: list[str] = []

    def look(path: Path, content: str) -> list[list[Edit]]:
        looks.append(content)
        return []

    assert not fix(file, "x = 1\n", A=look).outcomes
    assert len(looks) == 1


def test_the_same_reader_returns_the_same_bytes(file: Path) -> None:
    seen: dict[Read, bytes] = {}
    look = proposer(A=swap("one", "two"), B=swap("two", "three"))

    def propose(read: Read, path: Path, code: str | None) -> Sequence[Candidate]:
        assert all(earlier(path) == data for earlier, data in seen.items())
        seen[read] = read(path)
        return look(read, path, code)

    file.write_text("one = 1\n")
    fix_files([file], propose)
    assert len(set(seen.values())) == 3


def test_touching_fixes_are_applied_in_turn(file: Path) -> None:
    lines = "".join(f"drop({number})\n" for number in range(20))
    result = fix(file, f"{lines}keep = 1\n", A=swap(r"drop\(\d+\)\n", ""))
    assert after(result) == "keep = 1\n"
    assert len(result.applied) == 20


def test_many_fixes_at_one_place_all_come_in(file: Path) -> None:
    def hoist(path: Path, content: str) -> list[list[Edit]]:
        found = re.finditer(r"^ ( *move\((\d+)\)\n)", content, re.MULTILINE)
        return [[Edit(path, 0, 0, match[1].strip() + "\n"), Edit(path, match.start(), match.end(), "")] for match in found]

    body = "".join(f"    move({number})\n" for number in range(15))
    result = fix(file, f"move = print\nfor x in []:\n    pass\n{body}", A=hoist)
    assert not result.problems
    assert sorted(re.findall(r"^move\((\d+)\)$", after(result), re.MULTILINE), key=int) == [str(each) for each in range(15)]
    assert after(result).endswith("pass\n")


def test_identical_edits_of_two_fixes_are_written_once(file: Path) -> None:
    def look(path: Path, content: str) -> list[list[Edit]]:
        return [[Edit(path, 0, 0, "import os\n"), Edit(path, *match.span(), "os")] for match in re.finditer("slow", content)]

    assert after(fix(file, "slow = 1\nslow = 2\n", A=look)) == "import os\nos = 1\nos = 2\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("(", "line 1 of the result"),
        ("return 1", "line 1 of the result"),
        ("missing(1)", "`missing`"),
    ],
)
def test_a_fix_that_breaks_the_file_is_not_applied_and_its_rule_named(file: Path, text: str, why: str) -> None:
    result = fix(file, "bad = 1\ngood = 1\n", A=swap("bad = 1", text), B=swap("good", "better"))
    assert after(result) == "bad = 1\nbetter = 1\n"
    (problem,) = result.problems
    assert problem.path == file
    assert why in str(problem)
    assert "A (a)" in str(problem)
    assert "\n" not in str(problem)


def test_names_that_were_already_unbound_are_no_fault(file: Path) -> None:
    assert after(fix(file, "unknown(slow)\n", A=swap("slow", "unknown"))) == "unknown(unknown)\n"


def test_names_bound_elsewhere_in_the_file_are_seen_by_scope(file: Path) -> None:
    content = "def f():\n    local = 1\n    return local\n\n\nslow = 1\n"
    result = fix(file, content, A=swap("slow = 1", "slow = local"))
    assert not result.outcomes
    assert "`local`" in str(result.problems[0])


def test_a_rule_that_does_not_settle_is_undone_and_named(file: Path) -> None:
    result = fix(file, "x = 1\ngood = 1\n", A=swap("x", "xx"), B=swap("good", "better"))
    assert after(result) == "x = 1\nbetter = 1\n"
    assert "does not settle" in str(result.problems[0])


def test_a_rule_that_always_finds_more_is_undone(file: Path) -> None:
    def grow(path: Path, content: str) -> list[list[Edit]]:
        return [[Edit(path, len(content), len(content), f"x{len(content)} = 1\n")]]

    result = fix(file, "x = 1\n", A=grow)
    assert not result.outcomes
    assert "does not settle" in str(result.problems[0])


def test_rules_that_undo_each_other_are_undone_and_both_named(file: Path) -> None:
    result = fix(file, "a = 1\n", A=swap("a", "b"), B=swap("b", "a"), C=swap("1", "2"))
    assert not result.outcomes
    assert not result.applied
    assert {problem.what.split()[3] for problem in result.problems} == {"A", "B"}


def test_a_fix_that_overlaps_itself_is_refused(file: Path) -> None:
    result = fix(file, "abcd = 1\n", A=lambda path, content: [[Edit(path, 0, 3, "x"), Edit(path, 2, 4, "y")]])
    assert not result.outcomes
    assert "overlap" in str(result.problems[0])


def test_a_fix_over_two_files_is_applied_whole_or_not_at_all(tmp_path: Path) -> None:
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_text("slow = 1\n")

    def both(path: Path, content: str) -> list[list[Edit]]:
        if "slow" not in content or path != one:
            return []
        return [[Edit(one, 0, 4, "fast"), Edit(two, 0, 4, "fast")]]

    two.write_text("slow = 2\n")
    result = fix_files([one], proposer(A=both))
    assert [(outcome.path, outcome.after) for outcome in result.outcomes] == [(one, b"fast = 1\n"), (two, b"fast = 2\n")]
    assert len(result.applied) == 1
    two.write_text("slow = = 2\n")
    assert not fix_files([one], proposer(A=both)).outcomes
    two.write_text("(slow)\n")
    result = fix_files([one], proposer(A=both))
    assert not result.outcomes
    assert [problem.path for problem in result.problems] == [two]


def test_what_a_fix_leaves_to_fix_in_another_file_is_found(tmp_path: Path) -> None:
    one, two, far = (tmp_path / f"{name}.py" for name in ("one", "two", "far"))
    for path in (one, two, far):
        path.write_text("slow = 1\n")
    looked: list[Path] = []

    def propose(read: Read, path: Path, code: str | None) -> list[Candidate]:
        looked.append(path)
        is_due = path == one or read(one) == b"fast = 1\n"
        edits = (Edit(path, 0, 4, "fast"),) if is_due and read(path).startswith(b"slow") else ()
        return [Candidate(Applied(path, 1, "A", "a", Risk.EXACT, "slow"), edits)] if edits else []

    result = fix_files([one], propose, around=lambda _read, path: (path, two), beside=[two, far])
    assert [outcome.path for outcome in result.outcomes] == [one, two]
    assert far not in looked


def test_two_spellings_of_a_path_are_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.py").write_text("slow = 1\n")

    def look(path: Path, content: str) -> list[list[Edit]]:
        return [[Edit(path.absolute(), 0, 4, "fast")]] if content.startswith("slow") else []

    (outcome,) = fix_files([Path("a.py")], proposer(A=look)).outcomes
    assert (outcome.path, outcome.after) == (Path("a.py"), b"fast = 1\n")


def test_a_file_python_itself_refuses_is_still_fixed(file: Path) -> None:
    content = "slow = 1\nreturn slow\n"
    assert after(fix(file, content, A=swap("slow", "fast"))) == "fast = 1\nreturn fast\n"


def test_byte_order_mark_line_breaks_and_missing_last_newline_stay(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbfx = 1\r\nslow = 2\r\n# end")

    def look(read: Read, path: Path, code: str | None) -> Sequence[Candidate]:
        at = read(path).find(b"slow")
        what = Applied(path, 2, "A", "a", Risk.EXACT, "slow")
        return [Candidate(what, (Edit(path, at, at + 4, "fast = 1\nfaster"),))] if at >= 0 else []

    (outcome,) = fix_files([file], look).outcomes
    assert outcome.after == b"\xef\xbb\xbfx = 1\r\nfast = 1\r\nfaster = 2\r\n# end"


def outcome(path: Path, before: bytes, changed: bytes, *fixes: str) -> Outcome:
    return Outcome(path, before, changed, tuple(Applied(path.parent, 1, fix, fix, Risk.EXACT, fix) for fix in fixes))


@pytest.fixture
def three(tmp_path: Path) -> list[Outcome]:
    """Three changed files; the first two share a fix."""
    outcomes = [
        outcome(tmp_path / "a.py", b"a", b"A", "shared"),
        outcome(tmp_path / "b.py", b"b", b"B", "shared"),
        outcome(tmp_path / "c.py", b"c", b"C", "own"),
    ]
    for each in outcomes:
        each.path.write_bytes(each.before)
    return outcomes


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_files_are_written_with_their_mode(three: list[Outcome], tmp_path: Path) -> None:
    three[0].path.chmod(0o755)
    assert write_all(three) == []
    assert contents(tmp_path) == {"a.py": b"A", "b.py": b"B", "c.py": b"C"}
    assert three[0].path.stat().st_mode & 0o777 == 0o755


def test_a_symbolic_link_stays_and_its_target_is_written(tmp_path: Path) -> None:
    target, link = tmp_path / "target.py", tmp_path / "link.py"
    target.write_bytes(b"a")
    link.symlink_to(target)
    assert write_all([outcome(link, b"a", b"A")]) == []
    assert link.is_symlink()
    assert target.read_bytes() == b"A"


def test_a_file_that_changed_on_disk_is_left_with_those_that_share_its_fix(three: list[Outcome], tmp_path: Path) -> None:
    three[1].path.write_bytes(b"new")
    problems = write_all(three)
    assert contents(tmp_path) == {"a.py": b"a", "b.py": b"new", "c.py": b"C"}
    assert [problem.path.name for problem in problems] == ["b.py", "a.py"]
    assert "changed on disk" in str(problems[0])
    assert "shares a fix" in str(problems[1])


def test_a_file_that_is_gone_is_one_clear_line(three: list[Outcome], tmp_path: Path) -> None:
    three[2].path.unlink()
    (problem,) = write_all(three)
    assert "c.py: cannot be written (No such file or directory)" in str(problem)
    assert contents(tmp_path) == {"a.py": b"A", "b.py": b"B"}


def test_a_read_only_file_is_left(three: list[Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "c.py")
    (problem,) = write_all(three)
    assert "read-only" in str(problem)
    assert contents(tmp_path) == {"a.py": b"A", "b.py": b"B", "c.py": b"c"}


def test_a_full_disk_leaves_originals_and_no_remains(
    three: list[Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def fsync(handle: int) -> None:
        calls.append(handle)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    problems = write_all(three)
    assert "b.py: cannot be written (No space left on device)" in str(problems[0])
    assert contents(tmp_path) == {"a.py": b"a", "b.py": b"b", "c.py": b"C"}


def test_ctrl_c_while_writing_leaves_originals_and_no_remains(
    three: list[Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def fsync(handle: int) -> None:
        calls.append(handle)
        if len(calls) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(KeyboardInterrupt):
        write_all(three)
    assert contents(tmp_path) == {"a.py": b"a", "b.py": b"b", "c.py": b"c"}


@pytest.mark.parametrize("error", [KeyboardInterrupt(), PermissionError(13, "Permission denied")])
def test_an_end_between_two_files_of_one_fix_takes_the_first_back(
    error: BaseException, three: list[Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = writing.Replacement.commit

    def fail_at_second(self: writing.Replacement) -> None:
        if self.target.name == "b.py":
            raise error
        commit(self)

    monkeypatch.setattr(writing.Replacement, "commit", fail_at_second)
    if isinstance(error, KeyboardInterrupt):
        with pytest.raises(KeyboardInterrupt):
            write_all(three)
        assert contents(tmp_path) == {"a.py": b"a", "b.py": b"b", "c.py": b"c"}
    else:
        assert [problem.path.name for problem in write_all(three)] == ["b.py", "a.py"]
        assert contents(tmp_path) == {"a.py": b"a", "b.py": b"b", "c.py": b"C"}
