"""Loading, validating and choosing rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from speedlint.errors import UserError
from speedlint.registry import Registry, own_rules

RULE = '''"""{docs}"""
from speedlint.facts import syntax
from speedlint.rule import Rule

RULE = Rule({code!r}, on=syntax.Call, check=lambda call, script: iter(()), triggers={triggers}, off={off})
'''


def _rule(folder: Path, stem: str, code: str, *, docs: str = "Does.", triggers: str = "(b'x',)", off: bool = False) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{stem}.py"
    path.write_text(RULE.format(code=code, docs=docs, triggers=triggers, off=off))
    return path


def test_file_name_is_the_name_and_docstring_the_docs(tmp_path: Path) -> None:
    _rule(tmp_path / "family", "some_slow_thing", "ABC001", docs="Some thing.\\n\\n## What it does\\nIt.")
    found = Registry.load([tmp_path]).find("abc001")
    assert (found.name, found.docs) == ("some-slow-thing", "Some thing.\n\n## What it does\nIt.")


def test_own_rules_come_along_in_order(tmp_path: Path) -> None:
    _rule(tmp_path, "b", "ABC002")
    _rule(tmp_path, "a", "ABC003")
    (tmp_path / "_helper.py").write_text("raise ValueError")
    codes = [rule.code for rule in Registry.load([tmp_path]).rules]
    assert codes == sorted(codes)
    assert len(codes) == len(Registry.load().rules) + 2
    assert own_rules().name == "rules"


def test_own_rules_are_known_from_their_text_until_they_are_needed() -> None:
    registry = Registry.load()
    for rule in registry.rules:
        assert rule.on == (), f"{rule.name}: the code, the triggers and `off` must be written out, and `RULE` stand last"
        loaded = registry.loaded(rule)
        assert loaded.on
        assert loaded is registry.loaded(rule)
        for told in ("code", "triggers", "off", "name", "docs"):
            assert getattr(rule, told) == getattr(loaded, told), told


def test_rules_may_hold_dataclasses(tmp_path: Path) -> None:
    path = _rule(tmp_path, "a", "ABC001")
    text = "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass A:\n    b: int\n"
    path.write_text(text + path.read_text().split('"""')[2])
    assert Registry.load([tmp_path]).find("a").code == "ABC001"


@pytest.mark.parametrize(
    ("code", "triggers", "message"),
    [
        ("spd1", "(b'x',)", "the code `spd1` is not letters and three digits"),
        ("ABC001", "()", "ABC001 needs triggers"),
        ("ABC001", "(b'',)", "ABC001 needs triggers"),
        ("ABC001", "('x',)", "ABC001 needs triggers"),
        ("ABC001", "b'x'", "ABC001 needs triggers"),
    ],
)
def test_invalid_rules(tmp_path: Path, code: str, triggers: str, message: str) -> None:
    path = _rule(tmp_path, "a", code, triggers=triggers)
    with pytest.raises(UserError, match=f"{path}: {message}"):
        Registry.load([tmp_path])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "holds no `RULE"),
        ("RULE = 'SPD301'", "holds no `RULE"),
        ("1 / 0", r"cannot be loaded as a rule \(ZeroDivisionError: division by zero\)"),
        ("def", r"cannot be loaded as a rule \(SyntaxError"),
        ("raise SystemExit('bye')", r"cannot be loaded as a rule \(SystemExit: bye\)"),
    ],
)
def test_files_that_are_no_rules(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.py").write_text(text)
    with pytest.raises(UserError, match=message):
        Registry.load([tmp_path])


def test_duplicates(tmp_path: Path) -> None:
    _rule(tmp_path / "one", "a", "ABC001")
    _rule(tmp_path / "two", "b", "ABC001")
    with pytest.raises(UserError, match="two rules have the code `ABC001`"):
        Registry.load([tmp_path])
    _rule(tmp_path / "three", "a", "ABC002")
    with pytest.raises(UserError, match="two rules have the name `a`"):
        Registry.load([tmp_path / "one", tmp_path / "three"])


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no such folder of rules"):
        Registry.load([tmp_path / "missing"])


def test_choosing(tmp_path: Path) -> None:
    _rule(tmp_path, "slow_a", "ABC101")
    _rule(tmp_path, "slow_b", "ABC102")
    _rule(tmp_path, "slow_c", "ABC203", off=True)
    registry = Registry.load([tmp_path])

    def chosen(select: list[str], ignore: list[str]) -> list[str]:
        return [rule.code for rule in registry.choose(select, ignore) if rule.code.startswith("ABC")]

    assert chosen([], []) == ["ABC101", "ABC102"]
    assert chosen(["ABC"], ["ABC101"]) == ["ABC102"]
    assert chosen(["abc1"], ["slow-a"]) == ["ABC102"]
    assert chosen(["ABC2"], []) == []
    assert chosen(["ABC203"], []) == chosen(["slow-c"], []) == ["ABC203"]
    assert registry.named(["ABC1", "slow-c"]) == {"ABC203"}
    with pytest.raises(UserError, match=r"`slow_a` selects no rule \(did you mean `slow-a`\?\)"):
        registry.choose(["slow_a"], [])
    with pytest.raises(UserError, match=r"there is no rule `ABC1`"):
        registry.find("ABC1")
