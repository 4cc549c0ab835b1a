package python_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools/python"
)

func (k *kit) valueOf(file, function string) string {
	k.tb.Helper()
	result, err := k.pool.Tool("WF", file, function).Invoke(k.tb.Context(), newCall(k.tb, function, `{}`))
	require.NoError(k.tb, err)
	return string(result.Value)
}

// TestFileNamedLikeALibraryHidesNothing, in whatever folder and by whatever file it is imported.
func TestFileNamedLikeALibraryHidesNothing(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{},
		"WF/tools/email.py", "from email.message import EmailMessage\ndef mail(): return EmailMessage().get_content_type()\n",
		"WF/tools/fetch.py", "import urllib.request\ndef fetch(): return urllib.request.Request('http://a.example/').host\n",
		"WF/tools/statistics.py", "import statistics\nMINE = 'mine'\ndef mean(): return statistics.mean([1, 3])\n",
		"WF/string.py", "import string\ndef digits(): return string.digits\n",
		"WF/tools/colorsys/__init__.py", "PACKAGE = 'mine'\n",
		"WF/tools/t.py", `
import os, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # as many files do
import colorsys, importlib
from .statistics import MINE
from . import colorsys as own
def named(): return [MINE, importlib.import_module("statistics").mean([1]), own.PACKAGE, hasattr(colorsys, "rgb_to_hsv")]
`)
	require.Equal(t, `"text/plain"`, k.valueOf("email.py", "mail"))
	require.Equal(t, `"a.example"`, k.valueOf("fetch.py", "fetch"))
	require.Equal(t, "2", k.valueOf("statistics.py", "mean"))
	require.Equal(t, `"0123456789"`, k.valueOf("string.py", "digits"))
	require.JSONEq(t, `["mine",1,"mine",true]`, k.value("named", `{}`))
}

// TestOnlyFilesOfTheWorkflowsFindTheirNeighbours: a library that does without an optional module does
// not find a tool file of that name, and a file does not find itself.
func TestOnlyFilesOfTheWorkflowsFindTheirNeighbours(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{},
		"../library.py", "try:\n    import optional\nexcept ImportError:\n    optional = None\ndef has(): return optional is not None\n",
		"../near/README", "a folder without code hides no file",
		"WF/tools/optional.py", "raise RuntimeError('run by a library')\n",
		"WF/tools/absent_library.py", "import absent_library\ndef pay(): return absent_library.pay()\n",
		"WF/tools/near.py", "NEAR = 'near'\n",
		"WF/tools/helpers/deep.py", "from near import NEAR\n",
		"WF/tools/t.py", `
import importlib, pickle, library, near
from helpers.deep import NEAR
class Kept: pass
def ok(): return [library.has(), near.NEAR, NEAR, importlib.import_module("near") is near, type(pickle.loads(pickle.dumps(Kept()))) is Kept]
`)
	require.JSONEq(t, `[false,"near","near",true,true]`, k.value("ok", `{}`))
	_, err := k.pool.Tool("WF", "absent_library.py", "pay").Invoke(t.Context(), newCall(t, "pay", `{}`))
	require.Contains(t, message(t, err, events.CodeToolError), "No module named 'absent_library'")
}
