"""Processes that multiprocessing starts as new ones (spawn, forkserver) find the workflows as this one does."""
import importlib.machinery
import sys

# Modules that prepare such a process, in Python and in libraries made after it.
PREPARING = {"multiprocessing.spawn", "multiprocess.spawn", "loky.backend.spawn", "joblib.externals.loky.backend.spawn"}

# Run by unpickling, before anything that needs it: makes the host's modules and the finders of the workflow.
PRELUDE = """
import sys, types
if "_oneturn_host" not in sys.modules:
    package = sys.modules["_oneturn_host"] = types.ModuleType("_oneturn_host")
    package.__path__, package.modules = [], modules
    for name, source in modules:
        if name != "serve":
            module = sys.modules["_oneturn_host." + name] = types.ModuleType("_oneturn_host." + name)
            exec(compile(source, "<oneturn host " + name + ">", "exec"), module.__dict__)
    sys.modules["_oneturn_host.api"].install()
    sys.modules["_oneturn_host.load"].Loader(config, files)
"""


class Prelude:
    """Becomes a run of the prelude where it is unpickled."""

    def __init__(self, config, files):
        self._config, self._files = config, files

    def __reduce__(self):
        modules = sys.modules["_oneturn_host"].modules
        return exec, (PRELUDE, {"modules": modules, "config": self._config, "files": dict(self._files)})


class Finder:
    """Has the modules that prepare a process send the prelude along. They are found when something imports them."""

    def __init__(self, prelude):
        self._prelude = prelude

    def find_spec(self, name, path=None, target=None):
        if name not in PREPARING:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            extend(module, self._prelude)
        spec.loader.exec_module = exec_module
        return spec


def extend(module, prelude):
    prepare = module.get_preparation_data
    module.get_preparation_data = lambda *args, **kwargs: dict(prepare(*args, **kwargs), oneturn=prelude)


def install(config, files):
    """config is the one of the loader, files are the paths of tool modules by their names, then and later."""
    prelude = Prelude(config, files)
    sys.meta_path.insert(0, Finder(prelude))
    for name in PREPARING & sys.modules.keys():  # a process that was started so may start others
        extend(sys.modules[name], prelude)
