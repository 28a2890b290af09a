"""What the functions and classes of torch and its neighbours are and do, as data: it knows no script."""
