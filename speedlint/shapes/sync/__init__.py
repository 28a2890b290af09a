"""Where the host waits for the GPU, and how it can do without."""
