"""Reads a line {"name", "path", "data"} for each file, writes what it shows of itself. Runs no code of the files."""
import sys

sys.path[:] = [p for p in sys.path if p]
import ast
import base64
import json
import os
import stat

MAX_FILE = 4 << 20
MAX_PARTS = 20  # of a dotted name
GUARDS = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}


def parameters(args):
    found = []
    first_default = len(args.posonlyargs) + len(args.args) - len(args.defaults)
    for index, arg in enumerate(args.posonlyargs + args.args):
        kind = "positional_only" if index < len(args.posonlyargs) else "positional"
        found.append({"name": arg.arg, "kind": kind, "default": index >= first_default})
    if args.vararg:
        found.append({"name": args.vararg.arg, "kind": "var_positional", "default": False})
    for arg, default in zip(args.kwonlyargs, args.kw_defaults):
        found.append({"name": arg.arg, "kind": "keyword_only", "default": default is not None})
    if args.kwarg:
        found.append({"name": args.kwarg.arg, "kind": "var_keyword", "default": False})
    return found


ASKING = {"use_ui_tool", "request_input"}  # whichever module defines them
OWN = {"oneturn.ask"}  # a name that others use too


def called(function):
    """Names that a function calls, in nested functions too."""
    return {name_of(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)}


def asking(functions):
    """Names of the functions that ask people, themselves or by others of the list."""
    callers, found = {}, set()
    for name, function in functions.items():
        for other in called(function):
            callers.setdefault(other, set()).add(name)
            if other.rpartition(".")[2] in ASKING or other in OWN:
                found.add(name)
    left = list(found)
    while left:
        more = callers.get(left.pop(), set()) - found
        found |= more
        left += more
    return found


class File:
    def __init__(self):
        self.functions, self.names, self.imports, self.env = {}, set(), set(), set()
        self.modules = {}  # full names of imported modules, with their first line
        self.bodies = {}
        self.hints = Hints()
        self.dynamic = False

    def top(self, body):
        """Names that the statements of the module's own level bind."""
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.names.discard(node.name)
                self.hints.forget(node.name)
                self.bodies[node.name] = node
                self.functions[node.name] = {"params": parameters(node.args), "line": node.lineno,
                                             "async": isinstance(node, ast.AsyncFunctionDef)}
                self.dynamic = self.dynamic or node.name == "__getattr__"
            elif isinstance(node, ast.ClassDef):
                self.bind(node.name)
                self.hints.classes[node.name] = node
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                for alias in node.names:
                    if alias.name == "*":
                        self.dynamic = True
                    else:
                        self.bind(alias.asname or alias.name.partition(".")[0])
                self.hints.imported(node)
            elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    self.assign(target)
                    self.hints.assigned(target, node.value)
            elif type(node).__name__ == "TypeAlias":  # type X = …, since Python 3.12
                self.bind(node.name.id)
                self.hints.assigned(node.name, node.value)
            else:
                for part in ("body", "orelse", "finalbody"):
                    self.top(getattr(node, part, []))
                for handler in getattr(node, "handlers", []):
                    self.top(handler.body)

    def assign(self, target):
        for node in ast.walk(target):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.bind(node.id)
            elif isinstance(node, ast.Call) and name_of(node.func) == "globals":
                self.dynamic = True

    def bind(self, name):
        self.functions.pop(name, None)
        self.names.add(name)
        self.hints.forget(name)

    def schemas(self):
        """Adds to each function what its hints declare, once all types of the file are known."""
        for name, found in self.functions.items():
            found["input"], found["output"] = self.hints.function(self.bodies[name])
            args, self.hints.left = self.bodies[name].args, MAX_FUNCTION
            raw = [(arg.arg, self.hints.raw(arg.annotation)) for arg in args.args + args.kwonlyargs if arg.arg != "context_variables"]
            found["raw"] = {arg: hint for arg, hint in raw if hint} or None

    def module(self, name, line):
        self.imports.add(name.partition(".")[0])
        self.modules[name] = min(line, self.modules.get(name, line))

    def uses(self, node, optional=False):
        """Imports and environment variables anywhere; imports that the code can do without are left out."""
        if isinstance(node, ast.Import) and not optional:
            for alias in node.names:
                self.module(alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom) and not optional and not node.level and node.module:
            self.module(node.module, node.lineno)
        elif isinstance(node, ast.Subscript) and name_of(node.value) in ("os.environ", "environ"):
            self.variable(node.slice)
        elif isinstance(node, ast.Call):
            called = name_of(node.func)
            if called in ("os.getenv", "getenv", "os.environ.get", "environ.get", "os.environ.setdefault",
                          "os.environ.pop") and node.args:
                self.variable(node.args[0])
            elif called in ("exec", "globals().update"):
                self.dynamic = True
        guarded = isinstance(node, ast.Try) and any(guards(h.type) for h in node.handlers)
        checking = isinstance(node, ast.If) and name_of(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
        for field, value in ast.iter_fields(node):
            inside = optional or (field == "body" and (guarded or checking))
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    self.uses(child, inside)

    def variable(self, node):
        node = getattr(node, "value", node) if type(node).__name__ == "Index" else node
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            self.env.add(node.value)


def guards(handled):
    if handled is None:
        return True
    kinds = handled.elts if isinstance(handled, ast.Tuple) else [handled]
    return any(name_of(kind) in GUARDS for kind in kinds)


def name_of(node, parts=MAX_PARTS):
    """A dotted name, of which the first parts are missing if there are too many: none of those is looked for."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and parts:
        return name_of(node.value, parts - 1) + "." + node.attr
    if isinstance(node, ast.Call) and parts:
        return name_of(node.func, parts - 1) + "()"
    return ""


def without_waiting(path, flags):
    """Opening a named pipe would wait for a writer."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def inspect(path, data):
    try:
        if data is not None:
            source = base64.b64decode(data)
        else:
            with open(path, "rb", opener=without_waiting) as stream:
                if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                    return {"error": "it is not a regular file"}
                source = stream.read(MAX_FILE + 1)
        if len(source) > MAX_FILE:
            return {"error": "the file is larger than %d bytes" % MAX_FILE}
        tree = ast.parse(source, path)
        file = File()
        file.top(tree.body)
        file.uses(tree)
        file.schemas()
        for name in asking(file.bodies) & file.functions.keys():
            file.functions[name]["asks"] = True
    except SyntaxError as error:
        return {"error": error.msg or "syntax error", "error_line": error.lineno or 0}
    except OSError as error:
        return {"error": error.strerror or "cannot be read"}
    except (ValueError, RecursionError, MemoryError) as error:
        return {"error": "cannot be parsed: %s" % (str(error) or type(error).__name__)}
    return {"functions": file.functions, "names": sorted(file.names), "imports": sorted(file.imports), "modules": file.modules,
            "env_names": sorted(file.env), "dynamic": file.dynamic}


def main():
    found = {}
    for line in sys.stdin.buffer:
        file = json.loads(line.decode("utf-8"))
        found[file["name"]] = inspect(file["path"], file["data"])
    sys.stdout.buffer.write(json.dumps(found).encode("ascii"))


main()
