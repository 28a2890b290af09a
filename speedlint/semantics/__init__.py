"""What a training script means: the questions every rule asks.

A rule is handed a ``Script`` (``script``), which asks the modules of this folder:

- the text: ``names`` (scopes, imports), ``values``, ``options`` and ``configs`` (constants and where they are set),
  ``folding`` and ``pure`` (small computations), ``program`` and ``imports`` (other files), ``terms`` (the words: roles,
  places, frequencies; and ``Flow``, which answers questions that depend on each other)
- the flow: ``roles`` and ``calls`` (what a value is; ``library`` holds the tables), ``dtypes``, ``loops``, ``guards``,
  ``passes`` and ``counts`` (how often a line runs), ``reach`` (where an object goes)
- the training: ``training``, ``steps``, ``evaluation``, ``probes``, ``entry``, ``eras``, ``devices``

What the rules of one family ask stands in a folder of that family's name: ``data``, ``sync``, ``precision``, ``backend``,
``optimizer``, ``model``, ``schedule``, ``frameworks``.
"""
