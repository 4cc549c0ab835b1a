"""Python files of the workflow as they were when its manifests were checked, whatever has been saved since."""
import base64
import importlib.machinery
import os
import sys

_kept = {}


class Loader(importlib.machinery.SourceFileLoader):
    """Loads a file from what was kept. Its compiled form counts only while the disk has the same."""

    def get_data(self, path):
        kept = _kept.get(os.path.realpath(path))
        return super().get_data(path) if kept is None else kept

    def path_stats(self, path):
        kept = _kept.get(os.path.realpath(path))
        if kept is not None and super().get_data(path) != kept:
            raise OSError("%s has changed since it was checked" % path)
        return super().path_stats(path)


_LOADERS = ((importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES),
            (Loader, importlib.machinery.SOURCE_SUFFIXES),
            (importlib.machinery.SourcelessFileLoader, importlib.machinery.BYTECODE_SUFFIXES))


def install(folder, files):
    """Takes the Python files of the folder from files: names relative to it, contents as base64."""
    if not files:
        return
    folder = os.path.realpath(folder)
    for name, data in files.items():
        _kept[os.path.join(folder, *name.split("/"))] = base64.b64decode(data)
    find = importlib.machinery.FileFinder.path_hook(*_LOADERS)

    def hook(path):
        real = os.path.realpath(path)
        if real != folder and not real.startswith(folder + os.sep):
            raise ImportError("not in the folder")
        return find(path)

    sys.path_hooks.insert(0, hook)
    sys.path_importer_cache.clear()
