"""What a training computes in, and how that is changed."""
