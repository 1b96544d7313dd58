"""`python -m paritrace.store.restore STORE DEST`: the same as `paritrace store restore`."""

import sys
from importlib import import_module

if __name__ == "__main__":
    # no layer below the command line imports it: it is loaded by its name, where this module is the program
    import_module("paritrace.cli.entry").main(["store", "restore", *sys.argv[1:]])
