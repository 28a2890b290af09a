"""What torch's and its neighbours' functions and classes are: tables, read by ``roles``.

Checked against torch 2.13; names that older releases lack do no harm here.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from speedlint.torch.words import Frequency, Role

FORWARD_HOOKS = re.compile(rb"register_(?:module_)?forward_(?:pre_)?hook")
"""What hands a module's inputs or outputs to a function of the program's."""
CANONICAL = {
    "tqdm.trange": "range",
    "tqdm.auto.trange": "range",
    "tqdm.notebook.trange": "range",
    "tqdm.std.trange": "range",
    "six.moves.xrange": "range",
    "itertools.izip": "zip",
    **{f"{module}.{name}": name for module in ("six.moves", "builtins") for name in ("filter", "map", "range", "zip")},
    "torch.utils.data.dataloader.DataLoader": "torch.utils.data.DataLoader",
    "torch.utils.data.dataloader": "torch.utils.data",
    "torch.nn.parallel.DataParallel": "torch.nn.DataParallel",
    "torch.nn.parallel.data_parallel.DataParallel": "torch.nn.DataParallel",
    "torch.nn.parallel.distributed.DistributedDataParallel": "torch.nn.parallel.DistributedDataParallel",
    "torch.optim.adam.Adam": "torch.optim.Adam",
    "torch.optim.adamw.AdamW": "torch.optim.AdamW",
    "torch.optim.sgd.SGD": "torch.optim.SGD",
    "torch.cuda.amp.autocast_mode.autocast": "torch.cuda.amp.autocast",
    "torch.cuda.amp.grad_scaler.GradScaler": "torch.cuda.amp.GradScaler",
    "torch.amp.autocast_mode.autocast": "torch.amp.autocast",
    "torch.amp.grad_scaler.GradScaler": "torch.amp.GradScaler",
}

KNOWN = frozenset(
    "torch torchvision torchaudio lightning pytorch_lightning lightning_fabric accelerate transformers deepspeed "
    "ignite fastai catalyst composer ultralytics".split()
)
"""Libraries that these tables describe: they are taken for libraries in the examples of their own repositories too."""
COMMON_NAMES = {"datasets": "arrow_dataset.py"}
"""Libraries whose names projects give modules of their own as well, each with a file that only the library has."""
LOADERS = frozenset(
    {
        "torch.utils.data.DataLoader",
        "torch_geometric.loader.DataLoader",
        "torch_geometric.data.DataLoader",
        "monai.data.DataLoader",
        "timm.data.create_loader",
    }
)
PROGRESS = frozenset({"tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.notebook.tqdm", "tqdm.std.tqdm", "rich.progress.track"})
"""What shows how far a loop has come, and gives what it goes over."""
WRAPPERS_OF_ITERABLES = PROGRESS.union(
    {
        "iter",
        "reversed",
        "sorted",
        "itertools.islice",
        "itertools.cycle",
        "progressbar.progressbar",
        "alive_progress.alive_it",
        "fastprogress.progress_bar",
        "fastprogress.fastprogress.progress_bar",
    }
)
UPDATERS = frozenset(f"timm.utils.{name}" for name in "NativeScaler ApexScaler cuda.NativeScaler cuda.ApexScaler".split())
"""Classes whose objects, called with a loss and an optimizer, run the backward pass and step the optimizer."""
SCALERS = frozenset({"torch.amp.GradScaler", "torch.cuda.amp.GradScaler", "torch.cpu.amp.GradScaler"})
AUTOCASTS = frozenset({"torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast", "torch.cpu.amp.autocast"})
NO_GRADS = frozenset(
    {
        "torch.no_grad",
        "torch.inference_mode",
        "torch.autograd.no_grad",
        "torch.set_grad_enabled",
        "torch.autograd.grad_mode.no_grad",
        "torch.autograd.inference_mode",
        "torch.autograd.set_grad_enabled",
    }
)
COMPILERS = frozenset({"torch.compile", "torch.jit.script", "torch.jit.trace", "torch._dynamo.optimize"})
DATA_PARALLEL_RANKS = ("torch.nn.parallel.DistributedDataParallel", "apex.parallel.DistributedDataParallel")
"""Wrappers that copy a module to each of several processes."""
DISTRIBUTED_WRAPPERS = frozenset(
    {
        *DATA_PARALLEL_RANKS,
        "torch.nn.DataParallel",
        "torch.nn.SyncBatchNorm.convert_sync_batchnorm",
        "torch.distributed.fsdp.FullyShardedDataParallel",
    }
)
FACTORIES = frozenset(
    f"torch.{name}"
    for name in (
        "zeros ones empty full tensor as_tensor arange linspace logspace eye rand randn randint randperm from_numpy "
        "FloatTensor LongTensor IntTensor Tensor BoolTensor ByteTensor DoubleTensor HalfTensor scalar_tensor "
        "tril_indices triu_indices hann_window hamming_window"
    ).split()
)
CUDA_FACTORIES = frozenset(
    f"torch.cuda.{name}" for name in "FloatTensor LongTensor IntTensor BoolTensor ByteTensor DoubleTensor HalfTensor".split()
)
PARAMETERS = frozenset({"torch.nn.Parameter", "torch.nn.parameter.Parameter"})
LIKE_FACTORIES = frozenset(f"torch.{name}_like" for name in "zeros ones empty full rand randn randint".split())
NEW_TENSORS = frozenset(f"new_{kind}" for kind in "tensor zeros ones empty full".split())
"""Methods that tensors alone have, and that make a tensor beside them."""
NOT_TENSORS = frozenset(
    f"torch.{name}"
    for name in (
        "is_tensor numel is_floating_point is_complex is_nonzero manual_seed seed initial_seed save load equal allclose "
        "is_storage finfo iinfo set_grad_enabled set_default_dtype set_num_threads get_num_threads Size Generator device "
        "typename is_grad_enabled get_rng_state set_rng_state set_printoptions compile result_type can_cast autocast "
        "no_grad enable_grad inference_mode set_float32_matmul_precision are_deterministic_algorithms_enabled "
        "use_deterministic_algorithms get_default_dtype get_default_device set_default_device set_default_tensor_type "
        "vmap func iscomplex promote_types get_autocast_dtype is_autocast_enabled Stream Event"
    ).split()
)
NOT_TENSOR_PACKAGES = ("torch.cuda.", "torch.distributed.", "torch.backends.", "torch.utils.")
TENSOR_UTILITIES = {
    "torch.nn.utils.clip_grad_norm_": (1, 5),
    "torch.nn.utils.clip_grad_norm": None,
    "torch.nn.utils.get_total_norm": (1, 5),
}
"""What gives the norm of gradients, and the release from which on it is a tensor, where it was a number before (torch's own
sources); None for the spelling of before 0.4, since code that keeps it may be for any release."""
FUNCTIONS_OF_NN = ("torch.nn.functional.", "torch.nn.init.", "torch.nn.utils.")
NO_TENSOR_PACKAGES = tuple(
    f"torch.{name}."
    for name in (
        "accelerator amp compiler export futures fx hub jit library monitor mps multiprocessing onnx overrides package "
        "profiler random testing version xpu"
    ).split()
)
SEVERAL_TENSORS = frozenset("split chunk unbind tensor_split meshgrid broadcast_tensors hsplit vsplit dsplit".split())
PAIRS_WITH_DIM = frozenset("max min sort topk median mode kthvalue cummax cummin nanmedian aminmax".split())
PAIRS_ALWAYS = frozenset("sort topk kthvalue cummax cummin mode".split())
NUMBER_METHODS = frozenset(
    "size dim ndimension numel nelement element_size get_device data_ptr is_contiguous is_floating_point is_complex "
    "storage_offset stride is_pinned is_shared equal allclose is_set_to".split()
)
NUMBER_ATTRIBUTES = frozenset(
    "shape ndim requires_grad is_cuda is_leaf is_sparse itemsize nbytes grad_fn names layout is_cpu is_mps "
    "num_nodes num_edges num_graphs num_features num_node_features num_edge_features num_node_types num_edge_types".split()
)
"""What is no tensor of a tensor's own, or of a graph's of PyTorch Geometric."""
INSTANTIATORS = frozenset({"hydra.utils.instantiate", "hydra.utils.call"})
"""What makes the object that a configuration describes by its ``_target_``."""
GRAPH_DATASETS = "torch_geometric.datasets."
"""Datasets whose items are graphs: nodes, edges, labels and the masks of which are trained on, in tensors on the host."""
GRAPH_MASKS = frozenset({"train_mask", "val_mask", "test_mask"})
"""The truth values by which PyTorch Geometric splits the nodes of one graph."""
MODULE_FACTORIES = (
    "torchvision.models.",
    "timm.create_model",
    "timm.models.",
    "segmentation_models_pytorch.",
    "monai.networks.",
    "efficientnet_pytorch.",
    "transformers.models.",
    "torch.hub.load",
    "resnest.",
    "pretrainedmodels.",
)
LOADS = frozenset({"torch.load", "pickle.load", "pickle.loads", "joblib.load", "dill.load", "cloudpickle.load"})
"""What reads an object of any kind from a file."""
LAYERS_OF_ONE_TENSOR = frozenset(
    f"torch.nn.{name}"
    for name in "Linear Embedding Conv1d Conv2d Conv3d BatchNorm1d BatchNorm2d BatchNorm3d LayerNorm GroupNorm ReLU GELU "
    "SiLU Tanh Sigmoid Softmax LeakyReLU ELU Dropout Dropout1d Dropout2d Dropout3d Flatten".split()
)
"""Layers that give one tensor for one, and take nothing else: no packed sequence, no tuple (torch 2.13)."""
NO_TENSORS = frozenset("list tuple dict str int float bool numpy.ndarray torch.nn.utils.rnn.PackedSequence".split())
"""Classes that no tensor is an object of."""
TAKES_LENGTHS_ON_HOST = frozenset({"torch.nn.utils.rnn.pack_padded_sequence"})
TRANSFORMERS_MODEL_MARKS = ("Model", "For", "LMHead")
LEGACY_OPTIMIZERS = frozenset(
    {
        "apex.optimizers.FusedAdam",
        "apex.optimizers.FusedLAMB",
        "apex.optimizers.FusedSGD",
        "transformers.AdamW",
        "transformers.Adafactor",
        "transformers.optimization.AdamW",
        "pytorch_pretrained.optimization.BertAdam",
        "pytorch_pretrained_bert.BertAdam",
        "pytorch_pretrained_bert.optimization.BertAdam",
        "timm.optim.create_optimizer",
        "timm.optim.create_optimizer_v2",
        "timm.optim.optim_factory.create_optimizer",
        "bitsandbytes.optim.AdamW8bit",
        "bitsandbytes.optim.Adam8bit",
        "lion_pytorch.Lion",
        "adabelief_pytorch.AdaBelief",
    }
)
SIMPLE_ROLES: dict[str, Role] = {
    "torch.device": Role.DEVICE,
    "torch.utils.data.distributed.DistributedSampler": Role.SAMPLER,
    "torch.utils.data.DistributedSampler": Role.SAMPLER,
    "torch.utils.data.RandomSampler": Role.SAMPLER,
    "torch.utils.data.SequentialSampler": Role.SAMPLER,
    "torch.utils.data.BatchSampler": Role.SAMPLER,
    "torch.utils.data.WeightedRandomSampler": Role.SAMPLER,
    "torch.utils.data.SubsetRandomSampler": Role.SAMPLER,
    "torch.utils.data.Subset": Role.DATASET,
    "torch.utils.data.TensorDataset": Role.DATASET,
    "torch.utils.data.ConcatDataset": Role.DATASET,
}
DATASET_BASES = frozenset(
    {
        "torch.utils.data.Dataset",
        "torch.utils.data.IterableDataset",
        "torch.utils.data.dataset.Dataset",
        "torch.utils.data.TensorDataset",
        "torch.utils.data.dataset.IterableDataset",
    }
)
LIGHTNING_MODULES = frozenset(
    f"{package}.{where}LightningModule"
    for package in ("lightning.pytorch", "pytorch_lightning")
    for where in ("", "core.", "core.lightning.", "core.module.")
) | {"lightning.LightningModule"}
SPAWNERS = frozenset(
    {"torch.multiprocessing.spawn", "multiprocessing.spawn", "torch.multiprocessing.Process", "multiprocessing.Process"}
)
LIGHTNING_TRAINERS = frozenset(
    {
        "lightning.Trainer",
        "lightning.pytorch.Trainer",
        "lightning.pytorch.trainer.Trainer",
        "lightning.pytorch.trainer.trainer.Trainer",
        "pytorch_lightning.Trainer",
        "pytorch_lightning.trainer.Trainer",
        "pytorch_lightning.trainer.trainer.Trainer",
    }
)
LIGHTNING_CALLBACKS = frozenset(
    f"{package}.{name}"
    for package in ("lightning.pytorch", "pytorch_lightning")
    for name in ("Callback", "callbacks.Callback", "callbacks.base.Callback", "callbacks.callback.Callback")
) | {"lightning.Callback"}
LIGHTNING_CLIS = frozenset({"lightning.pytorch.cli.LightningCLI", "pytorch_lightning.cli.LightningCLI"})
FABRICS = frozenset(
    {"lightning.Fabric", "lightning.fabric.Fabric", "lightning.fabric.fabric.Fabric", "lightning_fabric.Fabric"}
)
FABRIC_PARAMETERS = ("accelerator", "strategy", "devices", "num_nodes", "precision")
"""What ``Fabric`` takes by position; ``Trainer`` takes everything by keyword."""
ACCELERATORS = frozenset({"accelerate.Accelerator", "accelerate.accelerator.Accelerator"})
GATHERS = frozenset({"gather", "gather_for_metrics", "reduce"})
"""Methods of an ``Accelerator`` that bring tensors of all processes together, on the device."""
HUGGING_FACE_TRAINERS = frozenset(
    {
        "transformers.Trainer",
        "transformers.Seq2SeqTrainer",
        "transformers.trainer.Trainer",
        "transformers.trainer_seq2seq.Seq2SeqTrainer",
        *(f"trl.{name}Trainer" for name in ("SFT", "DPO", "ORPO", "KTO", "CPO", "Reward")),
    }
)
HUGGING_FACE_CALLBACKS = frozenset({"transformers.TrainerCallback", "transformers.trainer_callback.TrainerCallback"})


class Hook(NamedTuple):
    """A method of a class derived from a framework's, which the framework calls by its name. Places count ``self`` as 0.

    Attributes:
        frequency: how often it is called.
        batch: the place of the parameter that takes a batch on the module's device; None where none does, as for the others.
        turn: the place of the one that takes the number of the batch.
        loss: the place of the one that takes the loss of the step.
        result: the place of the one that takes the loss under its name, beside what else a training step gave back.
        named: the names of those that take parts of a batch.
    """

    frequency: Frequency
    batch: int | None = None
    turn: int | None = None
    loss: int | None = None
    result: int | None = None
    named: frozenset[str] = frozenset()


HOOKS_WITHOUT_GRADIENTS = frozenset(
    f"{when}{kind}{what}"
    for kind in ("validation", "test", "predict")
    for when, what in (("", "_step"), ("", "_epoch_end"), ("on_", "_epoch_end"), ("on_", "_epoch_start"))
)
"""Methods of Lightning's that its trainer calls where gradients are off (pytorch_lightning 1.8, ``training_epoch_loop.py``;
lightning 2.6, the ``no_grad`` context of its evaluation loops)."""
_STEP, _EVAL_STEP = Frequency.STEP, Frequency.EVAL_STEP
_AROUND_UPDATES = dict.fromkeys(("on_after_backward", "on_before_optimizer_step", "on_before_zero_grad"), Hook(_STEP))
HOOKS: tuple[tuple[frozenset[str], dict[str, Hook]], ...] = (
    (
        LIGHTNING_MODULES,
        {
            "training_step": Hook(_STEP, batch=1, turn=2),
            "validation_step": Hook(_EVAL_STEP, batch=1, turn=2),
            "test_step": Hook(Frequency.ONCE, batch=1, turn=2),
            "on_train_batch_start": Hook(_STEP, batch=1, turn=2),
            "on_train_batch_end": Hook(_STEP, result=1, batch=2, turn=3),
            "on_before_backward": Hook(_STEP, loss=1),
            "on_validation_batch_start": Hook(_EVAL_STEP, batch=1, turn=2),
            "on_validation_batch_end": Hook(_EVAL_STEP, batch=2, turn=3),
            **_AROUND_UPDATES,
        },
    ),
    (
        LIGHTNING_CALLBACKS,
        {
            "on_train_batch_start": Hook(_STEP, batch=3, turn=4),
            "on_train_batch_end": Hook(_STEP, result=3, batch=4, turn=5),
            "on_before_backward": Hook(_STEP, loss=3),
            "on_validation_batch_start": Hook(_EVAL_STEP, batch=3, turn=4),
            "on_validation_batch_end": Hook(_EVAL_STEP, batch=4, turn=5),
            **_AROUND_UPDATES,
        },
    ),
    (
        HUGGING_FACE_TRAINERS,
        {
            "compute_loss": Hook(_STEP, batch=2),
            "training_step": Hook(_STEP),
            "prediction_step": Hook(_EVAL_STEP),
        },
    ),
    (
        HUGGING_FACE_CALLBACKS,
        {
            **dict.fromkeys(("on_step_begin", "on_step_end", "on_substep_end"), Hook(_STEP)),
            **dict.fromkeys(("on_pre_optimizer_step", "on_optimizer_step"), Hook(_STEP)),
            "on_prediction_step": Hook(_EVAL_STEP),
        },
    ),
)
HOOK_NAMES = frozenset(name for _, hooks in HOOKS for name in hooks)
LABELS = frozenset("labels label targets target start_positions end_positions".split())
"""What a training hands the ``forward`` of a model of transformers, and who only uses it does not."""
FORWARD_OF_TRAINER = Hook(
    _STEP,
    named=frozenset(
        "input_ids attention_mask token_type_ids position_ids inputs_embeds labels input_values input_features pixel_values "
        "decoder_input_ids decoder_attention_mask start_positions end_positions".split()
    ),
)
"""The ``forward`` of a model that a ``Trainer`` is given: it hands on the batch by the names of its parts."""
TRAINERS = LIGHTNING_TRAINERS | LIGHTNING_CLIS | HUGGING_FACE_TRAINERS
"""What trains when it is told to, in a loop of its own."""
ON_GPU_BY_DEFAULT = TRAINERS | FABRICS | ACCELERATORS | {"torch.accelerator.current_accelerator"}
SCALING_CONFIGS = ("ray.train.ScalingConfig", "ray.air.ScalingConfig", "ray.air.config.ScalingConfig")
"""What tells Ray whether its workers get a GPU each, by ``use_gpu``: it then puts the model and the batches there."""
NOT_CUDA = frozenset("cpu mps tpu hpu xpu npu xla mlu ipu".split())
"""Devices of torch's and accelerators of Lightning's that are no GPU of CUDA's."""
DEVICES_OF_OTHERS = ("torch_xla.", "torch_directml.")
"""Libraries whose devices are none of CUDA's."""
GPU_MARKS = (
    b"cuda",
    b".to(",
    b"Accelerator",
    b"Fabric",
    b"Trainer",
    b"LightningCLI",
    b"current_accelerator",
    b"ScalingConfig",
)
"""What a file holds in which something shows a GPU."""
DTYPES = frozenset(
    f"torch.{name}"
    for name in (
        "float float16 float32 float64 half double bfloat16 int int8 int16 int32 int64 long short bool uint8 complex64 "
        "complex128 cfloat cdouble"
    ).split()
)
DRAWS = ("random.", "numpy.random.", "torch.rand", "torch.normal", "torch.multinomial", "torch.bernoulli", "torch.poisson")
"""What the names of functions that draw random numbers begin with."""
HOST_LIBRARIES = (
    "numpy.",
    "scipy.",
    "sklearn.",
    "pandas.",
    "cv2.",
    "PIL.",
    "skimage.",
    "matplotlib.",
    "random.",
    "math.",
    "os.",
    "time.",
    "datetime.",
    "json.",
    "re.",
    "glob.",
    "pickle.",
    "copy.",
    "string.",
    "collections.",
)


def makes_optimizer(dotted: str) -> bool:
    """Whether a library's class or function, by its full name, makes an optimizer."""
    name = dotted.rpartition(".")[2]
    if not dotted.startswith("torch.optim.") or dotted.startswith("torch.optim.lr_scheduler."):
        return dotted in LEGACY_OPTIMIZERS
    return name[:1].isupper() or name.startswith("create_")


def transforms(*names: str) -> frozenset[str]:
    """The full names of torchvision's transforms, by their last names."""
    return frozenset(f"torchvision.transforms.{place}{name}" for place in ("", "v2.", "transforms.") for name in names)


def is_dataset_class(dotted: str) -> bool:
    """Whether a library's class, by its full name, is one that datasets derive from."""
    return dotted in DATASET_BASES or dotted.startswith("torchvision.datasets.")
