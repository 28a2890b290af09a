"""What one file says by itself: rows of ints and strings, read from the standard library's syntax tree."""
