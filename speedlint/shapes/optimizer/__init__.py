"""Optimizers, and the graphs and gradients they work on."""
