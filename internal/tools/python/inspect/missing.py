"""Reads {"modules", "venv"} from stdin, writes the modules that cannot be found. Imports and runs none of them,
and no code of site-packages: it looks for their files."""
import sys

sys.path[:] = [p for p in sys.path if p]
import glob
import importlib.machinery
import importlib.util
import json
import os
import site

MAX_TEXT = 1 << 20


def environment(venv):
    """The folders of packages of a virtual environment, and whether the folders of the system count too."""
    folders = glob.glob(os.path.join(glob.escape(venv), "lib*", "python*", "site-packages"))
    settings = text(os.path.join(venv, "pyvenv.cfg")).lower().replace(" ", "")
    return folders, "include-system-site-packages=true" in settings.splitlines()


def system():
    folders = site.getsitepackages() + [site.getusersitepackages()]
    for prefix in {sys.prefix, sys.base_prefix, "/usr", "/usr/local"}:  # as Debian has them
        folders += glob.glob(os.path.join(prefix, "lib", "python3*", "dist-packages"))
    return folders


def text(path):
    """A file that is one, "" for everything else."""
    try:
        if not os.path.isfile(path):
            return ""
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(MAX_TEXT)
    except OSError:
        return ""


def named(folder):
    """What a folder of packages declares: the folders that its .pth files add, and the modules of what is
    installed for editing, which only code of a .pth file would find."""
    added, modules = [], set()
    for path in sorted(glob.glob(os.path.join(glob.escape(folder), "*.pth"))):
        for line in text(path).splitlines():
            line = line.strip()
            if line and not line.startswith(("#", "import ", "import\t")):
                added.append(os.path.join(folder, line))
    for path in glob.glob(os.path.join(glob.escape(folder), "*-info", "top_level.txt")):
        modules.update(text(path).split())
    for path in glob.glob(os.path.join(glob.escape(folder), "__editable__*.py")):
        modules.update(editable(text(path)))
    return added, modules


def editable(source):
    """The modules that a finder of setuptools maps to folders elsewhere."""
    import ast
    try:
        for node in ast.parse(source).body:
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0] if isinstance(node, ast.Assign) else None
            if getattr(target, "id", "") == "MAPPING" and isinstance(node.value, ast.Dict):
                yield from (key.value.partition(".")[0] for key in node.value.keys if isinstance(key, ast.Constant))
    except (SyntaxError, ValueError, RecursionError, AttributeError, IndexError):
        return


request = json.loads(sys.stdin.buffer.read().decode("utf-8"))
own = os.path.dirname(os.path.dirname(os.path.abspath(sys.executable)))
venv = request["venv"] or (own if os.path.isfile(os.path.join(own, "pyvenv.cfg")) else "")
folders, shared = environment(venv) if venv else ([], True)
if shared:
    folders += system()
known = set(getattr(sys, "stdlib_module_names", ())) | set(sys.builtin_module_names)
for folder in list(folders):
    added, modules = named(folder)
    folders += added
    known |= modules
folders = [folder for folder in folders if os.path.isdir(folder)]


def missing(name):
    try:
        return name not in known and importlib.util.find_spec(name) is None \
            and importlib.machinery.PathFinder.find_spec(name, folders) is None
    except (ImportError, ValueError):
        return True


sys.stdout.buffer.write(json.dumps([name for name in request["modules"] if missing(name)]).encode("ascii"))
