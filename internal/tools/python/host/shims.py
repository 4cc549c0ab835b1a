"""Stand-ins for the modules of MozaiksAI that tools import. A module of the same name next to the workflows wins."""
import importlib.machinery
import importlib.util
import logging
import sys

from _oneturn_host import operations, questions

STANDARD = ("exc_info", "stack_info", "stacklevel", "extra")


class FieldLogger(logging.LoggerAdapter):
    """A logger whose methods take any keyword as a field of the record."""

    def process(self, msg, kwargs):
        fields = dict(self.extra or {})
        fields.update({key: value for key, value in kwargs.items() if key not in STANDARD})
        for key, value in fields.items():
            if value is not None:
                msg = "%s %s=%s" % (msg, key, str(value).replace("%", "%%"))
        return msg, {key: value for key, value in kwargs.items() if key in STANDARD}


def _logger(kind):
    def get(name=None, *_, **fields):
        name = name or fields.pop("tool_name", None) or fields.pop("workflow_name", None)
        fields.pop("base_logger", None)
        return FieldLogger(logging.getLogger("%s.%s" % (kind, name) if name else kind), fields)
    return get


def log_tool_event(logger, action=None, status=None, message=None, level=logging.INFO, **fields):
    """One line about what a tool does."""
    if isinstance(level, str):
        level = getattr(logging, level.upper(), logging.INFO)
    head = " ".join(str(part) for part in (action, status, message) if part)
    logger.log(level, head.replace("%", "%%"), **(fields if isinstance(logger, FieldLogger) else {}))


def _one_line(kind):
    def log(level="INFO", **fields):
        logging.getLogger(kind).log(getattr(logging, str(level).upper(), logging.INFO), "%s",
                                    " ".join("%s=%s" % field for field in fields.items() if field[1] is not None))
    return log


_LOGGING = {"get_%s_logger" % kind: _logger(kind) for kind in
            ("workflow", "core", "business", "chat", "performance", "transport", "agent", "component", "event", "context")}
_LOGGING.update({name: _one_line(name[4:]) for name in ("log_business_event", "log_chat_interaction", "log_performance_metric")})
_UI = {item.__name__: item for item in (questions.use_ui_tool, questions.emit_ui_surface, questions.emit_tool_progress_event,
                                       operations.UIToolError, operations.UIToolTimeoutError)}
_LEAVES = {
    "mozaiksai.core.workflow.outputs.ui_tools": _UI,
    "core.workflow.outputs.ui_tools": _UI,
    "core.workflow.ui_tools": _UI,
    "logs.logging_config": _LOGGING,
    "logs.tools_logs": {"get_tool_logger": _logger("tool"), "log_tool_event": log_tool_event},
}
_PACKAGES = {leaf.rsplit(".", depth)[0] for leaf in _LEAVES for depth in range(1, leaf.count(".") + 1)}
TOPS = {leaf.partition(".")[0] for leaf in _LEAVES}


class Finder:
    """Finds these modules next to the workflows first, never elsewhere, and falls back to the stand-in."""

    def __init__(self, folders):
        self._folders = folders

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in TOPS:
            return None
        real = importlib.machinery.PathFinder.find_spec(name, self._folders if path is None else path)
        if real is not None:
            return real
        if name in _PACKAGES or name in _LEAVES:
            return importlib.util.spec_from_loader(name, self, is_package=name in _PACKAGES)
        return None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.__dict__.update(_LEAVES.get(module.__name__, {}))


def install(folders):
    sys.meta_path.insert(0, Finder(folders))
