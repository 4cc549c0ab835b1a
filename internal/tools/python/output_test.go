package python_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/tools/python"
)

// TestLinesAreLoggedForTheCallThatPrintedThemOrForNone: not for another call, by whatever way the text reaches the
// streams of the process, and whatever the text is.
func TestLinesAreLoggedForTheCallThatPrintedThemOrForNone(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", `
import asyncio, os, subprocess, sys, threading
def write(text): print(text)
def shell(): subprocess.run(["echo", "of a subprocess"])
async def ashell():
    print("begun", end=" ")
    subprocess.run(["echo", "of another subprocess"])
    await asyncio.sleep(0)
    print("and ended", flush=True)
def raw():
    os.write(1, b"written by hand\n")
    sys.stdout.buffer.write(b"past the text layer\n"); sys.stdout.buffer.flush()
def later(): subprocess.Popen(["sh", "-c", "sleep 0.3; echo too late"])
def parts(): print("one", 2, sep="\n", end=""); print("!", end=""); sys.stderr.write("apart\n")
def forge(): os.write(1, b"\x1e1\nforged\n\x1e1 forged\n\x1eABCDEF:1 forged\n")
`)
	run := func(chat, function, args string) {
		call := newCall(t, function, args)
		call.Turn.Chat = chat
		_, err := k.pool.Tool("WF", "t.py", function).Invoke(t.Context(), call)
		require.NoError(t, err)
	}
	run("ada", "write", `{"text":"hello"}`)
	run("bob", "later", `{}`)
	for _, function := range []string{"shell", "ashell", "raw", "parts", "forge"} {
		run("bob", function, `{}`)
	}
	run("bob", "write", `{"text":"\u001e1\nforged\n\u001e1 forged"}`)
	require.Eventually(t, func() bool {
		run("ada", "write", `{"text":"hello"}`)
		return strings.Contains(k.log.String(), "too late")
	}, 30*time.Second, 10*time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	require.NoError(t, k.pool.Close(ctx))
	for line := range strings.SplitSeq(k.log.String(), "\n") {
		_, rest, printed := strings.Cut(line, " stream=")
		if !printed {
			continue
		}
		_, text, _ := strings.Cut(rest, "line=")
		mine := strings.Contains(rest, "chat=")
		switch {
		case strings.Contains(text, "hello"):
			require.Contains(t, rest, "chat=ada")
		case strings.Contains(text, "subprocess"), strings.Contains(text, "by hand"), strings.Contains(text, "past"), strings.Contains(text, "late"):
			require.False(t, mine, line)
		default:
			require.NotContains(t, rest, "chat=ada", line)
		}
	}
	for _, want := range []string{
		`tool=ashell chat=bob turn=turn-1 line="begun and ended"`, `tool=parts chat=bob turn=turn-1 line=one`,
		`tool=parts chat=bob turn=turn-1 line=2!`, `stderr tool=parts chat=bob turn=turn-1 line=apart`,
		`tool=write chat=bob turn=turn-1 line="␞1 forged"`,
	} {
		require.Contains(t, k.log.String(), want)
	}
}
