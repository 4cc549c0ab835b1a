package kvstore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/jsapi"
)

func TestAcknowledgementWithoutAResultIsUnknownNeverStored(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		"", "{}", "null", "[]", `{"seq":0}`, `{"seq":-1}`, `{"seq":1.5}`, `{"seq":99999999999999999999}`, `{"stream":"S"}`,
		`{"error":{}}`, `{"error":{"code":503,"description":"no err_code"}}`, `{"error":{"code":503},"seq":7}`, "nope",
	} {
		_, err := parseAck(&nats.Msg{Data: []byte(body)})
		require.Error(t, err, body)
	}
}

func FuzzAck(f *testing.F) {
	for _, s := range []string{
		`{"stream":"KV_ONETURN_TURNS","seq":12}`, `{"stream":"S", "seq": 12, "duplicate": true}`, `{"seq":0}`, `{}`, ``,
		`{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 7"},"stream":"S","seq":0}`, `{"error":{"code":503}}`,
		`{"domain":"\"seq\":5"}`,
	} {
		f.Add([]byte(s), "")
	}
	f.Add([]byte{}, "503")
	f.Fuzz(func(t *testing.T, body []byte, status string) {
		ack, err := parseAck(&nats.Msg{Data: body, Header: nats.Header{"Status": {status}}})
		if err == nil && ack.code == 0 && ack.seq == 0 {
			t.Fatalf("%q counts as stored, nowhere", body)
		}
		if err != nil && (ack.code != 0 || ack.seq != 0) {
			t.Fatalf("%q is unknown and yet %+v", body, ack)
		}
	})
}

func FuzzRecordHeader(f *testing.F) {
	block := func(m idempotency.Meta) []byte {
		var b strings.Builder
		b.WriteString("NATS/1.0\r\n")
		m.Headers(func(_ int, name, value string) {
			if value != "" {
				fmt.Fprintf(&b, "%s: %s\r\n", name, value)
			}
		})
		b.WriteString("\r\n")
		return []byte(b.String())
	}
	full := idempotency.Meta{
		Owner: "w", Nonce: "N", Epoch: 2, Lease: idempotency.Lease{Stream: "ONETURN_IN", Seq: 7, Delivery: 3}, Effect: "unsafe", Digest: "d", Fingerprint: "f", Outcome: "cancelled",
		Trace: "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-01",
	}
	f.Add(block(full))
	f.Add(block(idempotency.Meta{Owner: "w", Nonce: "N", Epoch: 1}))
	for _, s := range []string{
		"", "NATS/1.0\r\n\r\n", "NATS/1.0", "NATS/1.0 503\r\n\r\n", "NATS/1.0\r\nOneturn-Epoch: 99999999999999999999\r\n\r\n",
		"NATS/1.0\r\nOneturn-Lease: S/1/-1\r\n\r\n", "NATS/1.0\r\n: x\r\n\r\n", "NATS/1.0\r\n folded\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		header, err := (&jsapi.Message{RawHeader: raw}).Header()
		if err != nil {
			return
		}
		m, err := idempotency.ParseMeta(header.Get)
		if err != nil {
			return
		}
		if m.Owner == "" || m.Nonce == "" || m.Epoch < 1 {
			t.Fatalf("a record without a writer is accepted: %+v", m)
		}
		again, err := (&jsapi.Message{RawHeader: block(m)}).Header()
		require.NoError(t, err)
		back, err := idempotency.ParseMeta(again.Get)
		require.NoError(t, err)
		require.Equal(t, m, back)
	})
}
