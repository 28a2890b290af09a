"""Small trainings, and changes whose effect on them is known: see ``parity_tiers.py``."""
