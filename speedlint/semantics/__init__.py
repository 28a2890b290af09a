"""What a training script means: the questions every rule asks.

A rule is handed a ``Script`` (``script``), which asks the rooms below. Each room stands on those before it:

- the text: ``names`` (scopes, imports), ``values`` (constants and where they are set), ``program`` (other
  files), ``model`` (the words: roles, places, frequencies; and ``Flow``, which answers questions that depend on each other)
- the flow: ``roles`` and ``calls`` (what a value is; ``library`` holds the tables), ``loops``, ``guards`` and ``passes``
  (how often a line runs), ``reach`` (where an object goes)
- the training: ``training``, ``steps``, ``networks``, ``optimizers``, ``evaluation``, ``schedule``, ``entry``, ``eras``,
  ``devices``, ``compilation``, ``backend``, ``probes``
- data: ``loaders``, ``loader_settings``, ``datasets``, ``rows``, ``batches``, ``ahead``, ``per_item``, ``arrays``;
  ``sharing``, ``remade`` (one loader for all); ``repeats``, ``item_work``, ``item_decoding``, ``array_loops``,
  ``tokenizing`` (what is done again for an item)
- precision: ``precision``, ``halves``, ``scaling``, ``amp_names``, ``amp_dtypes``, ``doubles``, ``tf32``
- networks: ``attention``, ``layers``, ``layout``, ``recompilation``, ``wrapping``
- graphs and gradients: ``retention``, ``regraph``, ``recomputation``, ``exchanges``, ``batch_sizes``
- what is left on: ``environment``, ``debugging``, ``intent``, ``memory``, ``creation``
- frameworks: ``lightning``, ``huggingface``, ``accelerated``, ``launch``, ``releases``
- reads of device tensors: ``reads``, ``accumulators``, ``gathering``, ``displays``, ``deferral``, ``companions``,
  ``gradients``, ``dtypes``, ``unawaited``; lines of text: ``telling``
"""
