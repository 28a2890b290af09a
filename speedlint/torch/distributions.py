"""torch's probability distributions: what they give, and whose constructors ask for the truth of a check."""

from __future__ import annotations

PACKAGE = "torch.distributions."
GIVEN = frozenset("sample rsample sample_n log_prob entropy perplexity cdf icdf enumerate_support".split())
"""The methods of a distribution that give tensors, where its parameters lie."""
PARAMETERS = frozenset("mean mode variance stddev probs logits loc scale".split())
"""The attributes of a distribution that are tensors."""
CHECKED = {
    "Normal": ("loc", "scale"),
    "LogNormal": ("loc", "scale"),
    "Laplace": ("loc", "scale"),
    "Gumbel": ("loc", "scale"),
    "Cauchy": ("loc", "scale"),
    "HalfNormal": ("scale",),
    "Uniform": ("low", "high"),
    "Categorical": ("probs", "logits"),
    "Bernoulli": ("probs", "logits"),
    "Geometric": ("probs", "logits"),
    "Beta": ("concentration1", "concentration0"),
    "Gamma": ("concentration", "rate"),
    "Dirichlet": ("concentration",),
    "Exponential": ("rate",),
    "Poisson": ("rate",),
}
"""The parameters, in their order, that are tensors and are checked. Left out is what waits all the same where nothing is to
be checked: a normal of several dimensions factorizes its covariance, one-hot categories are checked by an inner one."""
CHECKED_SINCE = (1, 8)
"""The release from which on arguments are checked where nothing is said (its release notes)."""


def checked(name: str | None) -> tuple[str, ...]:
    """The parameters that a constructor checks, by its full name; none of what is no such constructor."""
    if name is None or not name.startswith(PACKAGE):
        return ()
    return CHECKED.get(name.rpartition(".")[2], ())
