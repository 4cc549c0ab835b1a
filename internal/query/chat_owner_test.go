package query_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

func TestChatBelongsToTheFirstUserThatATurnOrAMessageNames(t *testing.T) {
	t.Parallel()
	server := oneturntest.NewServer(t, oneturntest.Memory)
	server.Provision()
	nc := server.Connect()
	space, err := subjects.New("oneturn")
	require.NoError(t, err)
	kv, err := kvstore.Open(nc, space)
	require.NoError(t, err)
	t.Cleanup(kv.Close)
	reader := query.New(nc, space, kv, nil)
	store := func(key, event string) {
		t.Helper()
		_, err := kv.Create(t.Context(), idempotency.Record{
			Key: key, Data: []byte(event), Meta: idempotency.Meta{Owner: "w", Nonce: "n", Epoch: 1, Lease: idempotency.Lease{Stream: "IN", Seq: 1, Delivery: 1}},
		})
		require.NoError(t, err)
	}
	turn := func(chat, key, user string) {
		t.Helper()
		store(subjects.TurnKey("app", chat, "", key).Public(events.RecordCall), `{"type":"chat.tool_call","data":{"kind":"tool_call","turn":"`+key+`","user_id":"`+user+`"}}`)
	}
	message := func(chat, id, user string) {
		t.Helper()
		store(subjects.MessageKey("app", chat, "", id).Public(events.RecordText), `{"type":"chat.user_message","data":{"kind":"user_message","message_id":"`+id+`","user_id":"`+user+`"}}`)
	}
	owner := func(chat string) string {
		t.Helper()
		user, err := reader.Owner(t.Context(), "app", chat)
		require.NoError(t, err)
		return user
	}
	require.Empty(t, owner("a"))
	turn("a", "t1", "")
	require.Empty(t, owner("a"), "a turn without a user gives the chat none")
	message("a", "m1", "ada")
	require.Equal(t, "ada", owner("a"))
	turn("a", "t2", "bob")
	require.Equal(t, "ada", owner("a"), "the first one counts")
	turn("b", "t1", "bob")
	message("b", "m1", "ada")
	require.Equal(t, "bob", owner("b"))
	require.Empty(t, owner("c"), "another chat")
}
