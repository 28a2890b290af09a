"""What a training is composed of: pieces of text for the places of a script.

``$name`` is an object that the functions of a training share (``$model``, ``$train_set``): a variable, a parameter or an
attribute, as the script's layout has it. ``@name`` is a variable of the part's own, made unique where the part is used.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """One piece. Every text may be empty; lines are indented from 0.

    Attributes:
        name: what the generator's tests and ``--keep`` call it.
        imports: lines for the top of the file.
        top: classes and functions at the level of the module.
        setup: once, before the epochs.
        start: at the beginning of each epoch.
        step: at the end of each step, where ``loss``, ``out``, ``x``, ``y``, ``step`` and ``epoch`` are bound.
        end: after the steps of an epoch.
        returns: variables and expressions that the function of an epoch hands to its caller.
        after: in each epoch behind the evaluation, where what is returned is bound.
        final: once, after the epochs.
        state: shared objects of the part's own with what they begin with.
        kind: what ``@it`` is, for the habits that are added to it: ``float``, ``list``, ``tensor``, ``meter``.
        needs: a word that another part must offer.
    """

    name: str
    imports: str = ""
    top: str = ""
    setup: str = ""
    start: str = ""
    step: str = ""
    end: str = ""
    returns: tuple[tuple[str, str], ...] = ()
    after: str = ""
    final: str = ""
    state: tuple[tuple[str, str], ...] = ()
    kind: str = ""
    needs: str = ""


@dataclass(frozen=True)
class Data:
    """Where the rows come from.

    Attributes:
        name: what it is called.
        top: the dataset's class and what it needs.
        make: an expression for a dataset of ``FEATURES`` and ``LABELS``, two arrays.
        imports: lines for the top of the file.
        form: what a batch is: ``pair``, ``dict``, ``triple`` (with the rows' numbers) or ``own``.
        options: more arguments of the training loader.
        modes: the forms of features it can hold: ``vector``, ``image``, ``tokens``, ``series``.
        is_iterable: whether it has no length and no order of its own.
        part: what the training does with it.
        setup: lines before the loaders are made.
    """

    name: str
    top: str
    make: str
    imports: str = ""
    form: str = "pair"
    options: str = ""
    modes: tuple[str, ...] = ("vector", "image", "tokens", "series")
    is_iterable: bool = False
    part: Part | None = None
    setup: str = ""


@dataclass(frozen=True)
class Net:
    """A network over one form of features that ends in four classes.

    Attributes:
        name: what it is called.
        mode: the features it takes.
        top: its classes.
        make: the expression that makes it.
        call: how the step calls it; binds ``out``.
        part: what the training does with it.
    """

    name: str
    mode: str
    top: str
    make: str = "Net()"
    call: str = "out = $model(x)"
    part: Part | None = None
    imports: str = ""
