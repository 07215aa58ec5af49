# SPDX-License-Identifier: GPL-2.0
"""A directory that the tools take for the machine, for their tests."""
import os
import shutil
import tempfile
import unittest
from unittest import mock


class Tree(unittest.TestCase):
    """An empty one for each test."""

    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="plugtools-")
        self.addCleanup(shutil.rmtree, self.root)
        root = mock.patch.dict(os.environ, PLUGTOOLS_ROOT=self.root)
        root.start()
        self.addCleanup(root.stop)

    def path(self, name):
        """A path in the tree."""
        return os.path.join(self.root, name)

    def put(self, name, text=""):
        """Make a file."""
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="ascii") as file:
            file.write(text)
