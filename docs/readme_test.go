package docs_test

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/embedded"
)

// shell is a folder in which the commands of a page are run one after the other, as a reader
// would: a worker is stopped before the next one starts, and the ports are free ones.
type shell struct {
	t          *testing.T
	dir        string
	nats, http string // ports that stand for 4222 and 8080
	worker     *process
	server     *embedded.Server
	services   []*process
}

func newShell(t *testing.T) *shell {
	t.Helper()
	s := &shell{t: t, dir: t.TempDir(), nats: freePort(t), http: freePort(t)}
	copyExamples(t, filepath.Join(s.dir, "examples"))
	for name, setting := range map[string]string{
		"worker":    `case " $* " in *" --nats "*) ;; *) export ONETURN_LISTEN=127.0.0.1:` + s.nats + `;; esac; export ONETURN_HTTP=127.0.0.1:` + s.http,
		"publisher": "export ONETURN_NATS=nats://127.0.0.1:" + s.nats,
		"turnctl":   "export ONETURN_NATS=nats://127.0.0.1:" + s.nats,
		"gateway":   "export ONETURN_HTTP=off ONETURN_NATS=nats://127.0.0.1:" + s.nats,
	} {
		write(t, s.dir, "bin/"+name, fmt.Sprintf("#!/bin/sh\n%s\nexec %s \"$@\"\n", setting, filepath.Join(bin(t), name)))
		require.NoError(t, os.Chmod(filepath.Join(s.dir, "bin", name), 0o700))
	}
	t.Cleanup(s.stop)
	return s
}

// copyExamples copies the examples without what npm has installed and built.
func copyExamples(t *testing.T, to string) {
	t.Helper()
	all := os.DirFS("../examples")
	require.NoError(t, fs.WalkDir(all, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == "node_modules" || d.Name() == "dist":
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o700)
		}
		data, err := fs.ReadFile(all, name)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), data, 0o600)
	}))
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return port
}

// run runs the lines of a block and returns what they print.
func (s *shell) run(script string) string {
	s.t.Helper()
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(script, "4222", s.nats)), "\n")
	if strings.HasPrefix(lines[0], "git clone") {
		lines = lines[1:]
	}
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "kill -9 $!"): // the worker was started last
			require.NotNil(s.t, s.worker)
			s.worker.end(syscall.SIGKILL)
			s.worker = nil
			lines[i] = ""
		case strings.HasPrefix(line, "make demo"):
			lines[i] = s.build("bin/demo", "./examples/demo") + " -worker " + filepath.Join(bin(s.t), "worker")
		case strings.HasPrefix(line, "nats-server "):
			s.serve()
			lines[i] = ""
		case strings.HasPrefix(line, "go build -o bin/"):
			fields := strings.Fields(line)
			s.build(fields[3], fields[4])
			lines[i] = ""
		}
	}
	last := lines[len(lines)-1]
	starts := strings.Contains(" "+last, " bin/worker ")
	if starts {
		lines = lines[:len(lines)-1]
	}
	var served strings.Builder
	for i, line := range lines {
		if isService(line) {
			served.WriteString(s.service(line))
			lines[i] = ""
		}
	}
	cmd := exec.CommandContext(s.t.Context(), "bash", "-e", "-o", "pipefail", "-c", strings.Join(lines, "\n"))
	cmd.Dir = s.dir
	out, err := cmd.CombinedOutput()
	if failed := new(exec.ExitError); err != nil {
		// A turn that ends without success is the exit code 1 of publisher.
		require.ErrorAs(s.t, err, &failed)
		require.Contains(s.t, script, "--wait", "%s", out)
	}
	text := string(out) + served.String()
	if starts {
		text += s.start(last)
	}
	return strings.NewReplacer(s.nats, "4222", s.http, "8080").Replace(text)
}

// start starts a worker and returns what it prints when it is ready.
func (s *shell) start(line string) string {
	s.t.Helper()
	if s.worker != nil {
		s.worker.end(syscall.SIGTERM)
	}
	line, _, _ = strings.Cut(line, " &")
	cmd := exec.CommandContext(s.t.Context(), "bash", "-c", "exec env "+line)
	cmd.Dir = s.dir
	s.worker = launch(s.t, cmd, "publisher publish FILE")
	return s.worker.stdout.String()
}

// isService reports whether a line starts a service of an example, which prints that it is ready.
func isService(line string) bool {
	return strings.HasSuffix(line, " &") && (strings.HasPrefix(line, "go run ./examples/") || strings.HasPrefix(line, "python3 examples/") ||
		strings.HasPrefix(line, "PYTHONPATH=clients/python python3 examples/") || strings.HasPrefix(line, "bin/gateway "))
}

// service starts one and returns what it prints when it is ready.
func (s *shell) service(line string) string {
	s.t.Helper()
	line = strings.TrimSuffix(line, " &")
	if pkg, isGo := strings.CutPrefix(line, "go run "); isGo {
		pkg, args, _ := strings.Cut(pkg, " ")
		line = s.build("bin/"+filepath.Base(pkg), pkg) + " " + args
	}
	cmd := exec.CommandContext(s.t.Context(), "bash", "-c", "exec env "+line)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "NATS_URL=nats://127.0.0.1:"+s.nats)
	p := launch(s.t, cmd, "is ready")
	s.services = append(s.services, p)
	return p.stdout.String()
}

// build builds a program of an example, and returns where it is.
func (s *shell) build(to, pkg string) string {
	s.t.Helper()
	to = filepath.Join(s.dir, to)
	build := exec.CommandContext(s.t.Context(), "go", "build", "-ldflags=-s", "-o", to, pkg)
	build.Dir = ".."
	out, err := build.CombinedOutput()
	require.NoError(s.t, err, "%s", out)
	return to
}

// serve starts a server that stands for one of the reader's own.
func (s *shell) serve() {
	s.t.Helper()
	s.stop()
	var err error
	s.server, err = embedded.Start(s.t.Context(), embedded.Options{Listen: "127.0.0.1:" + s.nats, Store: s.t.TempDir()})
	require.NoError(s.t, err)
}

func (s *shell) stop() {
	for _, p := range s.services {
		p.end(syscall.SIGKILL)
	}
	if s.worker != nil {
		s.worker.end(syscall.SIGTERM)
		s.worker = nil
	}
	if s.server != nil {
		require.NoError(s.t, s.server.Stop())
		s.server = nil
	}
}

var (
	hashes  = regexp.MustCompile(`(?:digest )?\b[0-9a-f]{16}\b`)
	moments = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT[\d:.]+Z`)
	names   = regexp.MustCompile(`[^\s"]+-[A-Za-z0-9]{6,8}\b`)
	numbers = regexp.MustCompile(`\b(?:[0-9]+(?:\.[0-9]+)? m?s\b|[0-9]{3,}|(?:process|processes|and|kill -9) [0-9]+\b)`)
	spaces  = regexp.MustCompile(` {2,}`)
)

// stable leaves of an output what is the same in every run, with turns and questions in order. That is so
// of a digest too: a page shows the files that it is made of.
func stable(text string) []string {
	text = hashes.ReplaceAllStringFunc(text, func(hash string) string {
		if strings.HasPrefix(hash, "digest ") {
			return hash
		}
		return "HASH"
	})
	for _, r := range []struct {
		pattern *regexp.Regexp
		by      string
	}{{moments, "TIME"}, {names, "NAME"}, {numbers, "NUMBER"}, {spaces, "  "}} {
		text = r.pattern.ReplaceAllString(text, r.by)
	}
	var lines, turns []string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "{") || strings.HasPrefix(line, "TIME ") {
			turns = append(turns, line)
			continue
		}
		lines = append(lines, line)
	}
	slices.SortFunc(turns, func(a, b string) int { return strings.Compare(a[:min(30, len(a))], b[:min(30, len(b))]) })
	return append(turns, lines...)
}

// requireShown compares what a command printed with what a page shows: "…" is any text, a line
// of it any lines.
func requireShown(t *testing.T, page block, got string) {
	t.Helper()
	require.Regexp(t, shown(page), strings.Join(stable(got), "\n")+"\n", "line %d", page.line)
}

// shown is the pattern of what a page shows.
func shown(page block) *regexp.Regexp {
	var pattern strings.Builder
	for _, line := range stable(page.text) {
		if line == "…" {
			pattern.WriteString(`(?:.*\n)*?`)
			continue
		}
		pattern.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*") + "\n")
	}
	return regexp.MustCompile(`\A` + pattern.String() + `\z`)
}

// follow runs the commands of a page that call ours and compares what they print, and returns
// how much it has compared. An output is a block of text after the commands.
func (s *shell) follow(name string) (compared int) {
	s.t.Helper()
	printed, script, ran := "", "", false
	for _, b := range blocks(s.t, name) {
		switch {
		case b.lang == "sh":
			first, _, _ := strings.Cut(b.text, "\n")
			if ran = strings.Contains(" "+strings.ReplaceAll(b.text, "\n", " "), " bin/") || strings.Contains(b.text, "make demo") || strings.HasPrefix(first, "python3 examples/") || isService(first); ran {
				script = b.text
				printed = s.run(script)
			}
		case (b.lang == "text" || b.lang == "") && ran:
			for end := time.Now().Add(time.Minute); reads(script) && !shown(b).MatchString(strings.Join(stable(printed), "\n")+"\n") && time.Now().Before(end); {
				printed = s.run(script) // what a reader sees who looks again
			}
			requireShown(s.t, b, printed)
			compared++
			ran = false
		}
	}
	return compared
}

// reads reports whether a block only looks at what there is.
func reads(script string) bool {
	return strings.HasPrefix(script, "bin/turnctl questions ls") || strings.HasPrefix(script, "bin/turnctl show")
}

func TestReadmeCanBeFollowedFromTopToBottom(t *testing.T) {
	t.Parallel()
	require.Equal(t, 5, newShell(t).follow("../README.md"))
}

func TestFirstExampleCanBeFollowed(t *testing.T) {
	t.Parallel()
	require.Equal(t, 2, newShell(t).follow("../examples/01-hello/README.md"))
}

func TestApprovalExampleCanBeFollowed(t *testing.T) {
	t.Parallel()
	require.Equal(t, 14, newShell(t).follow("../examples/02-approval/README.md"))
}

func TestServiceExampleCanBeFollowed(t *testing.T) {
	t.Parallel()
	require.Equal(t, 7, newShell(t).follow("../examples/03-nats-service/README.md"))
}

func TestPythonClientExampleCanBeFollowed(t *testing.T) {
	t.Parallel()
	require.Equal(t, 2, newShell(t).follow("../examples/08-python-client/README.md"))
}

func TestPlanExampleCanBeFollowed(t *testing.T) {
	t.Parallel()
	require.Equal(t, 9, newShell(t).follow("../examples/09-plan/README.md"))
}

func TestOrchestrationExampleCanBeFollowed(t *testing.T) {
	t.Parallel()
	require.Equal(t, 4, newShell(t).follow("../examples/10-orchestration/README.md"))
}

func TestInterviewExampleCanBeFollowed(t *testing.T) {
	t.Parallel()
	require.Equal(t, 6, newShell(t).follow("../examples/11-interview/README.md"))
}

func TestHTTPExampleCanBeFollowed(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	port := freePort(t)
	page := filepath.Join(s.dir, "examples/05-http/README.md")
	for _, file := range []string{page, filepath.Join(s.dir, "examples/05-http/workflows/Shop/oneturn.yaml")} {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		text := strings.ReplaceAll(string(data), "go run ./examples/05-http &", "go run ./examples/05-http -listen 127.0.0.1:8084 &")
		require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(text, "8084", port)), 0o600))
	}
	require.Equal(t, 5, s.follow(page))
}

func TestMCPExampleCanBeFollowed(t *testing.T) {
	t.Parallel()
	require.Equal(t, 6, newShell(t).follow("../examples/04-mcp/README.md"))
}

func TestCommandsOfTheOperationsPageWork(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.serve()
	s.follow("operations.md")
	require.NotNil(t, s.worker)
}

func TestReadmeIsShort(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	require.Less(t, strings.Count(string(data), "\n"), 200)
}

func TestGoOfTheReadmeIsTheExample(t *testing.T) {
	t.Parallel()
	example, err := os.ReadFile("../examples/06-go-tool/main.go")
	require.NoError(t, err)
	shown := fenced(t, "../README.md", "go")
	require.Len(t, shown, 1)
	require.Contains(t, string(example), shown[0].text)
}
