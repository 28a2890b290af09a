"""Loaders, datasets and what is done for each of their items."""
