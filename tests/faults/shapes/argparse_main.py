"""argparse, __name__, __file__, sys.argv, pickling of a class of the main module."""
import argparse
import os
import pickle
import sys


class Config:
    def __init__(self, width):
        self.width = width


parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, default=3)
options = parser.parse_args()
print(__name__, os.path.basename(__file__), os.path.basename(sys.argv[0]), sys.argv[1:], parser.prog)
print(pickle.loads(pickle.dumps(Config(options.width))).width, Config.__module__)
print(os.path.basename(sys.path[0]) == os.path.basename(os.path.dirname(os.path.abspath(__file__))))
print(sys.modules["__main__"].Config is Config, __spec__ is None, __doc__ is not None)
