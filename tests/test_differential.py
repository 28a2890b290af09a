"""benchmarks/differential.py: the trainings that it composes, how it runs and judges them, and a sample of its run."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.trainings import judge
from benchmarks.trainings.compose import compose
from speedlint.rule import Risk
from tests.conftest import ROOT

SPAWNED = """
from torch.utils.data import DataLoader, Dataset

LEVEL = 1


class Levels(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return LEVEL


if __name__ == "__main__":
    LEVEL = 2
    print([batch.tolist() for batch in DataLoader(Levels(), batch_size=2, num_workers=1)])
"""
HALVED = """
import torch

layer = torch.nn.Linear(4, 4).to("cuda")
with torch.autocast("cuda", dtype=torch.float16):
    out = layer(torch.ones(2, 4).cuda())
    print(out.dtype, out.softmax(1).dtype, out.is_cuda, torch.cuda.is_available())
    try:
        torch.linalg.inv(out[:2, :2])
    except RuntimeError as error:
        print(error)
"""
RUN = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from benchmarks.trainings import execute
execute.prepare()
for way in WAYS:
    ran = execute.execute({{"main.py": SCRIPT.encode()}}, way)
    print(ran.status, ran.output.strip() or ran.errors)
"""


def ran(script: str, ways: str, folder: Path) -> list[str]:
    """What a script prints in each way, with its exit status, from a process of its own."""
    (folder / "run.py").write_text(f"SCRIPT = {script!r}\n" + RUN.replace("WAYS", ways))
    done = subprocess.run([sys.executable, "run.py"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_composed_once() -> None:
    for seed in range(300):
        training = compose(seed)
        assert training == compose(seed)
        for text in training.files.values():
            ast.parse(text)


def test_composed_of_all() -> None:
    """Few trainings are alike, and no part is left out for long."""
    trainings = [compose(seed) for seed in range(300)]
    assert len({training.files["main.py"] for training in trainings}) == 300
    used = {part for training in trainings for part in training.parts}
    assert len(used) > 250
    assert sum(len(training.files) > 1 for training in trainings) > 40
    assert 0.1 < sum(training.needs_cuda for training in trainings) / 300 < 0.6


def test_spawned_workers(tmp_path: Path) -> None:
    """Workers that begin with nothing import the script, whose guarded lines they do not run."""
    assert ran(SPAWNED, "(execute.Way(), execute.Way(spawn=True))", tmp_path) == ["0 [[2, 2], [2, 2]]", "0 [[1, 1], [1, 1]]"]


def test_emulated_gpu(tmp_path: Path) -> None:
    lines = ran(HALVED, "(execute.Way(gpu=True),)", tmp_path)
    assert lines == [
        "0 torch.float16 torch.float32 True True",
        'emulated GPU: "linalg_inv" not implemented for half precision',
    ]


SAME = "loss 1.25 rows 64\n[weights.pt] 0.5"
JUDGED = {
    "the same": (SAME, {"SPD205"}, Risk.EXACT, ""),
    "exact and rounded": (SAME.replace("1.25", "1.2500001"), {"SPD205"}, Risk.EXACT, "exact, but"),
    "rounded": (SAME.replace("1.25", "1.2500001"), {"SPD301"}, Risk.NUMERIC, ""),
    "rounded in text": (SAME.replace("loss 1.25", "loss tensor(1.25)"), {"SPD301"}, Risk.NUMERIC, "other text"),
    "rounded far": (SAME.replace("1.25", "1.3"), {"SPD301"}, Risk.NUMERIC, "numbers differ"),
    "trained otherwise": (SAME.replace("0.5", "0.6"), {"SPD301"}, Risk.NUMERIC, "the same training, but"),
    "another stream": (SAME.replace("1.25", "1.3"), {"SPD203"}, Risk.NUMERIC, ""),
    "rows lost": (SAME.replace("64", "32"), {"SPD203"}, Risk.NUMERIC, "whatever the random numbers"),
    "another stream far": (SAME.replace("1.25", "9.0"), {"SPD203"}, Risk.NUMERIC, "far from"),
    "less shown": ("[weights.pt] 0.5", {"SPD303"}, Risk.BEHAVIOR, ""),
    "less shown, trained otherwise": ("[weights.pt] 0.6", {"SPD303"}, Risk.BEHAVIOR, "the same training, but"),
    "a step skipped by a scaler": (SAME.replace("64", "63"), {"SPD101"}, Risk.NUMERIC, ""),
}


@pytest.mark.parametrize(("after", "codes", "risk", "says"), JUDGED.values(), ids=JUDGED)
def test_judged(after: str, codes: set[str], risk: Risk, says: str) -> None:
    others = [SAME.replace("1.25", f"1.{digit}").replace("0.5", f"0.5{digit}") for digit in range(1, 10)]
    found = judge.difference(SAME, after, codes, risk, lambda count: others[:count])
    assert says in found if says else not found


def test_judged_by_signs() -> None:
    """Where a tensor's numbers stand says nothing: they are compared with those of each seed, whatever their signs."""
    before, after = "tensor([ 0.1000, -0.2000])", "tensor([-0.1500,  0.1800])"
    others = ["tensor([ 0.1200, -0.1500])", "tensor([-0.1300,  0.1700])"] * 5
    for codes in ({"SPD203"}, {"SPD101"}):
        assert not judge.difference(before, after, codes, Risk.NUMERIC, lambda count: others[:count])
    lost = judge.difference(before, "tensor([-0.1500])", {"SPD203"}, Risk.NUMERIC, lambda count: others[:count])
    assert "other text" in lost
    switched = after.replace("]", "], dtype=torch.float16")
    assert not judge.difference(before, switched, {"SPD108"}, Risk.NUMERIC, lambda count: others[:count])


@pytest.mark.parametrize("count", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_sample(tmp_path: Path, count: int) -> None:
    """None of a few trainings breaks, and fixes are written into them."""
    report = tmp_path / "report.json"
    options = ("--count", str(count), "--seed", "9000", "--jobs", "2", "--json", str(report))
    command = [sys.executable, str(ROOT / "benchmarks" / "differential.py"), *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(report.read_text())
    assert found["trainings"] == count and not found["broken"]
    assert sum(found["written"].values()) > 5 * count and found["runs"] > 5 * count
