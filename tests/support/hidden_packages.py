"""Code for a process of its own: packages that are installed there cannot be imported."""

HIDE = """
import sys

class Hiding:
    def __init__(self, finder, names):
        self.finder, self.names = finder, names

    def __getattr__(self, name):
        return getattr(self.finder, name)

    def find_spec(self, name, path=None, target=None):
        return None if name.split(".")[0] in self.names else self.finder.find_spec(name, path, target)

def hide(names):
    sys.meta_path[:] = [Hiding(finder, names) for finder in sys.meta_path]
"""
