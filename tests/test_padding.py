"""Texts that are padded to a limit are told of where batches of other lengths would do."""

from __future__ import annotations

import pytest

from tests.conftest import Project

TUNES = """
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer, TrainingArguments
{more}

class Held(torch.nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased")
        self.head = torch.nn.Linear(768, 2)

    def forward(self, input_ids, attention_mask, labels):
        return self.head(self.body(input_ids, attention_mask=attention_mask).logits)


class Wide(Held):
    def forward(self, input_ids, attention_mask, labels):
        return self.head(self.body(input_ids, attention_mask=attention_mask).last_hidden_state.flatten(1))


tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")


def cut(rows):
    return tokenizer(rows["text"], truncation=True, padding={padding}, max_length={limit})


def main(rows):
    model = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased")
    {model}
    Trainer(model, TrainingArguments("out", bf16=True), train_dataset=rows.map({mapped}, batched=True)).train()
"""
LIMIT = '"max_length"'


@pytest.mark.parametrize(
    ("padding", "limit", "more", "model", "mapped", "levels"),
    [
        (LIMIT, "128", "", "pass", "cut", ["note"]),
        (LIMIT, "None", "", "pass", "cut", ["note"]),
        (LIMIT, "LENGTH", "LENGTH = 48", "pass", "cut", []),
        ("True", "128", "", "pass", "cut", []),
        (LIMIT, "128", "", "model = torch.compile(model)", "cut", []),
        (LIMIT, "128", "import torch_xla", "pass", "cut", []),
        (LIMIT, "77", "from transformers import CLIPTokenizer", "pass", "cut", []),
        (LIMIT, "128", "", "pass", "dict", []),
        (LIMIT, "128", "block_size = 128", "pass", "cut", []),
        (LIMIT, "128, return_overflowing_tokens=True", "", "pass", "cut", []),
        (LIMIT, "128", "", "model = Wide(model)", "cut", []),
        (LIMIT, "128", "", "model = Held(model)", "cut", ["note"]),
        (LIMIT, "128", "def other(rows):\n    return rows", "rows.map(cut)", "other", []),
    ],
)
def test_where_batches_may_have_lengths_of_their_own(
    project: Project, padding: str, limit: str, more: str, model: str, mapped: str, levels: list[str]
) -> None:
    project.configure("select = ['SPD220']\ntorch = '2.13'")
    text = TUNES.format(padding=padding, limit=limit, more=more, model=model, mapped=mapped)
    assert [each["level"] for each in project.findings(project.write("train.py", text), "--notes")] == levels
