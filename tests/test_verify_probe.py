"""The probe in older interpreters and with older releases of torch."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from speedlint.verify import runner

pytestmark = pytest.mark.usefixtures("uncompiled")

PROBE = Path(runner.__file__).parent / "probe"
TRAINING = """
    import json, sys
    import torch
    import torch.optim.optimizer
    del sys.modules["torch.optim.optimizer"].register_optimizer_step_post_hook  # torch 1.13 has none
    sys.path.insert(0, sys.argv[1])
    import speedlint_probe
    probe = speedlint_probe.arm(torch, json.loads(sys.argv[2]))
    model = torch.nn.Linear(4, 1)
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1), torch.optim.Adam(model.parameters())]
    for k in range(100):
        model(torch.randn(2, 4)).sum().backward()
        for optimizer in optimizers:
            optimizer.step()
"""


@pytest.mark.parametrize("path", sorted(PROBE.glob("*.py")), ids=lambda path: path.stem)
def test_the_probe_is_python_3_8(path: Path) -> None:
    ast.parse(path.read_text(), feature_version=(3, 8))


def test_steps_are_seen_where_torch_has_no_hook_for_optimizers(tmp_path: Path) -> None:
    settings = {
        "mode": "time",
        "steps": 12,
        "seconds": 0,
        "warmup": 2,
        "longest_warmup": 5,
        "turn": 0,
        "blocks": 1,
        "unit": "step",
    }
    text = json.dumps({**settings, "results": str(tmp_path)})
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(TRAINING))
    done = subprocess.run([sys.executable, str(script), str(PROBE), text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.glob("rank-*.json")
    result = json.loads(path.read_text())
    assert (result["clock"], result["optimizers"], result["ended"]) == ("optimizer", 2, "steps")
    assert len(result["steps"]) - result["warmup"] == 12


def test_a_thread_that_reads_ahead_adds_no_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PROBE))
    probing = importlib.import_module("speedlint_probe")
    settings = {"mode": "time", "steps": 3, "seconds": 0, "warmup": 1, "longest_warmup": 1, "blocks": 1}
    probe = probing.Probe({**settings, "results": str(tmp_path)}, torch)
    sampler = object()
    with pytest.raises(probing.Enough):
        for k in range(10):  # the training has caught up: two of its passes lie between two batches that are asked for
            probe.tape += [(sampler, 4 * k, 4 * k, None, 1), None, (sampler, 4 * k + 2, 4 * k + 2, None, 1), None]
            probe.ask(4.0 * k + 4, None, 0)
    assert len(probe.steps) - probe.warmup == 3


def test_where_no_step_was_measured_none_is_timed_by_the_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PROBE))
    settings = {"mode": "time", "steps": 3, "seconds": 0, "warmup": 1, "results": str(tmp_path)}
    probe = importlib.import_module("speedlint_probe").Probe(settings, torch)
    probe.steps, probe.waits, probe.warmup, probe.window, probe.cuda = [1.0], [0.0], 1, 0.5, True
    monkeypatch.setattr(probe.gpus, "used", [0])
    monkeypatch.setattr(probe.gpus, "synchronize", lambda: None)
    monkeypatch.setattr(probe.gpus, "describe", list)
    probe.write("steps")
    (path,) = tmp_path.glob("rank-*.json")
    assert json.loads(path.read_text())["gpu_steps"] is None


def test_losses_are_those_of_the_first_rank_without_a_launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PROBE))
    group = {"is_available": True, "is_initialized": True, "get_rank": 3, "get_world_size": 4}
    answers = {name: lambda answer=answer: answer for name, answer in group.items()}
    monkeypatch.setitem(sys.modules, "torch.distributed", SimpleNamespace(**answers))
    settings = {"mode": "loss", "steps": 2, "seconds": 0, "results": str(tmp_path)}
    importlib.import_module("speedlint_probe").Probe(settings, torch).write("steps")
    (path,) = tmp_path.glob("rank-*.json")
    assert json.loads(path.read_text())["rank"] == 3
