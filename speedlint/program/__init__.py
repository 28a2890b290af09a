"""Which files are a program: what a project holds, what imports what."""
