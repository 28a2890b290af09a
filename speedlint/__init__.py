"""speedlint finds what slows down a PyTorch training script, rewrites it, and proves the gain."""

__version__ = "0.1.0"
