"""What files of the workflows import from each other: the package `workflows`, and the files next to them."""
import importlib.machinery
import importlib.util
import os
import sys

from _oneturn_host import checked_sources

# What imports in the name of its caller.
GO_BETWEENS = {"importlib", "pkgutil", "pickle", "unittest", "runpy", "pydoc", "multiprocessing"}


class Workflows:
    """Makes `workflows` the folder that holds the workflows, whatever its name is, and finds tool files whose names
    are not module names."""

    def __init__(self, root, files):
        self._root, self._files = root, files

    def find_spec(self, name, path=None, target=None):
        if name in self._files:
            file = self._files[name]
            return importlib.util.spec_from_file_location(name, file, loader=checked_sources.Loader(name, file))
        if name != "workflows":
            return None
        init = os.path.join(self._root, "__init__.py")
        if os.path.isfile(init):
            return importlib.util.spec_from_file_location(name, init, submodule_search_locations=[self._root])
        spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [self._root]
        return spec


class Siblings:
    """Finds files of the workflow's folders by their bare names, for the files of the workflows alone and after all
    that is installed: a file that is named like a library hides nothing."""

    def __init__(self, root, folders):
        self._root, self._folders = root, folders
        self._own = {os.path.realpath(folder) for folder in folders} | {os.path.dirname(root)}

    def find_spec(self, name, path=None, target=None):
        if path is not None:
            return None
        find = importlib.machinery.PathFinder.find_spec
        installed = find(name, [entry for entry in sys.path if os.path.realpath(entry) not in self._own])
        if installed is not None and installed.loader is not None:
            return installed
        importer = self._importer()
        if importer is None:
            return None
        found = find(name, self._folders)
        if found is not None and found.origin is not None and os.path.realpath(found.origin) == importer:
            return None  # a file that imports a library of the same name does not mean itself
        return found

    def _importer(self):
        """The file of the workflows that imports, None for other code."""
        frame = sys._getframe(2)
        while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in GO_BETWEENS | {"_frozen_importlib"}:
            frame = frame.f_back
        if frame is None or frame.f_globals["__name__"] == "__main__":  # the host, or a process of multiprocessing
            return ""
        file = frame.f_globals.get("__file__")
        file = os.path.realpath(file) if file else ""
        ours = file.startswith(self._root + os.sep) and not file.startswith(sys.prefix + os.sep)
        return file if ours and (os.sep + "site-packages" + os.sep) not in file else None


def install(root, folders, files):
    sys.meta_path.insert(0, Workflows(root, files))
    at = [finder is importlib.machinery.PathFinder for finder in sys.meta_path]
    sys.meta_path.insert(at.index(True) if True in at else len(at), Siblings(os.path.realpath(root), folders))
