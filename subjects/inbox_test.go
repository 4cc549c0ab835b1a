package subjects_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/subjects"
)

func TestInboxesCannotBeGuessedAndDoNotRevealTheConnections(t *testing.T) {
	t.Parallel()
	space, err := subjects.New("oneturn")
	require.NoError(t, err)
	for prefix, base := range map[string]string{
		"": "_INBOX", "_INBOX": "_INBOX", "_INBOX_worker": "_INBOX_worker", "_INBOX_a.b": "_INBOX_a.b",
		"_INBOX.ABCDEFGHIJKLMNOPQRSTUVWXY1": "_INBOX.ABCDEFGHIJKLMNOPQRSTUVWXY1", // 1 is not in the alphabet of random tokens
		".ABCDEFGHIJKLMNOPQRSTUVWXYZ":       ".ABCDEFGHIJKLMNOPQRSTUVWXYZ",
	} {
		connection := subjects.PrivateInboxes(prefix)
		secret := strings.TrimPrefix(connection, base+".")
		require.Len(t, secret, 26, connection)
		seen := map[string]bool{secret: true}
		for _, of := range []string{prefix, connection} { // a prefix with and without the random token
			inbox, tool := subjects.NewInbox(of), subjects.NewToolInbox(of)
			require.True(t, strings.HasPrefix(inbox, base+"."), inbox)
			require.True(t, strings.HasPrefix(tool, base+"_tools."), tool)
			for _, name := range []string{inbox, tool} {
				random := name[strings.LastIndexByte(name, '.')+1:]
				require.Len(t, random, 26)
				require.False(t, seen[random], "a random token is used twice")
				require.NotContains(t, name, secret)
				seen[random] = true
			}
			if strings.HasPrefix(base, "_INBOX") {
				require.True(t, space.MayReply(inbox), inbox)
			}
		}
	}
}
