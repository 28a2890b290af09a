"""speedlint finds what slows down a PyTorch training script, rewrites it, and proves the gain."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from speedlint.api import check_paths, check_source, fix_source

__version__ = "0.2.0"
__all__ = ["__version__", "check_paths", "check_source", "fix_source"]


def __getattr__(name: str) -> object:
    """The functions of ``speedlint.api``, imported when they are first asked for."""
    if name in __all__:
        from speedlint import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
