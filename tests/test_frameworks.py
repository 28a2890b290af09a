"""Rules on frameworks: what a project requires, and how it is launched, decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from speedlint import requirements
from speedlint.config import Settings
from speedlint.diagnostic import Diagnostic
from speedlint.engine import Engine
from speedlint.registry import Registry

REGISTRY = Registry.load()
TRAINS = """\
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments

def main(name, data):
    model = AutoModelForSequenceClassification.from_pretrained(name)
    args = TrainingArguments("out"{options})
    Trainer(model, args, train_dataset=data).train()
"""
READS = """\
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments
from PIL import Image

class Photos(Dataset):
    def __getitem__(self, index):
        return {"pixel_values": Image.open("a.jpg").resize((8, 8))}

def main(model):
    args = TrainingArguments("out", dataloader_num_workers=4, fp16=True)
    Trainer(model, args, train_dataset=Photos()).train()

if __name__ == "__main__":
    main(None)
"""


def _found(folder: Path, text: str, code: str, **files: str) -> list[Diagnostic]:
    (folder / "train.py").write_text(text)
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_text(content)
    settings = Settings(folder, select=(code,), torch=(2, 2))
    return list(Engine(settings, REGISTRY).check(folder / "train.py").diagnostics)


@pytest.mark.parametrize(
    ("requirement", "first_not_allowed"),
    [
        ("transformers<5", (5, 0)),
        ("transformers>=4.30,<4.50", (4, 50)),
        ("transformers==4.36.2", (4, 37)),
        ("transformers==4.*", (5, 0)),
        ("transformers~=4.36", (5, 0)),
        ("transformers~=4.36.1", (4, 37)),
        ("transformers<=4.40", (4, 41)),
        ("transformers<4.31.1", (4, 32)),
        ("transformers>=4.30", None),
        ("transformers!=4.30", None),
        ("transformers", None),
    ],
)
def test_upper_bound(requirement: str, first_not_allowed: tuple[int, int] | None) -> None:
    assert requirements.upper_bound(requirement) == first_not_allowed


def test_a_model_is_in_full_precision_where_the_release_makes_it_so(tmp_path: Path) -> None:
    text = TRAINS.format(options="")
    assert [each.level.value for each in _found(tmp_path, text, "SPD801")] == ["note"]
    (found,) = _found(tmp_path, text, "SPD801", requirements_txt="transformers==4.40.0\n")
    assert found.level.value == "warning"
    assert found.fix is not None


@pytest.mark.parametrize(
    ("option", "before", "level"),
    [
        (', evaluation_strategy="epoch"', "", "warning"),
        (', eval_strategy="epoch"', "", "note"),
    ],
)
def test_code_that_release_5_refuses_is_for_an_older_one(tmp_path: Path, option: str, before: str, level: str) -> None:
    (found,) = _found(tmp_path, before + TRAINS.format(options=option), "SPD801")
    assert (found.level.value, found.fix) == (level, None)


def test_an_old_trainer_that_is_kept_from_the_gpu_is_no_finding(tmp_path: Path) -> None:
    text = TRAINS.format(options=", no_cuda=not torch.cuda.is_available()")
    assert not _found(tmp_path, f"import torch\n{text}", "SPD801", requirements_txt="transformers==4.40.0\n")


def test_a_launch_with_a_precision_is_no_finding(tmp_path: Path) -> None:
    launched = "accelerate launch --mixed_precision bf16 train.py\n"
    assert not _found(tmp_path, TRAINS.format(options=""), "SPD801", run_sh=launched)


@pytest.mark.parametrize(("required", "is_written"), [("transformers>=4.40\n", True), ("transformers>=4.30\n", False)])
def test_workers_persist_where_the_release_knows_them(tmp_path: Path, required: str, is_written: bool) -> None:
    (found,) = _found(tmp_path, READS, "SPD802", requirements_txt=required)
    assert (found.fix is not None) is is_written


def test_the_default_optimizer_is_that_of_the_release(tmp_path: Path) -> None:
    (found,) = _found(tmp_path, TRAINS.format(options=""), "SPD803", requirements_txt="transformers==4.40.0\n")
    assert found.level.value == "note"
    assert not _found(tmp_path, TRAINS.format(options=', optim="lomo"'), "SPD803")


def test_a_trainer_that_benchmarks_is_no_finding(tmp_path: Path) -> None:
    text = (Path(__file__).parents[1] / "fixtures" / "rules" / "lightning_benchmark_off.py").read_text()
    text = text.replace("L.Trainer(benchmark=False)", "L.Trainer(benchmark=True)")
    assert not _found(tmp_path, text, "SPD813")


APEX = """\
import torch
from apex import amp
from torch import nn

def main(loader):
    model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for rows, labels in loader:
        loss = nn.functional.cross_entropy(model(rows.cuda()), labels.cuda())
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        optimizer.step()
        optimizer.zero_grad()
"""


def test_an_optimizer_beside_apex_is_shown(tmp_path: Path) -> None:
    (found,) = _found(tmp_path, APEX, "SPD502")
    assert found.fix is None
    assert "apex" in found.advice
    assert not _found(tmp_path, f"import deepspeed\n{APEX}", "SPD502")


PREPARED = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
{imports}

def main(name):
    {made}
    model = {model}
    optimizer = torch.optim.Adam(model.parameters())
    model, optimizer = {call}(model, optimizer)
    images = TensorDataset(torch.rand(1000, 3, 32, 32), torch.randint(0, 10, (1000,)))
    for rows, labels in DataLoader(images, batch_size=100, num_workers=2):
        loss = nn.functional.cross_entropy(model(rows.to(model.device)), labels.to(model.device))
        optimizer.zero_grad()
        {backward}(loss)
        optimizer.step()

main("a")
"""
FABRIC = {
    "imports": "import lightning as L",
    "made": 'fabric = L.Fabric(accelerator="cuda")',
    "call": "fabric.setup",
    "backward": "fabric.backward",
}
ACCELERATE = {
    "imports": "from accelerate import Accelerator",
    "made": "accelerator = Accelerator()",
    "call": "accelerator.prepare",
    "backward": "accelerator.backward",
}
CONVOLUTIONS = "nn.Sequential(*[nn.Conv2d(3, 3, 3, padding=1) for _ in range(20)], nn.Flatten(), nn.Linear(3072, 10))"
PRODUCTS = "nn.Sequential(nn.Flatten(), nn.Linear(3072, 4096), nn.ReLU(), nn.Linear(4096, 10))"


@pytest.mark.parametrize("framework", [FABRIC, ACCELERATE])
def test_a_prepared_module_is_on_the_device(tmp_path: Path, framework: dict[str, str]) -> None:
    (found,) = _found(tmp_path, PREPARED.format(model=CONVOLUTIONS, **framework), "SPD402")
    assert found.fix is not None
    (found,) = _found(tmp_path, PREPARED.format(model=PRODUCTS, **framework), "SPD105")
    assert found.level.value == "note"
    trains = PREPARED.format(model=CONVOLUTIONS, **framework).replace("import torch\n", f"import torch\n{BENCHMARK}", 1)
    assert not _found(tmp_path, trains, "SPD402")


BENCHMARK = "torch.backends.cudnn.benchmark = True\n"


BY_CLI = """\
import lightning as L
import torch
from lightning.pytorch.cli import LightningCLI
from torch.utils.data import DataLoader
from torchvision import datasets

class Net(L.LightningModule):
    def train_dataloader(self):
        return DataLoader(datasets.CIFAR10("data"), batch_size=64, num_workers=4)

    def training_step(self, batch, index):
        return self.layer(batch[0]).mean()

LightningCLI(Net{options})
"""


@pytest.mark.parametrize(
    ("options", "is_found"),
    [("", True), (', trainer_defaults={"accelerator": "gpu"}', True), (', trainer_defaults={"accelerator": "cpu"}', False)],
)
def test_a_command_line_of_lightning_trains_on_the_gpu(tmp_path: Path, options: str, is_found: bool) -> None:
    assert bool(_found(tmp_path, BY_CLI.replace("{options}", options), "SPD202")) is is_found


@pytest.mark.parametrize(
    ("made", "is_found"),
    [
        ("L.Fabric()", True),
        ('L.Fabric("cuda", devices=2)', True),
        ('L.Fabric("cpu")', False),
        ('L.Fabric(accelerator="mps")', False),
        ('L.Fabric("cuda", "ddp", 2, 1, "bf16-mixed")', False),
        ('L.Fabric(precision="16-mixed")', False),
    ],
)
def test_a_fabric_without_a_precision_is_noted(tmp_path: Path, made: str, is_found: bool) -> None:
    text = PREPARED.format(model=CONVOLUTIONS, **{**FABRIC, "made": f"fabric = {made}"})
    assert [each.level.value for each in _found(tmp_path, text, "SPD811")] == ["note"] * is_found
    in_half = text.replace("        optimizer.zero_grad", "        model.bfloat16()\n        optimizer.zero_grad")
    assert not _found(tmp_path, in_half, "SPD811")


REMADE = """\
import argparse
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets

def train(model, loader, optimizer):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

def report(settings):
    {report}

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root")
    args = parser.parse_args()
    model = nn.Conv2d(3, 10, 3).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(10):
        data = datasets.ImageFolder(args.root)
        train(model, DataLoader(data, batch_size=64, num_workers=4), optimizer)
        report(args)

main()
"""


@pytest.mark.parametrize(
    ("report", "is_found"),
    [
        ("print(settings.root)", True),
        ('settings.root = "b"', False),
        ('settings.root: str = "b"', False),
        ('settings.root, rest = "b", 1', False),
        ('setattr(settings, "root", "b")', False),
        ('vars(settings).update(root="b")', False),
    ],
)
def test_an_option_that_something_sets_is_not_the_same_in_each_epoch(tmp_path: Path, report: str, is_found: bool) -> None:
    assert bool(_found(tmp_path, REMADE.replace("{report}", report), "SPD211")) is is_found


ON_HOST = """\
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments

model = AutoModelForSequenceClassification.from_pretrained("bert-base-cased")
teacher = AutoModelForSequenceClassification.from_pretrained("bert-large-cased")
{before}
args = TrainingArguments("out")
Trainer(model, args, train_dataset=[]).train()
{after}
"""


@pytest.mark.parametrize(
    ("before", "after", "is_found"),
    [
        ('device = "cpu"\nmodel.to(device)', "", False),
        ('model.to("cuda")', "", True),
        ('teacher.to("cpu")', "", True),
        ("", 'model.to("cpu")', True),
        ('model.to("cpu")', 'model.to("cuda")', True),
    ],
)
def test_a_model_put_on_the_host_is_meant_to_be_trained_there(
    tmp_path: Path, before: str, after: str, is_found: bool
) -> None:
    assert bool(_found(tmp_path, ON_HOST.format(before=before, after=after), "SPD801")) is is_found


@pytest.mark.parametrize("package", ["lightning", "pytorch_lightning"])
def test_a_module_that_may_hold_what_float16_breaks_is_told_of_bfloat16(tmp_path: Path, package: str) -> None:
    """What adds 1e-8 before it divides makes NaN of a row of zeros in float16."""
    text = f"""
import {package} as pl
from elsewhere import Network

trainer = pl.Trainer(max_epochs=3, accelerator="gpu")
trainer.fit(Network())
"""
    (found,) = _found(tmp_path, text, "SPD811")
    assert found.fix is None
    assert ('"bf16-mixed"` on GPUs' in found.advice) is (package == "lightning")


@pytest.mark.parametrize(
    ("before", "after", "is_found"),
    [
        ("pass", "pl.Trainer(accelerator='gpu').fit(Module(), loader)", False),
        ("pass", "pass", True),
        ("pl.Trainer(accelerator='gpu').fit(Module(), loader)", "train(loader)", True),
    ],
)
def test_anomaly_detection_that_a_trainer_sets_anew(tmp_path: Path, before: str, after: str, is_found: bool) -> None:
    """A fit of Lightning's runs within ``set_detect_anomaly`` of what its trainer is told, False by default."""
    trained = """
def train(loader):
    model = torch.nn.Linear(4, 4).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x.cuda()), y.cuda()).backward()
        optimizer.step()


"""
    text = f"""
import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader

torch.autograd.set_detect_anomaly(True)


class Module(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def training_step(self, batch, index):
        return torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


{trained if is_found else ""}
loader = DataLoader(torch.load("rows.pt"))
{before}
{after if after != "pass" else ("train(loader)" if is_found else "pass")}
"""
    assert bool(_found(tmp_path, text, "SPD406")) is is_found


@pytest.mark.parametrize(
    ("told", "level"),
    [
        ("    accelerate launch --multi_gpu --num_processes 4 train.py\n", "warning"),
        ("    python train.py\n", "note"),
        ("    accelerate config\n    accelerate launch train.py\n", "note"),
        ("    accelerate launch --config_file big.yaml train.py\n", "note"),
        ("    accelerate launch --mixed_precision bf16 train.py\n", None),
        ("    accelerate launch other.py\n", "note"),
        ("    accelerate launch $ARGS train.py\n", "note"),
        ("    accelerate launch --config-file big.yaml train.py\n", "note"),
        ("    accelerate launch --cpu train.py\n", "note"),
        ("    accelerate launch other.py --script train.py\n", "note"),
        ("    export ACCELERATE_MIXED_PRECISION=bf16\n    accelerate launch train.py\n", None),
    ],
)
def test_a_command_that_launches_with_all_options_in_sight(tmp_path: Path, told: str, level: str | None) -> None:
    (tmp_path / "README.md").write_text(f"# Training\n\n{told}")
    wide = "nn.Sequential(nn.Flatten(), *[nn.Linear(3072, 3072) for _ in range(20)], nn.Linear(3072, 10))"
    text = PREPARED.format(model=wide, **ACCELERATE)
    assert [each.level.value for each in _found(tmp_path, text, "SPD821")] == ([level] if level else [])


@pytest.mark.parametrize(
    ("configured", "is_found"),
    [
        ("compute_environment: LOCAL_MACHINE\nmixed_precision: bf16\n", False),
        ("compute_environment: LOCAL_MACHINE\nmixed_precision: 'no'\n", True),
        ("mixed_precision: bf16\nepochs: 3\n", True),
    ],
)
def test_a_configuration_of_accelerate_in_the_project(tmp_path: Path, configured: str, is_found: bool) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "accelerate.yaml").write_text(configured)
    (tmp_path / "pyproject.toml").write_text("")
    text = PREPARED.format(model="nn.Sequential(nn.Flatten(), nn.Linear(3072, 3072), nn.Linear(3072, 10))", **ACCELERATE)
    assert bool(_found(tmp_path, text, "SPD821")) is is_found


@pytest.mark.parametrize(
    ("base", "hook", "is_found"),
    [
        ("pl.LightningModule", "validation_epoch_end(self, outputs)", False),
        ("pl.LightningModule", "on_validation_epoch_end(self)", False),
        ("pl.LightningModule", "measured(self)", True),
        ("torch.nn.Module", "validation_epoch_end(self, outputs)", True),
    ],
)
def test_hooks_of_an_evaluation_run_without_gradients(tmp_path: Path, base: str, hook: str, is_found: bool) -> None:
    text = f"""
import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader


class Module({base}):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1024, 1024)

    def forward(self, x):
        return self.layer(x)

    def {hook}:
        self.eval()
        total = 0.0
        for x, y in DataLoader(torch.load("rows.pt")):
            total += torch.nn.functional.mse_loss(self(x.cuda()), y.cuda()).item()
        print(total)


module = Module().cuda()
optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
for epoch in range(9):
    for x, y in DataLoader(torch.load("rows.pt")):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(module(x.cuda()), y.cuda()).backward()
        optimizer.step()
"""
    text += "    module.measured()\n" if "measured" in hook else ""
    text += "    module.validation_epoch_end([])\n" if base == "torch.nn.Module" else ""
    assert bool(_found(tmp_path, text, "SPD505")) is is_found


OLD_TRAINER = """\
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments

def main(name, data, tokenizer):
    model = AutoModelForSequenceClassification.from_pretrained(name)
    args = TrainingArguments("out")
    {made}
    trainer.train()
"""


@pytest.mark.parametrize(
    ("made", "requirement", "level"),
    [
        ("trainer = Trainer(model, args, train_dataset=data, tokenizer=tokenizer)", "", "warning"),
        ("trainer = Trainer(model, args, train_dataset=data, tokenizer=tokenizer)", "transformers>=5.0", "note"),
        ("trainer = Trainer(model, args, train_dataset=data, processing_class=tokenizer)", "", "note"),
        (
            "try:\n        trainer = Trainer(model, args, train_dataset=data, processing_class=tokenizer)\n"
            "    except TypeError:\n        trainer = Trainer(model, args, train_dataset=data, tokenizer=tokenizer)",
            "",
            "note",
        ),
    ],
)
def test_a_trainer_that_release_5_refuses_is_of_an_older_one(
    tmp_path: Path, made: str, requirement: str, level: str
) -> None:
    (found,) = _found(tmp_path, OLD_TRAINER.format(made=made), "SPD801", requirements_txt=f"{requirement}\n")
    assert found.level.value == level


@pytest.mark.parametrize("package", ["pytorch_lightning", "lightning.pytorch"])
@pytest.mark.parametrize("where", ["", ".core", ".core.module", ".core.lightning"])
def test_a_module_of_lightning_by_each_of_its_names(tmp_path: Path, package: str, where: str) -> None:
    text = BY_CLI.replace("class Net(L.LightningModule)", "class Net(LightningModule)").replace("{options}", "")
    text = text.replace("return self.layer(batch[0]).mean()", "print(batch[0].mean().item())")
    assert _found(tmp_path, f"from {package}{where} import LightningModule\n{text}", "SPD301")


OWN_MODEL = """
import torch
from torch import nn
from transformers import AutoModel, PreTrainedModel, Trainer, TrainingArguments


class Tagger(PreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.body, self.head = AutoModel.from_config(config), nn.Linear(768, 9)

    def forward(self, input_ids=None, labels=None, return_dict=None):
        logits = self.head(self.body(input_ids)[0])
        kept = labels.masked_select(labels >= 0)
        print(kept.sum().item() if return_dict else 0)
        return nn.functional.cross_entropy(logits[labels >= 0], kept), logits


class Weighted(Trainer):
    def save(self):
        self.save_model("best")


model = Tagger.from_pretrained("bert-base-cased")
{trained}
"""


@pytest.mark.parametrize(
    ("trained", "is_found"),
    [
        ("Trainer(model=model, args=TrainingArguments('out'), train_dataset=torch.load('rows.pt')).train()", True),
        ("Weighted(model, TrainingArguments('out'), train_dataset=torch.load('rows.pt')).train()", True),
        ("Trainer(model=AutoModel.from_pretrained('b'), args=TrainingArguments('out')).train()", False),
        ("print(model(torch.load('rows.pt')))", False),
    ],
)
def test_the_forward_of_a_model_that_a_trainer_is_given(tmp_path: Path, trained: str, is_found: bool) -> None:
    assert bool(_found(tmp_path, OWN_MODEL.replace("{trained}", trained), "SPD305")) is is_found


OWN_T5 = """
import torch
from transformers import {base}, T5Config, Trainer, TrainingArguments


class Own({base}):
    pass


model = Own(T5Config.from_pretrained("config.json"))
Trainer(model=model, args=TrainingArguments("out"), train_dataset=torch.load("rows.pt")).train()
"""


@pytest.mark.parametrize(("base", "is_named"), [("T5ForConditionalGeneration", True), ("BertForMaskedLM", False)])
def test_an_own_model_derived_from_one_that_leaves_float16(tmp_path: Path, base: str, is_named: bool) -> None:
    (found,) = _found(tmp_path, OWN_T5.replace("{base}", base), "SPD801")
    assert found.fix is None or not is_named
    assert ("leaves the range of float16" in found.advice) is is_named
