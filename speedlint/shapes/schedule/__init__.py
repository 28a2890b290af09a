"""How often something is done, and what that costs."""
