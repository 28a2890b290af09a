"""Times a training script before and after, and says whether it is faster and still the same training.

- ``plan``: what is compared, and the versions' files
- ``scratch``: a copy of the project for each version; ``confine``: keeps a run inside it
- ``probe``: what enters the script's process, standard library and torch only
- ``runner``: fresh processes, one after the other; ``samples``: what they bring back
- ``stats``: ratios, intervals, verdicts; ``timing``: pairs until the answer is clear
- ``parity``: whether the losses are those of the same training; ``drift``: rounding or more; ``seeds``: the test over seeds
- ``attribution``: what each fix brings; ``targets``: what to do next; ``machine``: on what it was measured
"""
