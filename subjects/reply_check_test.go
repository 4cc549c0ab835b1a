package subjects_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/subjects"
)

func TestRepliesGoToInboxesOnly(t *testing.T) {
	t.Parallel()
	s := space(t)
	for _, subject := range []string{"_INBOX.abc", "_INBOX.abc.1", "_INBOX_alice.abc", "_INBOX_a-b_c.abc", "_R_.Xy12ab.Qz"} {
		require.True(t, s.MayReply(subject), subject)
	}
	for _, subject := range []string{
		"", "mine", "svc.tools.wire_transfer", "prod.in.default.cancel.app.Hello.chat", "$JS.ACK.x", "$KV.B.k", "a.b.in.default.cancel.a.w.c", "a.b.events.a",
		"_INBOX", "_INBOX_alice", "_INBOXES.abc", "_INBOX-a.abc", "_INBOX_a$.b", "_inbox.a", "x._INBOX.a", "_R_", "_R_x", "_R__x.y", "_REPLY.a",
		"_INBOX.*", "_INBOX.>", "_INBOX.a.>", "_INBOX..a", "_INBOX.a.", "_INBOX.a b", "_INBOX.a\r\nPUB x", "_INBOX.\x00", "_INBOX.é",
		"_INBOX." + strings.Repeat("a", 256),
	} {
		require.False(t, s.MayReply(subject), "%.40q", subject)
	}
	own, err := subjects.New("_INBOX") // an unusual prefix, but an allowed one
	require.NoError(t, err)
	require.False(t, own.MayReply("_INBOX.events.a"))
}

func TestPrefixesOfRepliesAreConfigurable(t *testing.T) {
	t.Parallel()
	s, err := space(t).WithReplies("replies.eu", "_INBOX_web")
	require.NoError(t, err)
	for subject, may := range map[string]bool{
		"replies.eu.x": true, "replies.eu_reader.x": true, "_INBOX_web.x": true, "_INBOX_web_1.x": true, "_R_.a.b": true,
		"_INBOX.x": false, "_INBOX_worker.x": false, "replies.us.x": false, "replies.eux.x": false, "a.b.events.x": false,
	} {
		require.Equal(t, may, s.MayReply(subject), subject)
	}
	unchanged, err := space(t).WithReplies()
	require.NoError(t, err)
	require.Equal(t, space(t), unchanged)
	for _, prefix := range []string{"", "$JS", "a.b", "a.b.in", "x.>", "*", "x.", "x y", strings.Repeat("x", 65)} {
		_, err := space(t).WithReplies("_INBOX", prefix)
		require.Error(t, err, "%.40q", prefix)
	}
}
