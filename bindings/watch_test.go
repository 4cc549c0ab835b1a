package bindings_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/diag"
)

type change struct {
	set *bindings.Set
	err error
}

// watch starts Watch on root and returns the channel of its calls.
func watch(t *testing.T, root string) <-chan change {
	t.Helper()
	changes := make(chan change)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		opts := bindings.Options{Root: root, Inspect: inspect, Debounce: 20 * time.Millisecond}
		ended <- bindings.Watch(ctx, opts, func(s *bindings.Set, err error) {
			select {
			case changes <- change{s, err}:
			case <-ctx.Done():
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return changes
}

// until waits for a call that fits; calls between are states that a slow writer goes through.
func until(t *testing.T, changes <-chan change, fits func(change) bool) *bindings.Set {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		select {
		case c := <-changes:
			if fits(c) {
				return c.set
			}
		case <-deadline:
			require.FailNow(t, "no call of Watch fits")
		}
	}
}

func tool(workflow, name string) func(change) bool {
	return func(c change) bool {
		if c.err != nil {
			return false
		}
		b, err := c.set.Resolve(workflow, "A", "")
		return err == nil && b.Tool == name
	}
}

func oneTool(name string) string {
	return "agents: {A: }\ntools: [{name: " + name + ", agent: A, kind: go}]\n"
}

func TestWatchSwapsTheSetWhenAFileChanges(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	manifest := filepath.Join(root, "W", "oneturn.yaml")
	write(t, manifest, oneTool("one"))
	changes := watch(t, root)
	first := until(t, changes, tool("W", "one"))
	write(t, manifest, oneTool("two"))
	second := until(t, changes, tool("W", "two"))
	require.NotEqual(t, first.Digest(), second.Digest())
	b, err := first.Resolve("W", "A", "")
	require.NoError(t, err)
	require.Equal(t, "one", b.Tool, "a set in use does not change")
}

func TestWatchSeesNewAndRemovedWorkflowsAndToolCode(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, "W", "oneturn.yaml"), oneTool("one"))
	changes := watch(t, root)
	until(t, changes, tool("W", "one"))

	write(t, filepath.Join(root, "New", "tools", "t.py"), "def first(): pass\n")
	write(t, filepath.Join(root, "New", "oneturn.yaml"), "agents: {A: }\ntools: [{name: first, agent: A, file: t.py}]\n")
	set := until(t, changes, tool("New", "first"))

	before := set.WorkflowDigest("New")
	write(t, filepath.Join(root, "New", "tools", "t.py"), "def first(): return 1\n")
	set = until(t, changes, func(c change) bool { return c.set.WorkflowDigest("New") != before })
	require.Len(t, set.Workflows(), 2)

	require.NoError(t, os.RemoveAll(filepath.Join(root, "New")))
	until(t, changes, func(c change) bool { return len(c.set.Workflows()) == 1 })
}

func TestBrokenEditKeepsTheWorkflowAndReportsIt(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	broken, other := filepath.Join(root, "W", "oneturn.yaml"), filepath.Join(root, "Other", "oneturn.yaml")
	write(t, broken, oneTool("one"))
	write(t, other, oneTool("one"))
	changes := watch(t, root)
	until(t, changes, tool("W", "one"))

	write(t, broken, oneTool("two")+"tools: [\n")
	set := until(t, changes, func(c change) bool {
		return strings.Contains(strings.Join(lines(c.set, diag.SeverityError), "\n"), "stays in use")
	})
	require.True(t, tool("W", "one")(change{set: set}))

	write(t, other, oneTool("two"))
	set = until(t, changes, tool("Other", "two"))
	require.True(t, tool("W", "one")(change{set: set}), "still kept when another workflow changes")
	require.Contains(t, strings.Join(lines(set, diag.SeverityError), "\n"), "stays in use")

	write(t, broken, oneTool("three"))
	set = until(t, changes, tool("W", "three"))
	require.Empty(t, lines(set, diag.SeverityError))
}

// TestBrokenEditIsNeverTakenAsGood: the disk has the good text again when the broken one, which
// was read before, is inspected.
func TestEditThatIsBrokenBeforeTheWatchBeginsIsNotTaken(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, "V/oneturn.yaml"), oneTool("good"))
	write(t, filepath.Join(root, "tools.oneturn.yaml"), "tools: [{name: s, timeout: 10s, nats: {subject: s}}]\n")
	write(t, filepath.Join(root, "W/oneturn.yaml"), "agents: {A: }\ntools: [{use: s, agent: A}]\n")
	before, err := bindings.Load(t.Context(), bindings.Options{Root: root})
	require.NoError(t, err)
	write(t, filepath.Join(root, "V/oneturn.yaml"), "agents: {A: }\ntools: [{name: good, agent: A, kind: go, timeout: 10x}]\n")
	write(t, filepath.Join(root, "tools.oneturn.yaml"), "tools: [{name: s, timeout: 10x, nats: {subject: s}}]\n")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	require.NoError(t, bindings.Watch(ctx, bindings.Options{Root: root, From: before}, func(s *bindings.Set, err error) {
		defer stop()
		require.NoError(t, err)
		require.Equal(t, before.Digest(), s.Digest())
		found := strings.Join(lines(s, diag.SeverityError), "\n")
		require.Contains(t, found, "V: error: the edit brought 1 new error")
		require.Contains(t, found, "tools.oneturn.yaml: error: the edit brought 1 new error")
		b, err := s.Resolve("W", "A", "")
		require.NoError(t, err)
		require.Equal(t, 10*time.Second, b.Timeout)
	}))
}

func TestBrokenEditIsNeverTakenAsGood(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	file := filepath.Join(root, "W", "tools", "t.py")
	write(t, filepath.Join(root, "W", "oneturn.yaml"), "agents: {A: }\ntools: [{name: f, agent: A, file: t.py}]\n")
	write(t, file, "def (broken\n")
	set, err := bindings.Load(t.Context(), bindings.Options{
		Root: root,
		Inspect: func(ctx context.Context, root string, files map[string][]byte) (map[string]bindings.PyFile, error) {
			write(t, file, "def f(): pass\n")
			return inspect(ctx, root, files)
		},
	})
	require.NoError(t, err)
	require.Contains(t, strings.Join(lines(set, diag.SeverityError), "\n"), "invalid syntax")
}

// TestWorkflowThatCouldNotBeInspectedIsLater: without an edit of it.
func TestWorkflowThatCouldNotBeInspectedIsLater(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, "W", "oneturn.yaml"), "agents: {A: }\ntools: [{name: f, agent: A, file: t.py}]\n")
	write(t, filepath.Join(root, "W", "tools", "t.py"), "def f(): pass\n")
	changed := make(chan change, 10)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		failed := false
		opts := bindings.Options{
			Root: root, Debounce: 20 * time.Millisecond,
			Inspect: func(ctx context.Context, root string, files map[string][]byte) (map[string]bindings.PyFile, error) {
				if !failed {
					failed = true
					return nil, errors.New("no Python found")
				}
				return inspect(ctx, root, files)
			},
		}
		ended <- bindings.Watch(ctx, opts, func(s *bindings.Set, err error) { changed <- change{s, err} })
	}()
	known := func(c change) bool {
		b, err := c.set.Resolve("W", "A", "")
		return err == nil && !b.SignatureUnknown
	}
	require.False(t, known(<-changed))
	write(t, filepath.Join(root, "Other", "oneturn.yaml"), oneTool("one"))
	until(t, changed, known)
	cancel()
	require.NoError(t, <-ended)
}

func TestWatchReadsAgainOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	root := manyWorkflows(t, 3)
	inspected, changed := make(chan []string, 10), make(chan *bindings.Set, 10)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		opts := bindings.Options{
			Root: root, Debounce: 20 * time.Millisecond,
			Inspect: func(ctx context.Context, root string, names map[string][]byte) (map[string]bindings.PyFile, error) {
				inspected <- slices.Sorted(maps.Keys(names))
				return inspect(ctx, root, names)
			},
		}
		ended <- bindings.Watch(ctx, opts, func(s *bindings.Set, _ error) { changed <- s })
	}()
	require.Len(t, <-inspected, 3)
	first := <-changed
	write(t, filepath.Join(root, "W001", "tools", "t.py"), "def greet(name, tags): return tags\n")
	require.Equal(t, []string{"W001/tools/t.py"}, <-inspected)
	second := <-changed
	require.Equal(t, first.WorkflowDigest("W000"), second.WorkflowDigest("W000"))
	require.NotEqual(t, first.WorkflowDigest("W001"), second.WorkflowDigest("W001"))
	require.Len(t, second.Bindings(), 3)
	cancel()
	require.NoError(t, <-ended)
}

func TestWatchKeepsTheSetWhenTheRootVanishes(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "flows")
	write(t, filepath.Join(root, "W", "oneturn.yaml"), oneTool("one"))
	changes := watch(t, root)
	until(t, changes, tool("W", "one"))
	require.NoError(t, os.RemoveAll(root))
	set := until(t, changes, func(c change) bool { return errors.Is(c.err, os.ErrNotExist) })
	require.NotNil(t, set)
}

func TestWatchFailsImmediatelyWithoutRoot(t *testing.T) {
	t.Parallel()
	err := bindings.Watch(t.Context(), bindings.Options{Root: filepath.Join(t.TempDir(), "nowhere")}, func(*bindings.Set, error) {})
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestWatchFollowsARootThatIsReplaced(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "flows")
	manifest := filepath.Join(root, "W", "oneturn.yaml")
	write(t, manifest, oneTool("one"))
	changes := watch(t, root)
	until(t, changes, tool("W", "one"))

	require.NoError(t, os.Rename(root, root+".old"))
	require.NoError(t, os.CopyFS(root, os.DirFS(root+".old")))
	write(t, manifest, oneTool("two"))
	until(t, changes, tool("W", "two"))
	write(t, manifest, oneTool("three"))
	until(t, changes, tool("W", "three"))

	require.NoError(t, os.Rename(filepath.Join(root, "W"), filepath.Join(root, "V")))
	until(t, changes, tool("V", "three"))
	write(t, filepath.Join(root, "V", "oneturn.yaml"), oneTool("four"))
	until(t, changes, tool("V", "four"))
}

func TestWatchFollowsLinksOnTheWayToTheRoot(t *testing.T) {
	t.Parallel()
	for name, root := range map[string]string{"the root is a link": "current", "a link above": filepath.Join("current", "flows")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			inside := strings.TrimPrefix(root, "current")
			for _, version := range []string{"one", "two"} {
				write(t, filepath.Join(top, "releases", version, inside, "W", "oneturn.yaml"), oneTool(version))
			}
			link := filepath.Join(top, "current")
			require.NoError(t, os.Symlink(filepath.Join("releases", "one"), link))
			changes := watch(t, filepath.Join(top, root))
			until(t, changes, tool("W", "one"))
			write(t, filepath.Join(top, root, "W", "oneturn.yaml"), oneTool("edited"))
			until(t, changes, tool("W", "edited"))

			require.NoError(t, os.Symlink(filepath.Join("releases", "two"), link+".new"))
			require.NoError(t, os.Rename(link+".new", link))
			until(t, changes, tool("W", "two"))
			write(t, filepath.Join(top, root, "W", "oneturn.yaml"), oneTool("three"))
			until(t, changes, tool("W", "three"))
		})
	}
}

func TestFileThatKeepsChangingDoesNotPutOffTheReload(t *testing.T) {
	t.Parallel()
	for _, noisy := range []string{"run.log", "data.json"} {
		t.Run(noisy, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			manifest := filepath.Join(root, "W", "oneturn.yaml")
			write(t, manifest, oneTool("one"))
			write(t, filepath.Join(root, "W", "tools", noisy), "{}")
			changes := watch(t, root)
			until(t, changes, tool("W", "one"))
			stop, stopped := make(chan struct{}), make(chan error, 1)
			go func() {
				beat := time.NewTicker(5 * time.Millisecond)
				defer beat.Stop()
				for {
					select {
					case <-stop:
						stopped <- nil
						return
					case <-beat.C:
						if err := os.WriteFile(filepath.Join(root, "W", "tools", noisy), []byte("{}"), 0o600); err != nil {
							stopped <- err
							return
						}
					}
				}
			}()
			write(t, manifest, oneTool("two"))
			until(t, changes, tool("W", "two"))
			close(stop)
			require.NoError(t, <-stopped)
		})
	}
}
