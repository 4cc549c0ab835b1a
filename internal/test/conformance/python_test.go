package conformance_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/test/conformance"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/python"
)

// source has the functions of the suite. One that is sync is as good as one that is async where
// it does not wait.
const source = `
import asyncio, os
import oneturn

def write(note, line):
    if note:
        with open(note, "a") as f:
            f.write(line + "\n")

async def echo(**args):
    args.pop("context_variables", None)  # which a function that takes anything is given too
    return args

def fail_user():
    raise oneturn.UserError("no such city")

def fail():
    raise RuntimeError("it broke")

def busy(succeeds_at):
    attempt = oneturn.call().attempt
    if attempt < succeeds_at:
        raise oneturn.RetryableToolError("busy")
    return {"attempt": attempt}

async def slow(seconds, note=""):
    write(note, "begun")
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        write(note, "cancelled")
        raise

def crash(note=""):
    write(note, "begun")
    os._exit(3)

async def progress():
    for i in (1, 2, 3):
        await oneturn.progress(25 * i, "step %d" % i)
    return {"done": True}

def big(bytes):
    return {"text": "x" * bytes}

def identity():
    call = oneturn.call()
    return {name: getattr(call, name) for name in ("idempotency_key", "fencing_token", "epoch", "attempt", "depth")}

async def ask():
    return {"color": await oneturn.ask("Color", name="color")}

def null():
    pass

def text():
    return "done"

def nan():
    return {"count": float("nan")}

def huge():
    return {"number": 10 ** 80}

def lowly():
    raise oneturn.UserError("no such city")

def garbage():
    endless = []
    endless.append(endless)
    return endless
`

// F30 among others: a process that dies is an error, and the next call runs.
func TestPythonFunctionsConform(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	file := filepath.Join(root, "Suite", "tools", "suite.py")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o750))
	require.NoError(t, os.WriteFile(file, []byte(source), 0o600))
	const limit = 1 << 20
	pool := python.NewPool(python.Options{Root: root, Size: 2, MaxFrame: limit})
	conformance.Run(t, conformance.Kind{
		Name:      "python",
		Invoker:   func(function string) tools.Invoker { return pool.Tool("Suite", "suite.py", function) },
		MaxOutput: limit,
		Close:     pool.Close,
		Cannot:    map[string]string{"marked": "the host writes its results", "later": "its error names no delay", "nan": "NaN becomes null, as tables need it"},
	})
}
