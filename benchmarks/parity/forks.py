"""Runs of verify's losses in forks of this process, which has imported torch: a tenth of a second in place of two.

The probe, its settings and what is read from its results are verify's own; only the start of the process is not.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import runpy
import signal
import sys
import time
import traceback
from pathlib import Path

import torch
import torch._dynamo  # optimizers import it with their first step

from speedlint.verify import runner
from speedlint.verify.plan import Version
from speedlint.verify.runner import Mode, Runner
from speedlint.verify.samples import Sample, read

PROBE = Path(runner.__file__).parent / "probe"


class Forks(Runner):
    """A runner for scripts that need no arguments, no launcher and one process."""

    def run(self, version: Version, mode: Mode = runner.TIMED, within: float = math.inf) -> Sample:
        """One run of one version, to its end."""
        self._count += 1
        folder = self._copy(version)
        results = self.scratch.empty(f"run{self._count}")
        settings = self._settings(mode, results, 0.0, 1, version, folder)
        began = time.monotonic()
        child = os.fork()
        if child == 0:
            _train(folder, version.command.target, settings)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        sample = read(results, version.name, time.monotonic() - began, str(results / "output.txt"), self.limits.warmup)
        self.environment = sample.environment or self.environment
        if status:
            raise RuntimeError(f"{version.name}: exit code {status}: {(results / 'output.txt').read_text()[-2000:]}")
        self.scratch.remove(results.name)
        return sample


def _train(folder: Path, script: str, settings: Path) -> None:
    """In the fork: runs the script under the probe, and leaves."""
    signal.alarm(300)
    code = 1
    output = os.open(settings.parent / "output.txt", os.O_WRONLY | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    try:
        os.chdir(folder)
        sys.path[:0] = [str(folder), str(PROBE)]
        speedlint_probe = importlib.import_module("speedlint_probe")
        torch.set_num_threads(1)
        probe = speedlint_probe.arm(torch, json.loads(settings.read_text()))
        try:
            runpy.run_path(script, run_name="__main__")
            probe.write("script")
            code = 0
        except speedlint_probe.Enough:
            code = 0
    except BaseException:  # whatever the script raises: nothing of it may reach the parent's code
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
