"""The numbers of docs/trust.md are those of the verdicts under benchmarks/reviews."""

from __future__ import annotations

import json
import re

import pytest

from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "trust.md").read_text()
DRAWS = re.findall(r"^\| (\d+)(?:, [^|]*)? \| \w+ \| (\d+) \| (\d+) \| ?(\d*) \| (\d+) \|$", PAGE, re.MULTILINE)
NEWEST = re.findall(
    r"^\| (?:70|4\d|3\d) (?:repositories [^|]*|others|more|better[^|]*|of [^|]*) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$",
    PAGE,
    re.MULTILINE,
)


def counted(number: int) -> dict[str, int]:
    """How many findings of a draw have each verdict, and how many it was drawn from."""
    review = json.loads((ROOT / "benchmarks" / "reviews" / f"draw-{number}.json").read_text())
    verdicts = [finding["verdict"] for finding in review["findings"]]
    return {"from": review["drawn_from"], "all": len(verdicts)} | {
        verdict: verdicts.count(verdict) for verdict in ("right", "worthless", "wrong")
    }


def test_all_draws_are_told() -> None:
    assert [int(number) for number, *_ in DRAWS] == [*range(1, 11), *range(12, 26)]
    assert len(NEWEST) == 20


@pytest.mark.parametrize("row", DRAWS, ids=lambda row: f"draw-{row[0]}")
def test_a_draw(row: tuple[str, ...]) -> None:
    drawn, right, worthless, wrong = (int(cell or 0) for cell in row[1:])
    found = counted(int(row[0]))
    assert (drawn, right, worthless, wrong) == (found["all"], found["right"], found["worthless"], found["wrong"])


@pytest.mark.parametrize(("number", "row"), list(zip((11, *range(26, 45)), NEWEST, strict=True)))
def test_the_newest_draws(number: int, row: tuple[str, ...]) -> None:
    found = counted(number)
    assert [int(cell) for cell in row] == [found["from"], found["right"], found["worthless"], found["wrong"]]


def test_the_readme_says_the_same() -> None:
    unseen, before = counted(44), counted(43)
    said = f"{unseen['wrong']} of {unseen['all']} findings were wrong, and {unseen['worthless']} were true and worth little"
    said += f"; in the draw before {before['wrong']} and {before['worthless']} of {before['all']}"
    assert said in " ".join((ROOT / "README.md").read_text().split())


def _listed(number: int) -> list[int]:
    """How many slow lines a list has, and how many were told as warnings and as notes, before and after."""
    review = json.loads((ROOT / "benchmarks" / "reviews" / f"missed-{number}.json").read_text())
    counted = [each for file in review["files"] for each in file["slowdowns"] if each["counted"]]
    told = ([each[when] for each in counted].count(level) for when in ("before", "after") for level in ("warning", "note"))
    return [len(counted), *told]


def test_what_was_missed_of_lists_made_before() -> None:
    text = " ".join(PAGE.split())
    count, *told = _listed(3)
    assert f"{count} slow lines before it was run: {told[0]} were told as warnings and {told[1]} as notes" in text
    assert f"{told[2]} and {told[3]} after what was mended since" in text
    count, *told = _listed(4)
    assert f"listed {count}: {told[0]} were told as warnings and {told[1]} as notes, {told[2]} and {told[3]} after" in text
    count, *told = _listed(9)
    assert f"{count} lines: {told[0]} were told as warnings and {told[1]} as notes, {told[2]} and {told[3]} after" in text
    count, *told = _listed(12)
    assert (
        f"{count} lines (`benchmarks/reviews/missed-12.json`): {told[0]} were told as warnings and {told[1]} as notes"
        in text
    )
    assert f"{told[2]} and {told[3]} after what was mended by them" in text
    count, *told = _listed(13)
    assert f"{count} lines (`benchmarks/reviews/missed-13.json`" in text
    assert (
        f"{told[0]} were told as warnings and {told[1]} as notes, {told[2]} and {told[3]} after what was mended by" in text
    )
    count, *told = _listed(14)
    assert f"{count} lines (`benchmarks/reviews/missed-14.json`, by readers" in text
    assert f"{told[0]} were told as warnings and {told[1]} as notes, {told[2]} and {told[3]} after what was mended" in text
    count, *told = _listed(15)
    assert (
        f"{count} lines (`benchmarks/reviews/missed-15.json`): {told[0]} were told as warnings and {told[1]} as notes"
        in text
    )
    assert f"{told[2]} and {told[3]} after what was mended by them. In 16 files of 39 more" in text
    count, *told = _listed(16)
    assert (
        f"{count} lines (`benchmarks/reviews/missed-16.json`): {told[0]} were told as warnings and {told[1]} as notes"
        in text
    )
    assert f"{told[2]} and {told[3]} after: an agent that Hydra makes" in text
    endings = {
        17: " after what was mended by them. In 18 files",
        18: " after: batches that a generator",
        19: " after: a package's network",
        20: " after: the bounds of scenes",
        21: " after: devices that a module",
        22: " after: what comes next by",
        23: " after: parts of a batch that",
        24: " after: losses of networks",
        25: " after: methods that several",
        26: " after: what makes an object",
        27: " after: steps of methods",
    }
    for number, after in endings.items():
        count, *told = _listed(number)
        assert f"{count} lines (`benchmarks/reviews/missed-{number}.json`" in text
        assert f"{told[0]} were told as warnings and {told[1]} as notes, {told[2]} and {told[3]}{after}" in text
    count, *told = _listed(5)
    assert f"listed {count} slow lines, of the kind that is labelled by hand: {told[0]} were told as warnings" in text
    assert f"and {told[1]} as notes, {told[2]} and {told[3]} after what was mended since" in text


@pytest.mark.parametrize("number", [*range(19, 23), *range(24, 45)])
def test_what_would_be_labelled(number: int) -> None:
    review = json.loads((ROOT / "benchmarks" / "reviews" / f"draw-{number}.json").read_text())
    verdicts = [finding["by_labels"] for finding in review["findings"]]
    right, worthless, wrong = (verdicts.count(each) for each in ("right", "worthless", "wrong"))
    drawn = f"{number}" if len(verdicts) == 100 else f"{number}, of {len(verdicts)}"
    assert f"| {drawn} | {review['commit'][:7]} | {right} | {worthless} | {wrong} |" in PAGE


def test_what_waited_on_a_gpu() -> None:
    told = json.loads((ROOT / "benchmarks" / "results" / "waits-h200.json").read_text())
    ran = sum(each["ran"] for each in told["findings"].values())
    assert ran == sum(each["waited"] for each in told["findings"].values())
    assert f"All {ran} findings of nine rules about waits" in PAGE and len(told["findings"]) == 9
    assert (
        f"Of {told['lines']['waited_whenever_they_ran']} lines that waited each time they ran, {told['lines']['found']} "
        in PAGE
    )
    assert len(told["scripts"]) == 165
