package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/subjects"
)

func TestShowPrintsAllRecordsOfAnEndedTurn(t *testing.T) {
	t.Parallel()
	d := newWorkerServer(t)
	d.publish(t, turnID("chat 1", "", "t1"), "Ada")

	require.Equal(t, `turn t1 of chat chat 1, app default
ended: the response is stored and final

 workflow Hello
 agent Greeter
 tool greet
 effect idempotent
 owner worker-1, epoch 1
 lease ONETURN_IN/1/1
 call id t1
 binding DIGEST
 key default.chat=201.0-t1.0

 seq time after record owner epoch details
 1 TIME N ms tool_call worker-1 1 ONETURN_IN/1/1, NNN bytes
 2 TIME N ms tool_response worker-1 1 NNN bytes

call: arguments of 14 bytes

response: ok, 1 attempt, tool N ms, claim to end N ms, payload of 25 bytes
 Hello, Ada!
`, normal(ok(t, d.Server, "show", "chat 1", "t1")))

	l := decode[turnReport](t, d.Server, "show", "chat 1", "t1")
	require.Equal(t, query.Ended, l.State)
	require.Nil(t, l.Call.Args, "values come with --payload only")
	require.Nil(t, l.Response.Payload)
	require.Len(t, l.Fingerprint, 64)

	l = decode[turnReport](t, d.Server, "show", "--key", l.Key, "--payload")
	require.JSONEq(t, `{"name":"Ada"}`, string(l.Call.Args))
	require.JSONEq(t, `{"message":"Hello, Ada!"}`, string(l.Response.Payload))
	require.Contains(t, ok(t, d.Server, "show", "chat 1", "t1", "--payload"), `"message": "Hello, Ada!"`)
	for _, key := range []string{"e." + l.Key + ".tool_response", "oneturn.events." + l.Key + ".tool_call", "$KV.ONETURN_TURNS.p." + l.Key + ".park.1"} {
		require.Equal(t, l.Key, decode[turnReport](t, d.Server, "show", "--key", key).Key)
	}
}

func TestShowReportsAnUnreadableResponse(t *testing.T) {
	t.Parallel()
	d := newWorkerServer(t)
	d.publish(t, turnID("chat 1", "", "t1"), "Ada")
	l := decode[turnReport](t, d.Server, "show", "chat 1", "t1")
	nc := d.Connect()
	_, err := nc.Request("$KV.ONETURN_TURNS.e."+l.Key+".tool_response", []byte("not ours"), 5*time.Second)
	require.NoError(t, err)
	l = decode[turnReport](t, d.Server, "show", "chat 1", "t1")
	require.True(t, l.Damaged)
	require.Contains(t, l.Meaning, "unreadable: readers get state_corrupt")
	require.NotContains(t, l.Meaning, "its response is stored, and")
}

func TestShowPrintsTheVerdictOfARejectedTurn(t *testing.T) {
	t.Parallel()
	d := newWorkerServer(t)
	d.publish(t, turnID("c", "run 7", "t"), []any{})
	l := decode[turnReport](t, d.Server, "show", "c", "t", "--run", "run 7")
	require.Equal(t, "validation_failed", l.Verdict)
	require.Equal(t, events.CodeValidationFailed, l.Response.Code)
	require.Equal(t, "run 7", l.Run)
	require.Contains(t, ok(t, d.Server, "show", "c", "t", "--run", "run 7"), "response: error validation_failed")
}

func TestShowNamesTheOwnerOfARunningTurn(t *testing.T) {
	t.Parallel()
	d := newWorkerServer(t)
	d.publish(t, turnID("c", "", "t"), "slow")
	l := decode[turnReport](t, d.Server, "show", "c", "t")
	require.Equal(t, query.Running, l.State)
	require.Equal(t, "worker-1", l.Owner)
	require.Equal(t, leaseThere, l.LeaseMessage)
	require.Contains(t, l.Meaning, "worker worker-1 has claimed it")
	require.Nil(t, l.Response)
}

func TestShowKnowsEveryState(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	header := func(more ...string) nats.Header {
		h := nats.Header{}
		h.Set(idempotency.HeaderOwner, "w1")
		h.Set(idempotency.HeaderNonce, "n")
		h.Set(idempotency.HeaderEpoch, "1")
		for i := 0; i+1 < len(more); i += 2 {
			h.Set(more[i], more[i+1])
		}
		return h
	}
	key := func(turn string) subjects.Key { return subjects.TurnKey("default", "c", "", turn) }
	call := `{"type":"chat.tool_call","data":{"kind":"tool_call","app_id":"default","chat_id":"c","turn":"t","tool_name":"ask"}}`
	state := func(turn string) *turnReport {
		l := decode[turnReport](t, s, "show", "c", turn)
		require.Contains(t, ok(t, s, "show", "c", turn), l.State+": ")
		return &l
	}

	record(t, s, key("cancelled").Public("cancel"), header(), `{}`)
	require.Equal(t, query.Unclaimed, state("cancelled").State)

	record(t, s, key("gone").Public("tool_call"), header(idempotency.HeaderLease, "ONETURN_IN/99/1"), call)
	gone := state("gone")
	require.Equal(t, leaseGone, gone.LeaseMessage)
	require.Contains(t, gone.Meaning, "turnctl repair")

	record(t, s, key("parked").Public("tool_call"), header(idempotency.HeaderLease, "ONETURN_IN/1/1"), call)
	record(t, s, key("parked").Private("park", "1"), header(idempotency.HeaderOutcome, "parked"), `{"secret":"no"}`)
	require.Equal(t, query.Parked, state("parked").State)
	require.NotContains(t, ok(t, s, "show", "c", "parked", "--payload"), "secret")

	record(t, s, key("parked").Private("takeover", "2"), header(idempotency.HeaderEpoch, "2", idempotency.HeaderOwner, "w2", idempotency.HeaderLease, "ONETURN_IN/2/1"), ``)
	again := state("parked")
	require.Equal(t, query.Running, again.State)
	require.Equal(t, "w2", again.Owner)
	require.Equal(t, 2, again.Epoch)
}

func TestShowNamesTheWorkflowOfTheTurnAndNotOfItsCancelRequest(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for turn, workflow := range map[string]string{"none": "", "other": `,"workflow_name":"Suport"`} {
		key := subjects.TurnKey("default", "c", "", turn)
		ids := `"app_id":"default","chat_id":"c","turn":"` + turn + `"`
		record(t, s, key.Public("tool_call"), nats.Header{}, `{"type":"chat.tool_call","data":{"kind":"tool_call",`+ids+`,"workflow_name":"Support"}}`)
		record(t, s, key.Public("cancel"), nats.Header{}, `{"type":"chat.tool_call_cancel","data":{"kind":"tool_call_cancel",`+ids+workflow+`}}`)
		require.Equal(t, "Support", decode[turnReport](t, s, "show", "c", turn).Workflow)
	}
}

func TestShowNamesTheTurnsThatRanUnderTheSameKey(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	turn := strings.Repeat("t", 100) // its names are hashes
	key := subjects.TurnKey("default", "c", "r", turn)
	call := `{"type":"chat.tool_call","data":{"kind":"tool_call","app_id":"default","chat_id":"c","run_id":"r","turn":"` + turn + `","tool_name":"ask"}}`
	again := key.Reuse("r", turn, "00112233445566778899")
	record(t, s, key.Public("tool_call"), nil, call)
	require.NotContains(t, ok(t, s, "show", "c", turn, "--run", "r"), "used again")
	record(t, s, key.ReuseNote("00112233445566778899"), nil, "")
	record(t, s, again.Public("tool_call"), nil, call)
	l := decode[turnReport](t, s, "show", "c", turn, "--run", "r")
	require.Equal(t, []string{again.String()}, l.Reuses)
	require.Contains(t, ok(t, s, "show", "c", turn, "--run", "r"), "turnctl show --key "+again.String())
	require.Equal(t, again.String(), decode[turnReport](t, s, "show", "--key", l.Reuses[0]).Key)
}

func TestShowPrintsTheErrorOfADamagedRecord(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	key := subjects.TurnKey("default", "c", "", "t")
	record(t, s, key.Public("tool_call"), nil, "{\"type\":\x00")
	record(t, s, key.Public("tool_response"), nil, `{"data":{"content":"\u001b[31mred","status":{}}}`)
	text := ok(t, s, "show", "c", "t")
	require.Contains(t, text, "damaged: record 1: ")
	require.Contains(t, text, "Oneturn-Epoch")
	l := decode[turnReport](t, s, "show", "c", "t")
	require.True(t, l.Damaged)
	for _, r := range l.Records {
		require.Contains(t, r.Error, "its event is unreadable")
	}
	require.Contains(t, ok(t, s, "ls"), "damaged: ")
}

func TestShowNamesTheCommandThatFetchesALargePayload(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	h := nats.Header{}
	h.Set(idempotency.HeaderOwner, "w1")
	h.Set(idempotency.HeaderNonce, "n")
	h.Set(idempotency.HeaderEpoch, "1")
	record(t, s, subjects.TurnKey("default", "c", "", "t").Public("tool_call"), h, `{"type":"chat.tool_call","data":{"kind":"tool_call","app_id":"default",`+
		`"chat_id":"c","turn":"t","tool_name":"f","payload":{"tool_args":{"$blob":"default.c.0-t.0.tool_call.0123456789abcdef","sha256":"00","size":300000}}}}`)
	require.Contains(t, ok(t, s, "show", "c", "t", "--payload"), "fetch it: nats object get ONETURN_BLOBS default.c.0-t.0.tool_call.0123456789abcdef\n")
	require.NotContains(t, ok(t, s, "show", "c", "t"), "fetch it")
}

func TestShowTakesAChatAsLsPrintsIt(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, id := range []struct{ app, chat string }{{"acme", "c"}, {"default", "a/b"}, {"a", "b"}} {
		record(t, s, subjects.TurnKey(id.app, id.chat, "", "t").Public("tool_call"), nil,
			fmt.Sprintf(`{"type":"chat.tool_call","data":{"kind":"tool_call","app_id":%q,"chat_id":%q,"turn":"t"}}`, id.app, id.chat))
	}
	_, stdout, _ := turnctl(t, s, "ls")
	require.Contains(t, stdout, "acme/c")
	for text, app := range map[string]string{"acme/c": "acme", "a/b": "default"} {
		code, stdout, stderr := turnctl(t, s, "show", text, "t", "-o", "json")
		require.Zero(t, code, stderr)
		require.Contains(t, stdout, fmt.Sprintf(`"app_id": %q`, app), text)
	}
	code, stdout, stderr := turnctl(t, s, "show", "acme/c", "-o", "json")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, `"chat_id": "c"`)
	code, _, _ = turnctl(t, s, "show", "acme/c", "t", "--app", "default")
	require.Equal(t, cli.Failed, code, "a tenant that is named counts")
}

func TestShowNamesWhatToCheckWhenNothingIsFound(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	code, stdout, stderr := turnctl(t, s, "show", "c", "t")
	require.Equal(t, cli.Failed, code)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "no record of turn t of chat c, app default\n")
	require.Contains(t, stderr, "spelled as in the event: turnctl ls lists turns, turnctl ls --messages messages\n")
	require.NotContains(t, stderr, "ONETURN_", "the streams are empty")
	require.Contains(t, stderr, "retention")
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	_, err = js.Publish(t.Context(), "oneturn.in.default.structured_output_ready.default.W.c", []byte("{}"))
	require.NoError(t, err)
	_, _, stderr = turnctl(t, s, "show", "c", "t")
	require.Contains(t, stderr, "ONETURN_IN (it holds 1 message)")
	require.NotContains(t, stderr, "ONETURN_DEAD")
	code, _, stderr = turnctl(t, s, "show", "c", "")
	require.Equal(t, cli.Usage, code)
	require.Contains(t, stderr, `chat "c" and turn "": neither may be empty`)

	_, _, stderr = turnctl(t, s, "show", "--key", "default.c.0-t.0")
	require.Contains(t, stderr, "no record of turn default.c.0-t.0\n")

	call := `{"type":"chat.tool_call","data":{"kind":"tool_call","app_id":"acme","chat_id":"c","turn":"t"}}`
	for _, key := range []subjects.Key{
		subjects.TurnKey("acme", "c", "run 7", "t"), subjects.TurnKey("acme", "c", "", "t"),
		subjects.TurnKey("acme", "c", "", "other"), subjects.TurnKey("acme", "d", "", "t"),
	} {
		record(t, s, key.Public("tool_call"), nil, call)
	}
	_, _, stderr = turnctl(t, s, "show", "c", "t", "--run", "8")
	require.Contains(t, stderr, "no record of turn t of chat c, app default, run 8\n")
	require.Contains(t, stderr, "the same chat and turn exist with --app acme, or with --app acme --run 'run 7'\n")

	code, _, stderr = turnctl(t, s, "show", "c", "t", "--prefix", "other")
	require.Equal(t, cli.Failed, code)
	require.Contains(t, stderr, "turnctl provision")

	code, _, stderr = turnctl(t, s, "show", "--key", "a.b")
	require.Equal(t, cli.Usage, code)
	require.Contains(t, stderr, "<app>.<chat>.<turn>.<call>")
}
