"""The backend's switches, and what is left on that only serves to find faults."""
