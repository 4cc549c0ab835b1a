"""Finds, imports and describes the functions that are tools."""
import importlib
import importlib.machinery
import importlib.util
import os
import sys
import traceback
import types

from _oneturn_host import tool_function, shims, workflow_imports, checked_sources, multiprocessing_spawn


class LoadError(Exception):
    """The tool cannot be loaded; the message has the reason."""


class Loader:
    def __init__(self, config, files):
        """config has the place of the workflow, files has the paths of tool modules that were imported, by their names."""
        root, folder = config["root"], config["folder"]
        self._root, self._folder, self._workflow = os.path.realpath(root), folder, config["workflow"]
        self._entries, self._files = {}, files
        tools, parent = os.path.join(folder, "tools"), os.path.dirname(root)
        sys.path.append(parent)
        workflow_imports.install(root, [tools, folder], files)
        checked_sources.install(folder, config["sources"])
        shims.install([tools, folder, root, parent])
        multiprocessing_spawn.install({name: config[name] for name in ("root", "folder", "workflow", "sources")}, files)

    def known(self, file, function):
        return self._entries.get((file, function))

    def entry(self, file, function):
        found = self._entries.get((file, function))
        if found is None:
            module = self._module(self._path(file), file)
            target = getattr(module, function, None)
            if not callable(target):
                raise LoadError("%s has no function %s" % (file, function))
            found = self._entries[file, function] = tool_function.Entry(target, function)
        return found

    def _path(self, file):
        candidates = [os.path.join(self._folder, file), os.path.join(self._folder, "tools", file)]
        if file.startswith(self._workflow + "/"):
            candidates.insert(0, os.path.join(self._root, file))
        else:  # one that several workflows share
            candidates.append(os.path.join(self._root, file))
        for candidate in candidates:
            path = os.path.realpath(candidate)
            if not checked_sources.has(path) and not os.path.isfile(path):
                continue
            if os.path.commonpath([path, self._root]) != self._root:
                raise LoadError("%s lies outside the workflows folder" % file)
            return path
        raise LoadError("%s is neither in the workflow's folder nor in its tools folder; put it into %s"
                        % (file, os.path.join(self._folder, "tools")))

    def _module(self, path, file):
        parts = os.path.relpath(path, self._root)[:-3].split(os.sep)
        name = ".".join(["workflows"] + [part.replace(".", "_") for part in parts])
        package = self._package(name.rpartition(".")[0], os.path.dirname(path))
        found = sys.modules.get(name)
        if found is not None:
            if os.path.realpath(getattr(found, "__file__", None) or "") == path:
                return found
            name += "__file"  # a package of the same name is next to the file
        try:
            loader = checked_sources.Loader(name, path) if path.endswith(".py") else None
            spec = importlib.util.spec_from_file_location(name, path, loader=loader)
            if spec is None:
                raise LoadError("%s is not a Python file" % file)
            module = importlib.util.module_from_spec(spec)
            sys.modules[name], self._files[name] = module, path
            spec.loader.exec_module(module)
        except LoadError:
            raise
        except Exception as error:
            sys.modules.pop(name, None)
            traceback.print_exc()
            raise LoadError(describe(error, file)) from error
        except BaseException:
            sys.modules.pop(name, None)
            raise
        setattr(package, name.rpartition(".")[2], module)
        return module

    def _package(self, name, folder):
        """The package around a tool file. A package whose own code fails is replaced by a bare one."""
        try:
            return importlib.import_module(name)
        except (Exception, SystemExit) as error:
            print("%s: its __init__.py failed and is ignored: %s: %s" % (name, type(error).__name__, error),
                  file=sys.stderr)
            parent = name.rpartition(".")[0]
            if parent:
                self._package(parent, os.path.dirname(folder))
            bare = types.ModuleType(name)
            bare.__path__ = [folder]
            sys.modules[name] = bare
            return bare


def describe(error, file):
    text = "%s: %s (while importing %s)" % (type(error).__name__, error, file)
    if isinstance(error, ModuleNotFoundError) and error.name:
        top = error.name.partition(".")[0]
        if top in shims.TOPS:  # what a package index has under this name is another's
            return text + "; put the package %s of MozaiksAI into the workflows folder or next to it: there are stand-ins for some of its modules only" % top
        text += "; install %s for %s or set another interpreter" % (top, sys.executable)
    return text
