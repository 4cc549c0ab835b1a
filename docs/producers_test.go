package docs_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/oneturntest"
)

func TestMessagesFromTheCommandLinePrintWhatProducersMdShows(t *testing.T) {
	t.Parallel()
	const page = "producers.md"
	s := oneturntest.NewServer(t)
	serveOn(t, s, oneturn.Config{Workflows: folderOf(t, "agent-messages.md")})
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", commandsOf(t, page, "publisher")[0])
	cmd.Env = command(t, t.TempDir(), "publisher").Env
	cmd.Env = append(cmd.Env, "PATH="+bin(t)+":/usr/bin:/bin", "ONETURN_NATS="+s.URL())
	out, code := output(t, cmd)
	require.Zero(t, code, out)
	shown := strings.Split(strings.TrimSpace(fenced(t, page, "text")[0].text), "\n")
	got := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, got, len(shown), out)
	for i := range shown {
		require.True(t, isAbridged(got[i], shown[i]), "%s shows %q, the command prints %s", page, shown[i], got[i])
	}
}
