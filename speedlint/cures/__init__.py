"""How a change is written, and what must be proven for it: all that builds edits, a module for each kind of change."""
