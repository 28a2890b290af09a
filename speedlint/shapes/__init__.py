"""What a training is made of: steps, passes, loaders, datasets, networks, optimizers, switches; found by asking a script.

What one family of rules asks stands in a folder of that family's name. Nothing here writes an edit.
"""
