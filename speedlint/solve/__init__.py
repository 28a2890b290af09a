"""What holds in a program: scopes, constants, values and their roles, who calls whom, how often, what is changed.

Answers that depend on each other are asked of ``flow``. Nothing here knows what a training step is made of.
"""
