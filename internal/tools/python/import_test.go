package python_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools/python"
)

func TestEveryWayToImportANeighbourWorks(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{},
		"WF/__init__.py", "print('workflow package')\n",
		"WF/tools/__init__.py", "print('printed on import')\nimport sys; print('and here', file=sys.stderr)\nfrom .near import NEAR\n",
		"WF/tools/near.py", "NEAR = 'near'\nLOADED = []\n",
		"WF/tools/my-odd.name.py", "from .near import LOADED\nLOADED.append('odd')\ndef odd(): return LOADED\n",
		"WF/tools/deep/down.py", "from ..near import NEAR\ndef down(): return NEAR\n",
		"WF/sibling.py", "SIBLING = 'sibling'\ndef top(): return SIBLING\n",
		"Other/tools/far.py", "FAR = 'far'\n",
		"../shared_code.py", "SHARED = 'shared'\n",
		"WF/tools/t.py", `
import os, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from .near import NEAR, LOADED
from workflows.WF.tools.near import LOADED as SAME
from workflows.WF.tools import NEAR as PACKED
from workflows.WF.sibling import SIBLING
from workflows.Other.tools.far import FAR
import near, sibling, shared_code
def all_of_it(): return [NEAR, SAME is LOADED, PACKED, SIBLING, FAR, near.NEAR, sibling.SIBLING, shared_code.SHARED, __name__]
def loaded(): return LOADED
def cwd(): return os.getcwd()
`)
	require.JSONEq(t, `["near",true,"near","sibling","far","near","sibling","shared","workflows.WF.tools.t"]`, k.value("all_of_it", `{}`))
	for file, function := range map[string]string{
		"my-odd.name.py": "odd", "tools/my-odd.name.py": "odd", "WF/tools/my-odd.name.py": "odd", "deep/down.py": "down",
		"sibling.py": "top", "WF/sibling.py": "top",
	} {
		_, err := k.pool.Tool("WF", file, function).Invoke(t.Context(), newCall(t, function, `{}`))
		require.NoError(t, err, file)
	}
	require.JSONEq(t, `["odd"]`, k.value("loaded", `{}`), "the file ran once and shares its neighbour's state")
	root, err := filepath.EvalSymlinks(filepath.Dir(k.root))
	require.NoError(t, err)
	require.JSONEq(t, `"`+root+`"`, k.value("cwd", `{}`))
}

func TestBrokenPackageDoesNotBreakItsTools(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{},
		"WF/tools/__init__.py", "from .missing import nothing\n",
		"WF/tools/near.py", "NEAR = 1\n",
		"WF/tools/t.py", "from .near import NEAR\ndef ok(): return NEAR\n",
		"WF/tools/bad.py", "def broken(:\n")
	require.Equal(t, "1", k.value("ok", `{}`))
	_, err := k.pool.Tool("WF", "bad.py", "broken").Invoke(t.Context(), newCall(t, "broken", `{}`))
	require.Contains(t, message(t, err, events.CodeToolError), "SyntaxError: ")
	_, err = k.pool.Tool("WF", "none.py", "x").Invoke(t.Context(), newCall(t, "x", `{}`))
	require.Contains(t, message(t, err, events.CodeToolError), "none.py is neither in")
}

func TestFilesOutsideTheRootAreRefused(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "../evil.py", "def run(): return 'ran'\n", "WF/tools/t.py", "")
	require.NoError(t, os.Symlink(filepath.Join(k.root, "..", "evil.py"), filepath.Join(k.root, "WF", "tools", "link.py")))
	for _, file := range []string{"../../evil.py", "../../../evil.py", "link.py", filepath.Join(filepath.Dir(k.root), "evil.py")} {
		_, err := k.pool.Tool("WF", file, "run").Invoke(t.Context(), newCall(t, "run", `{}`))
		require.Regexp(t, "outside the workflows folder|is neither in", message(t, err, events.CodeToolError), file)
	}
	for _, workflow := range []string{"..", "", "WF/tools", "No"} {
		_, err := k.pool.Tool(workflow, "evil.py", "run").Invoke(t.Context(), newCall(t, "run", `{}`))
		require.Contains(t, message(t, err, events.CodeToolError), "the tool was not entered", workflow)
	}
}

func TestRootMayBeTheWorkflowItself(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", "from workflows.WF.tools.near import N\ndef n(): return N\n", "WF/tools/near.py", "N=1\n")
	alone := newKit(t, python.Options{Root: filepath.Join(k.root, "WF")})
	require.Equal(t, "1", alone.value("n", `{}`))
}

func TestModulesOfMozaiksAIHaveShims(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", `
from logs.logging_config import get_workflow_logger, get_core_logger, get_business_logger, log_business_event
from logs.tools_logs import get_tool_logger, log_tool_event
from mozaiksai.core.workflow.outputs.ui_tools import use_ui_tool, UIToolError
from core.workflow.outputs.ui_tools import emit_ui_surface, emit_tool_progress_event
from core.workflow.ui_tools import UIToolError as Same, UIToolTimeoutError
log = get_workflow_logger(workflow_name="WF")
def logs():
    log.info("hello %s", "you", chat_id="50%")
    get_core_logger("x").warning("core")
    get_business_logger("generator").error("business")
    log_business_event(event_type="E", description="50% done", context={"a": 1}, level="WARNING")
    log_tool_event(get_tool_logger(tool_name="t", chat_id="c"), action="started", status="ok", level="WARNING", n=1)
    return Same is UIToolError
async def ask():
    return await use_ui_tool("Form", {"a": 1}, chat_id="c", workflow_name="WF")
def late(): return issubclass(UIToolTimeoutError, UIToolError) and issubclass(UIToolTimeoutError, TimeoutError)
async def caught():
    try: await emit_ui_surface("Form", {})
    except UIToolError as e: return str(e)
`)
	require.Equal(t, "true", k.value("logs", `{}`))
	require.Contains(t, k.fails("ask", `{}`, events.CodeToolError), "the caller of this tool supports no questions")
	require.Contains(t, k.value("caught", `{}`), "no host")
	require.Equal(t, "true", k.value("late", `{}`))
}

func TestModuleNextToTheWorkflowsWinsOverItsStandIn(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{},
		"../core/workflow/ui_tools.py", "def use_ui_tool(): return 'real'\n",
		"../logs/today.log", "",
		"WF/tools/t.py", `
from core.workflow.ui_tools import use_ui_tool
from core.workflow.outputs.ui_tools import UIToolError
from logs.logging_config import get_core_logger
def real(): return use_ui_tool()
`)
	require.Equal(t, `"real"`, k.value("real", `{}`))
}
