"""SPD106 and SPD107 judge the program: what its other files compute in, and which of its settings are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from speedlint import run
from speedlint.config import Settings
from speedlint.registry import Registry

REGISTRY = Registry.load()
STEP = """
import torch

from choice import {what}

device = torch.device("cuda")
scaler = torch.amp.GradScaler("cuda"{enabled})


def train(model, optimizer, loader):
    for images, labels in loader:
        with torch.autocast("cuda", dtype={what}):
            loss = torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


if __name__ == "__main__":
    network = torch.nn.Linear(3, 3).to(device)
    train(network, torch.optim.SGD(network.parameters(), lr=0.1), [])
"""
LOCAL = STEP.replace("from choice import {what}", "what = {what}").replace("dtype={what}", "dtype=what")
EITHER = "torch.bfloat16 if len(input()) else torch.float16"
BY_GPU = "torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16"
OR_DEFAULT = LOCAL.replace("dtype=what", "dtype=what if torch.cuda.is_bf16_supported() else None")


def _found(folder: Path, code: str, **files: str) -> list[tuple[str, str]]:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    settings = Settings(folder, select=(code,), torch=(2, 13))
    report = run.merge(run.check([folder / f"{next(iter(files))}.py"], settings, REGISTRY))
    assert not report.problems
    return [(each.level.value, "fix" if each.fix else "shown") for each in report.diagnostics]


@pytest.mark.parametrize(
    ("what", "enabled", "expected"),
    [
        ("torch.bfloat16", "", [("warning", "fix")]),
        ("torch.float16", "", []),
        (EITHER, "", [("note", "shown")]),
        (EITHER, ", enabled=what == torch.float16", []),
        (BY_GPU, "", [("warning", "shown")]),
        (BY_GPU, ", enabled=what == torch.float16", []),
        ("getattr(torch, input())", "", []),
    ],
)
def test_a_scaler_beside_each_dtype(tmp_path: Path, what: str, enabled: str, expected: list[tuple[str, str]]) -> None:
    assert _found(tmp_path, "SPD107", train=LOCAL.format(what=what, enabled=enabled)) == expected


def test_a_scaler_where_the_gpu_decides_between_bfloat16_and_the_default(tmp_path: Path) -> None:
    train = OR_DEFAULT.format(what="torch.bfloat16", enabled="")
    assert _found(tmp_path, "SPD107", train=train) == [("warning", "shown")]


def test_another_file_that_computes_in_float16_needs_the_scaler(tmp_path: Path) -> None:
    train = LOCAL.format(what="torch.bfloat16", enabled="") + "\nimport other\n"
    assert not _found(tmp_path, "SPD107", train=train, other="def shrink(model):\n    return model.half()\n")
    other = 'import torch\n\n\ndef run(model, x):\n    with torch.autocast("cuda"):\n        return model(x)\n'
    assert not _found(tmp_path, "SPD107", train=train, other=other)


MATMUL = "torch.backends.cuda.matmul"
SETS = f"""
import torch

torch.nn.Linear(3, 3).cuda()
{MATMUL}.fp32_precision = "tf32"
"""


def test_the_old_setting_read_after_the_new_one_raises(tmp_path: Path) -> None:
    reads = f"print({MATMUL}.allow_tf32, torch.get_float32_matmul_precision())\n"
    assert _found(tmp_path, "SPD106", train=SETS + reads) == [("warning", "shown")] * 2
    assert not _found(tmp_path, "SPD106", train=SETS)
    assert not _found(tmp_path, "SPD106", train=SETS.replace('"tf32"', '"ieee"') + reads)
    assert not _found(
        tmp_path, "SPD106", train=reads.join(SETS.split("torch.nn")[:1]) + "torch.nn" + SETS.split("torch.nn")[1]
    )


def test_the_old_setting_in_another_file_is_no_reason_to_drop_the_new_one(tmp_path: Path) -> None:
    other = f"import torch\n\n{MATMUL}.allow_tf32 = True\n"
    assert _found(tmp_path, "SPD106", train="import other\n" + SETS, other=other) == [("note", "shown")]
