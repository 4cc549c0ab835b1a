package handlers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/inbound"
)

// H23: see docs/faults.md.
func TestDeadLetterBelongsToTheTenantOfItsSubject(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	body := []byte(`{"kind":"structured_output_ready","agent":"A","model_name":"M","structured_data":{},"auto_tool_mode":true,` +
		`"turn_idempotency_key":"t","context":{"app_id":"beta","chat_id":"c","workflow_name":"WF"}}`)
	for subject, want := range map[string]string{
		"oneturn.in.default.structured_output_ready.acme.WF.c": "oneturn.dead.acme.structured_output_ready",
		"oneturn.in.default.x.acme.WF.c":                       "oneturn.dead.acme.unknown",
		"oneturn.in.default.cancel.acme":                       "oneturn.dead.acme.cancel",
		"oneturn.in.default.x":                                 "oneturn.dead.-.unknown",
		"oneturn.in.default.cancel.=zz.WF.c":                   "oneturn.dead.-.cancel",
	} {
		m := k.mail(1, events.KindStructuredOutputReady, body).Message
		m.Subject = subject
		m.Lease.Seq = uint64(len(subject))
		require.Equal(t, inbound.Ack, k.Handle(t.Context(), m).Do, subject)
		dead, err := k.js.Stream(t.Context(), k.space.DeadStream())
		require.NoError(t, err)
		letter, err := dead.GetMsg(t.Context(), dead.CachedInfo().State.LastSeq)
		require.NoError(t, err)
		require.Equal(t, want, letter.Subject)
	}
}
