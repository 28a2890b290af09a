"""Lightning, Hugging Face, Accelerate and Fabric: what they do themselves, and what they are told."""
