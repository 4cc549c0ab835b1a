package python_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/tools/python"
)

const spawning = `
import concurrent.futures, multiprocessing
import oneturn, near
from .near import twice
class Point:
    def __init__(self, x): self.x = x
def square(x): return x * x
def outside(x):
    try: oneturn.call()
    except RuntimeError: pass  # a process that was not forked has no call
    return twice(x)
def kept(point): return Point(point.x + 1)
def pool(method):
    with multiprocessing.get_context(method).Pool(2) as workers:
        return workers.map(square, [1, 2]) + workers.map(outside, [3]) + [workers.apply(near.twice, (4,)), workers.apply(kept, (Point(1),)).x]
def executor(method):
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as workers:
        return [workers.submit(square, 3).result(), list(workers.map(kept, [Point(1)]))[0].x]
async def aexecutor(method):
    import asyncio
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as workers:
        return await asyncio.get_running_loop().run_in_executor(workers, square, 3)
def nested(x):
    with multiprocessing.get_context("spawn").Pool(1) as workers: return workers.apply(square, (x,))
def deep():
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as workers:
        return workers.submit(nested, 5).result()
`

// TestProcessesOfMultiprocessingFindTheWorkflow whatever its folder is called: also the files that were
// checked, neighbours, and files whose names are not names of modules.
func TestProcessesOfMultiprocessingFindTheWorkflow(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/near.py", "def twice(x): return 2 * x\n", "WF/tools/my-odd.name.py", spawning)
	k.pool.Renew("WF", map[string][]byte{"tools/t.py": []byte(spawning)})
	for _, method := range []string{"spawn", "forkserver", "fork"} {
		require.JSONEq(t, `[1,4,6,8,2]`, k.value("pool", `{"method":"`+method+`"}`), method)
		require.JSONEq(t, `[9,2]`, k.value("executor", `{"method":"`+method+`"}`), method)
	}
	require.Equal(t, "9", k.value("aexecutor", `{"method":"spawn"}`))
	require.Equal(t, "25", k.value("deep", `{}`))
	call := newCall(t, "pool", `{"method":"spawn"}`)
	result, err := k.pool.Tool("WF", "my-odd.name.py", "pool").Invoke(t.Context(), call)
	require.NoError(t, err)
	require.JSONEq(t, `[1,4,6,8,2]`, string(result.Value))
}
