# SPDX-License-Identifier: GPL-2.0
"""A module's name says which file is meant: rooms.py."""
import ast
import collections
import glob
import os
import sys
import unittest

import rooms


def modules(places):
    """{name: files} of what these directories offer to import."""
    found = collections.defaultdict(list)
    for place in places:
        for path in glob.glob(place + "/*.py") + glob.glob(
                place + "/*/__init__.py"):
            name = path.removesuffix("/__init__.py").removesuffix(".py")
            found[os.path.basename(name)].append(path)
    return found


class Names(unittest.TestCase):
    """Of modules."""

    def test_rooms_exist(self):
        """None was moved away."""
        for room in rooms.ROOMS:
            self.assertTrue(os.path.isdir(room), room)

    def test_unique(self):
        """No two rooms have a module of one name, with their
        tests, nor has Python's library; series.py is a program, which nobody imports."""
        tests = glob.glob(rooms.ROOT + "/*/tests") + [
            rooms.ROOT + "/tools/block/tests"]
        for name, paths in modules([*rooms.ROOMS, *tests]).items():
            if name != "series":
                self.assertEqual(len(paths), 1, paths)
            self.assertNotIn(name, sys.stdlib_module_names)


def imported(path):
    """The modules that a file imports, wherever in it."""
    with open(path, encoding="utf-8") as text:
        nodes = list(ast.walk(ast.parse(text.read())))
    return {alias.name for node in nodes if isinstance(node, ast.Import)
            for alias in node.names} | {
                node.module for node in nodes
                if isinstance(node, ast.ImportFrom) and not node.level}


def circle(graph, path):
    """Names that import each other in turn, and begin with a path; or None."""
    for name in graph.get(path[-1], ()):
        found = [*path[path.index(name):], name] if name in path else \
            circle(graph, [*path, name])
        if found:
            return found
    return None


class Imports(unittest.TestCase):
    """Of the modules of the rooms."""

    def test_no_circle(self):
        """None waits for another that waits for it."""
        graph = {name: imported(path) for name, (path, *_) in
                 modules(rooms.ROOMS).items()}
        for name in graph:
            self.assertIsNone(circle(graph, [name]))

    def test_a_circle_is_found(self):
        """The check itself can fail."""
        graph = {"a": {"b"}, "b": {"c", "os"}, "c": {"b"}}
        self.assertEqual(circle(graph, ["a"]), ["b", "c", "b"])
