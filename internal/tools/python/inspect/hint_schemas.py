"""Makes JSON Schemas of type hints, from the syntax alone. What it does not know admits everything."""
import sys

sys.path[:] = [p for p in sys.path if p]
import ast
import math

TYPING = {"typing", "typing_extensions", "collections", "collections.abc", "builtins", "types"}
PLAIN = {"str": {"type": "string"}, "int": {"type": "integer"}, "float": {"type": "number"}, "bool": {"type": "boolean"},
         "None": {"type": "null"}, "NoneType": {"type": "null"}, "list": {"type": "array"}, "dict": {"type": "object"},
         "tuple": {"type": "array"}, "set": {"type": "array"}, "frozenset": {"type": "array"}, "LiteralString": {"type": "string"}}
LISTS = {"list", "List", "Sequence", "MutableSequence", "Iterable", "Collection", "set", "Set", "frozenset", "FrozenSet", "AbstractSet"}
MAPS = {"dict", "Dict", "Mapping", "MutableMapping", "DefaultDict", "OrderedDict"}
WRAPPERS = {"Required", "NotRequired", "ReadOnly", "Final", "Annotated"}  # around the type of a hint
UNBUILT = {"bytes", "bytearray", "memoryview", "complex", "range", "slice"}
MAX_DEPTH, MAX_FUNCTION, MAX_FILE_HINTS, MAX_TEXT = 16, 500, 20000, 500


def last(node):
    """The last part of a dotted name."""
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def literal(node):
    """A value that JSON has as well, else Ellipsis."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return ...
    if value is None or isinstance(value, bool) or isinstance(value, int) and abs(value) < 1 << 53:
        return value
    if isinstance(value, str) and len(value) <= MAX_TEXT or isinstance(value, float) and math.isfinite(value):
        return value
    return ...


def parts(schema):
    """The alternatives that a schema consists of."""
    if list(schema) == ["anyOf"]:
        return schema["anyOf"]
    if list(schema) == ["type"] and isinstance(schema["type"], list):
        return [{"type": name} for name in schema["type"]]
    return [schema]


def either(schemas):
    """The schema of what fits one of them."""
    found = []
    for schema in schemas:
        for part in parts(schema):
            if not part:
                return {}
            if part not in found:
                found.append(part)
    if len(found) == 1:
        return found[0]
    if all(list(part) == ["type"] and isinstance(part["type"], str) for part in found):
        return {"type": [part["type"] for part in found]}
    return {"anyOf": found}


class Hints:
    """The types that a file names."""

    def __init__(self):
        self.classes, self.aliases, self.renamed, self.foreign = {}, {}, {}, set()
        self.left, self.all_left = MAX_FUNCTION, MAX_FILE_HINTS
        self.inside = set()

    def forget(self, name):
        self.classes.pop(name, None)
        self.aliases.pop(name, None)
        self.renamed.pop(name, None)
        self.foreign.discard(name)

    def imported(self, node):
        for alias in node.names:
            name = alias.asname or alias.name
            self.forget(name)
            if isinstance(node, ast.ImportFrom) and node.module in TYPING and not node.level:
                self.renamed[name] = alias.name
            elif isinstance(node, ast.ImportFrom):
                self.foreign.add(name)

    def assigned(self, target, value):
        if isinstance(target, ast.Name) and value is not None:
            self.aliases[target.id] = value

    def function(self, node):
        """The schemas of a function's parameters and its result, None for a result that is not declared."""
        self.left = MAX_FUNCTION
        properties, required = {}, []
        args = node.args
        named = args.posonlyargs + args.args
        defaults = [None] * (len(named) - len(args.defaults)) + list(args.defaults)
        pairs = list(zip(named, defaults))[len(args.posonlyargs):] + list(zip(args.kwonlyargs, args.kw_defaults))
        if named and named[0].arg == "self":
            pairs = [pair for pair in pairs if pair[0] is not named[0]]
        for arg, default in pairs:
            if arg.arg == "context_variables":
                continue
            schema = self.hint(arg.annotation)
            value = ... if default is None else literal(default)
            if value is None:
                schema = either([schema, {"type": "null"}])
            elif value is not ... and arg.annotation is not None:
                schema = dict(schema, default=value)
            properties[arg.arg] = schema
            if default is None:
                required.append(arg.arg)
        schema = {"type": "object", "properties": properties}
        if required:
            schema["required"] = required
        if not args.kwarg:
            schema["additionalProperties"] = False
        elif self.hint(args.kwarg.annotation):
            schema["additionalProperties"] = self.hint(args.kwarg.annotation)
        return schema, (self.hint(node.returns) or None)

    def spent(self):
        """Whether what the file names has taken all the steps that it may take."""
        self.left -= 1
        self.all_left -= 1
        return self.left < 0 or self.all_left < 0

    def raw(self, node, depth=0):
        """A type in a hint that the host does not build, so that the parameter gets what JSON has; "" if there is none."""
        if depth > MAX_DEPTH or node is None or self.spent():
            return ""
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) <= MAX_TEXT:
            try:
                return self.raw(ast.parse(node.value.strip(), mode="eval").body, depth + 1)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return ""
        if isinstance(node, ast.Name):
            if node.id in self.classes:
                return node.id if self.ordinary(self.classes[node.id]) else ""
            if node.id in self.aliases:
                return self.raw(self.aliases[node.id], depth + 1)
            return node.id if node.id in UNBUILT and node.id not in self.foreign else ""
        if isinstance(node, ast.Subscript) and self.known(node.value) == "Literal":
            return ""
        for child in ast.iter_child_nodes(node):
            found = self.raw(child, depth + 1)
            if found:
                return found
        return ""

    def ordinary(self, node, depth=0):
        """Whether a class is none that the host builds. Bases and decorators of other modules may make it one."""
        if node.decorator_list or node.keywords or depth > MAX_DEPTH or self.spent():
            return False
        for base in node.bases:
            name = last(base)
            if name in self.classes and self.classes[name] is not node:
                if not self.ordinary(self.classes[name], depth + 1):
                    return False
            elif name not in ("object", "ABC", "Protocol", "Exception"):
                return False
        return True

    def hint(self, node, depth=0):
        if self.spent() or node is None or depth > MAX_DEPTH:
            return {}
        if isinstance(node, ast.Constant):
            return self.constant(node.value, depth)
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self.name(node, depth)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return either([self.hint(node.left, depth + 1), self.hint(node.right, depth + 1)])
        if isinstance(node, ast.Subscript):
            return self.subscript(node, depth)
        if isinstance(node, ast.Call) and last(node.func) == "NewType" and len(node.args) == 2:
            return self.hint(node.args[1], depth + 1)
        return {}

    def constant(self, value, depth):
        if value is None:
            return {"type": "null"}
        if not isinstance(value, str) or len(value) > 4 * MAX_TEXT:
            return {}
        try:
            return self.hint(ast.parse(value.strip(), mode="eval").body, depth + 1)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return {}

    def known(self, node):
        """What a name means in typing or builtins, "" for one of the file or of another module."""
        name = last(node)
        if isinstance(node, ast.Name):
            if name in self.classes or name in self.aliases or name in self.foreign:
                return ""
            return self.renamed.get(name, name)
        return name

    def name(self, node, depth):
        own = last(node) if isinstance(node, ast.Name) else ""
        if own in self.inside:  # it holds itself
            return {"type": "object"} if own in self.classes else {}
        if own in self.classes or own in self.aliases:
            self.inside.add(own)
            try:
                if own in self.classes:
                    return self.record(self.classes[own], depth) or {}
                return self.hint(self.aliases[own], depth + 1)
            finally:
                self.inside.discard(own)
        known = self.known(node)
        if known in PLAIN:
            return dict(PLAIN[known])
        if known in LISTS or known == "Tuple":
            return {"type": "array"}
        return {"type": "object"} if known in MAPS else {}

    def subscript(self, node, depth):
        known = self.known(node.value)
        args = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if not args:
            return {}
        inner = lambda arg: self.hint(arg, depth + 1)
        if known == "Optional":
            return either([inner(args[0]), {"type": "null"}])
        if known == "Union":
            return either([inner(arg) for arg in args])
        if known == "Literal":
            values = [literal(arg) for arg in args]
            return {} if ... in values else {"enum": values}
        if known in WRAPPERS:
            return self.described(inner(args[0]), args[1:])
        if known in ("tuple", "Tuple"):
            if len(args) == 2 and isinstance(args[1], ast.Constant) and args[1].value is ...:
                return dict({"type": "array"}, **self.part("items", args[0], depth))
            return {"type": "array", "prefixItems": [inner(arg) for arg in args], "minItems": len(args), "maxItems": len(args)}
        if known in LISTS:
            return dict({"type": "array"}, **self.part("items", args[0], depth))
        if known in MAPS:
            return dict({"type": "object"}, **(self.part("additionalProperties", args[1], depth) if len(args) == 2 else {}))
        return {}

    def part(self, key, node, depth):
        schema = self.hint(node, depth + 1)
        return {key: schema} if schema else {}

    def described(self, schema, notes):
        for note in notes:
            if isinstance(note, ast.Call):  # Doc("…"), Field(description="…")
                texts = [k.value for k in note.keywords if k.arg == "description"]
                note = texts[0] if texts else note.args[0] if last(note.func) == "Doc" and note.args else note
            if isinstance(note, ast.Constant) and isinstance(note.value, str):
                return dict(schema, description=note.value[:MAX_TEXT])
        return schema

    def record(self, node, depth):
        """The schema of a TypedDict or dataclass, None for another class."""
        bases = [self.known(base) or last(base) for base in node.bases]
        typed = "TypedDict" in bases
        data = any(last(d.func if isinstance(d, ast.Call) else d) == "dataclass" for d in node.decorator_list)
        properties, required = {}, {}  # names in order
        for base in bases:
            above = None
            if base in self.classes and base not in self.inside and depth < MAX_DEPTH and not self.spent():
                self.inside.add(base)
                above = self.record(self.classes[base], depth + 1)
                self.inside.discard(base)
            if above is not None:
                typed = typed or not data
                properties.update(above["properties"])
                required.update(dict.fromkeys(above.get("required", [])))
        if not typed and not data:
            return None
        total = not any(k.arg == "total" and literal(k.value) is False for k in node.keywords)
        for field in node.body:
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                self.field(field, typed, total, depth, properties, required)
        schema = {"type": "object", "properties": properties}
        return dict(schema, required=list(required)) if required else schema

    def field(self, field, typed, total, depth, properties, required):
        name = field.target.id
        words, at = [], field.annotation
        while isinstance(at, ast.Subscript) and self.known(at.value) in WRAPPERS | {"ClassVar", "InitVar"}:
            words.append(self.known(at.value))
            at = at.slice.elts[0] if isinstance(at.slice, ast.Tuple) and at.slice.elts else at.slice
        if "ClassVar" in words or self.known(at) in ("ClassVar", "KW_ONLY"):
            return
        properties[name] = self.hint(field.annotation, depth + 1)
        must = (total or "Required" in words) and "NotRequired" not in words if typed else field.value is None or without_default(field.value)
        if must:
            required[name] = None
        else:
            required.pop(name, None)


def without_default(value):
    """Whether a dataclass field has to be given: field() without a default."""
    if not isinstance(value, ast.Call) or last(value.func) != "field":
        return False
    return not any(k.arg in ("default", "default_factory") for k in value.keywords)
