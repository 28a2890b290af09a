"""A project's own C++ and CUDA extensions bound the torch release that its training can run on."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TRAIN = """
import torch
from ops.rois import pooled

model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.Adam(model.parameters())
for x, y in torch.utils.data.DataLoader(torch.load("rows.pt"), num_workers=4):
    loss = (model(pooled(x.cuda())) - y.cuda()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
SETUP = """
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(name="rois", ext_modules=[CUDAExtension("rois_cuda", ["src/rois.cpp"])], cmdclass={"build_ext": BuildExtension})
"""
CHECKS = "#define CHECK_CUDA(x) AT_CHECK(x.type().is_cuda(), #x)\n"


@pytest.mark.parametrize(
    ("files", "is_old"),
    [
        ({"ops/setup.py": SETUP, "ops/src/rois.cpp": CHECKS}, True),
        ({"ops/setup.py": SETUP, "ops/src/rois.cu": "#include <THC/THC.h>\n"}, True),
        ({"ops/setup.py": SETUP, "ops/src/rois.cpp": f"#define AT_CHECK TORCH_CHECK\n{CHECKS}"}, False),
        ({"ops/setup.py": SETUP, "ops/src/rois.cpp": CHECKS.replace("AT_CHECK", "TORCH_CHECK")}, False),
        ({"ops/src/rois.cpp": CHECKS}, False),
        ({"other/setup.py": SETUP, "other/src/rois.cpp": CHECKS}, False),
    ],
)
def test_what_an_extension_calls_bounds_the_release(project: Project, files: dict[str, str], is_old: bool) -> None:
    """The fused update of 2.0 is nothing for what does not build since 1.5."""
    project.configure("select = ['SPD502']\n")
    project.write("ops/rois.py", "import rois_cuda\n\n\ndef pooled(x):\n    return rois_cuda.pool(x)\n")
    for path, text in files.items():
        project.write(path, text)
    assert bool(project.findings(project.write("train.py", TRAIN))) is not is_old
