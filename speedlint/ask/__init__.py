"""``Script``, the one thing that a rule is handed, and ``Program``, all scripts of one run."""
