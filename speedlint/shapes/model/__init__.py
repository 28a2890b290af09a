"""What networks are made of, wrapped in and compiled to."""
