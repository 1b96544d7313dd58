"""CA-14: the same bits with and without capture, for many kinds of training, printed as a table."""
