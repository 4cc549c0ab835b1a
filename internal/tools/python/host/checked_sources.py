"""Python files of the workflow as they were when its manifests were checked, whatever has been saved since."""
import base64
import importlib.machinery
import importlib.util
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


def has(path):
    """Whether the file was kept: then it is there, even if its folder is being renamed."""
    return path in _kept


class Finder(importlib.machinery.FileFinder):
    """Finds what was kept also while the disk does not have it."""

    def find_spec(self, fullname, target=None):
        found = super().find_spec(fullname, target)
        if found is not None:
            return found
        base = os.path.join(os.path.realpath(self.path), fullname.rpartition(".")[2])
        package = os.path.join(base, "__init__.py")
        if has(package):
            return importlib.util.spec_from_file_location(
                fullname, package, loader=Loader(fullname, package), submodule_search_locations=[base])
        if has(base + ".py"):
            return importlib.util.spec_from_file_location(
                fullname, base + ".py", loader=Loader(fullname, base + ".py"))
        if any(path.startswith(base + os.sep) for path in _kept):
            found = importlib.machinery.ModuleSpec(fullname, None, is_package=True)
            found.submodule_search_locations = [base]
        return found


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

    def hook(path):
        real = os.path.realpath(path)
        if real not in (folder, os.path.dirname(folder)) and not real.startswith(folder + os.sep):
            raise ImportError("not in the folder")
        return Finder(path, *_LOADERS)

    sys.path_hooks.insert(0, hook)
    sys.path_importer_cache.clear()
