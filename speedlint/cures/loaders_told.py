"""What is said of a loader: at the call that makes it or, where its file is not checked, at the call that is given it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from speedlint.ask.script import Script
from speedlint.facts import syntax
from speedlint.rule import Finding, Related
from speedlint.shapes.data import hidden_loaders, loaders
from speedlint.shapes.data.loaders import Loader
from speedlint.shapes.sync import hidden, reads

_SUBJECT = "this loader"


def told(
    script: Script, call: syntax.Call, of_loader: Callable[[Loader], Iterator[Finding]], *, only_of_one_call: bool = False
) -> Iterator[Finding]:
    """What ``of_loader`` finds of the loader that a call makes itself, or of those that it is given, without their fixes;
    with ``only_of_one_call`` of none that other calls are given as well."""
    own = loaders.loader(script, call)
    if own is not None:
        yield from of_loader(own)
        return
    for each in hidden_loaders.behind(script, call):
        for found in of_loader(each) if not only_of_one_call or hidden_loaders.is_of_one_call(script, each) else ():
            yield _at_call(script, call, each, found)


def _at_call(script: Script, call: syntax.Call, made: Loader, found: Finding) -> Finding:
    name, where = reads.shown(script, call.func), hidden.place(script, hidden.SlowCall(made.script, made.call))
    subject = f"the loader of `{name}(...)` ({where})"
    message = found.message.replace(_SUBJECT, subject, 1)
    if message == found.message:
        message = f"{message}, by {subject}"
    advice = found.advice.partition("; not written")[0]
    related = (Related(made.script.source, made.call, "it is made here"),)
    return found._replace(
        node=call,
        message=message,
        fix=None,
        advice=f"{advice}; not written, since its file is not checked",
        related=related,
    )
