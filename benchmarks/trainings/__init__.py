"""Small trainings composed from parts by a seeded generator, run before and after their fixes: see ``differential.py``."""
