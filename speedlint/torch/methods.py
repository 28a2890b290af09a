"""What methods and attributes of tensors give, a row each: the same numbers, the same memory, another dtype, no graph."""

RESHAPES = frozenset("view view_as reshape squeeze unsqueeze flatten unflatten".split())
"""All numbers of a tensor in their order, in another shape."""
TRANSPOSES = frozenset("transpose permute t T mT swapaxes swapdims movedim moveaxis".split())
"""All of them in another order."""
EXPANDS = frozenset({"expand", "expand_as"})
"""All of them, some several times."""
PARTS = frozenset("narrow select diagonal chunk split unbind unfold".split())
"""Some of them."""
DETACHES = frozenset({"detach", "data"})
"""All of them without their graph."""
VIEWS = RESHAPES | TRANSPOSES | EXPANDS | PARTS | DETACHES
"""What may share its tensor's memory."""
FLOATS = frozenset("float double half bfloat16".split())
WHOLES = frozenset("long int short byte bool".split())
CASTS = FLOATS | WHOLES | {"to", "type"}
"""What gives another dtype, and the tensor itself where it has that already."""
MOVES = frozenset({"to", "cuda", "cpu"})
"""What gives another place, and the tensor itself where it is there already."""
READS = frozenset({"item", "tolist", "numpy"})
"""What takes the numbers out of a tensor."""
COMPARES = frozenset("eq ne lt le gt ge".split())
GRAPHLESS = (
    READS
    | WHOLES
    | COMPARES
    | frozenset("argmax argmin argsort size dim numel nelement isnan isinf isfinite equal allclose".split())
)
"""What no gradient passes through."""
MAKES_ANEW = (GRAPHLESS - WHOLES - {"numpy"}) | frozenset(
    "abs add all amax amin any bincount ceil clamp clip clone cumsum div exp floor gather gelu index_select log "
    "log_softmax logsumexp masked_select matmul max mean median min mul nan_to_num norm normalize ones_like pow prod "
    "quantile relu round rsqrt sigmoid sign softmax sqrt square std sub sum tanh topk trunc var where zeros_like".split()
)
"""Methods, and functions of torch, whose result shares no memory with what they are given."""


def works_in_place(name: str) -> bool:
    """Whether torch's naming says that a method, or a function by its full name, changes its tensor: ``add_``."""
    return name.endswith("_") and not name.endswith("__")
