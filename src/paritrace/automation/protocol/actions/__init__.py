"""One module per action: its request, its result and the function between them."""
