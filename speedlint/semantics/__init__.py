"""What a training script means: the questions every rule asks."""
