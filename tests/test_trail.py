"""Which line of a file a line of its fixed text was."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from speedlint.trail import Change, Trail

BREAKS = st.sampled_from([b"\n", b"\r\n", b"\r"])


@given(
    st.lists(st.lists(st.sampled_from(["keep", "edit", "drop", "above", "wrap"]), min_size=1, max_size=8), max_size=3),
    BREAKS,
)
def test_a_line_is_found_through_all_that_was_written(turns: list[list[str]], newline: bytes) -> None:
    first = newline.join([b"same"] * 8)
    lines: list[tuple[bytes, int | None]] = [(b"same", number) for number in range(1, 9)]
    trail, now = Trail(), first
    for turn in turns:
        after: list[tuple[bytes, int | None]] = []
        changes, start, new = list[Change](), 0, 0
        for number, (text, was) in enumerate(lines):
            what = turn[number] if number < len(turn) else "keep"
            size = len(text) + (len(newline) if number < len(lines) - 1 else 0)
            written = {
                "edit": [(b"x" + text, was)],
                "drop": [],
                "above": [(b"new", None), (text, was)],
                "wrap": [(b"  " + text, was)],
            }
            if what == "drop" and number == len(lines) - 1:
                what = "keep"
            now_lines = written.get(what, [(text, was)])
            gone = size if what == "drop" else 0
            added = {"edit": 1, "above": len(b"new" + newline), "wrap": 2}.get(what, 0)
            if what != "keep":
                changes.append(Change(start, start + gone, new, new + added))
            after += now_lines
            start, new = start + size, new + size - gone + added
        text_after = newline.join(text for text, _ in after)
        trail.add(now, text_after, changes)
        now, lines = text_after, after
    for number, (_, was) in enumerate(lines, 1):
        if was is not None:
            assert trail.line(number, now, first) == was


def test_what_is_not_known_keeps_its_line() -> None:
    trail = Trail()
    trail.add(b"a", b"b", [Change(0, 1, 0, 1)])
    trail.add(b"b", b"a", [Change(0, 1, 0, 1)])
    assert (trail.line(7, b"a", b"c"), trail.line(7, b"d", b"a"), trail.line(1, b"b", b"a")) == (7, 7, 1)


def test_lines_of_what_was_written_anew_stay_within_it() -> None:
    trail, before, after = Trail(), b"a\nb\nc\n", b"a\nnew\nnewer\nnewest\nc\n"
    trail.add(before, after, [Change(2, 3, 2, len(after) - 3)])
    assert [trail.line(number, after, before) for number in range(1, 6)] == [1, 2, 2, 2, 3]
