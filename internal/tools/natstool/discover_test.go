package natstool_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/natstool"
	"github.com/oneturn/oneturn/internal/tools/target"
)

const (
	input  = `{"type":"object","required":["item"],"properties":{"item":{"type":"string"},"count":{"type":"integer","minimum":1,"default":1}}}`
	output = `{"type":"string"}`
)

func about(effect string) map[string]string {
	return map[string]string{"oneturn-effect": effect, "oneturn-input": input, "oneturn-output": output, "oneturn-version": "v7", "oneturn-description": "Orders."}
}

func TestEndpointIsFoundByItsNames(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.micro(micro.Config{Name: "orders", Version: "1.0.0", Description: "A shop."}, map[string]micro.EndpointConfig{
		"place": {Subject: "orders.v1.place", Metadata: about("keyed")}, "list": {Subject: "orders.v1.list"},
	})
	place := k.tool(&target.NATS{Service: "orders", Endpoint: "place", TrustMetadata: true})
	result, err := k.invoke(place, k.call(map[string]any{"item": "tea"}))
	require.NoError(t, err)
	require.Equal(t, `"orders.v1.place"`, string(result.Value))
	d, known := place.Known()
	require.True(t, known)
	require.Equal(t, tools.Description{
		Text: "Orders.", Input: json.RawMessage(input), Output: json.RawMessage(output), Effect: "keyed", Version: "v7",
	}, d)

	list := k.tool(&target.NATS{Service: "orders", Endpoint: "list", TrustMetadata: true})
	_, known = list.Known()
	require.False(t, known)
	eventually(t, func() bool { _, known := list.Known(); return known }, "a reader has it asked in the background")
	d, err = list.Describe(t.Context())
	require.NoError(t, err)
	require.Equal(t, tools.Description{Text: "A shop.", Version: "1.0.0"}, d)
}

func TestEffectCountsOnlyIfItIsTrusted(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.micro(micro.Config{Name: "orders", Version: "1.0.0"}, map[string]micro.EndpointConfig{
		"place": {Subject: "orders.place", Metadata: about("none")}, "odd": {Subject: "orders.odd", Metadata: about("harmless")},
	})
	for want, to := range map[string]*target.NATS{
		"none": {Subject: "orders.place", TrustMetadata: true},
		"":     {Service: "orders", Endpoint: "place"},
	} {
		d, err := k.tool(to).Describe(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, d.Effect)
		require.JSONEq(t, input, string(d.Input))
	}
	d, err := k.tool(&target.NATS{Service: "orders", Endpoint: "odd", TrustMetadata: true}).Describe(t.Context())
	require.NoError(t, err)
	require.Empty(t, d.Effect, "a value that manifests do not know")
}

func TestArgumentsAreCheckedByTheServicesSchemaBeforeTheyAreSent(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	got := make(chan string, 1)
	service := k.micro(micro.Config{Name: "orders", Version: "1.0.0"}, nil)
	require.NoError(t, service.AddEndpoint("place", micro.HandlerFunc(func(r micro.Request) {
		got <- string(r.Data())
		_ = r.RespondJSON("placed")
	}), micro.WithEndpointSubject("orders.place"), micro.WithEndpointMetadata(about(""))))
	require.NoError(t, k.services.Flush())
	tool := k.tool(&target.NATS{Service: "orders"})
	call := k.call(map[string]any{"item": "tea", "count": "3"})
	call.ArgsJSON = json.RawMessage(`{"count":"3","item":"tea"}`)
	_, err := k.invoke(tool, call)
	require.NoError(t, err)
	require.JSONEq(t, `{"item":"tea","count":3}`, <-got)
	require.Equal(t, "3", call.Args["count"], "the call is not changed")

	_, err = k.invoke(tool, k.call(map[string]any{"count": json.Number("0"), "item": "classified"}))
	require.ErrorIs(t, err, events.ErrBadArgs)
	require.False(t, tools.IsRetryable(err))
	require.Contains(t, err.Error(), "bad_args:count: expected at least 1")
	require.NotContains(t, err.Error(), "classified")
	require.Empty(t, got, "nothing was sent")
}

func TestAnswersAreHeldAgainstTheServicesSchema(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	answer := ""
	service := k.micro(micro.Config{Name: "orders", Version: "1.0.0"}, nil)
	require.NoError(t, service.AddEndpoint("place", micro.HandlerFunc(func(r micro.Request) { _ = r.Respond([]byte(answer)) }),
		micro.WithEndpointSubject("orders.place"), micro.WithEndpointMetadata(map[string]string{
			"oneturn-output": `{"type":"object","required":["order"],"properties":{"order":{"type":"string","maxLength":3}}}`,
		})))
	require.NoError(t, k.services.Flush())
	tool := k.tool(&target.NATS{Service: "orders"})
	for _, answer = range []string{``, `"classified"`, `{}`, `{"order":"classified"}`} {
		_, err := k.invoke(tool, k.call(nil))
		require.ErrorIs(t, err, events.ErrToolError, answer)
		require.False(t, tools.IsRetryable(err), "the service has run")
		require.Contains(t, err.Error(), "output schema")
		require.NotContains(t, err.Error(), "classified")
	}
	answer = `{"order":"a1","besides":1.50}`
	result, err := k.invoke(tool, k.call(nil))
	require.NoError(t, err)
	require.Equal(t, answer, string(result.Value), "as it came")
	answer = `"{\"order\":\"a1\"}"`
	result, err = k.invoke(tool, k.call(nil))
	require.NoError(t, err)
	require.JSONEq(t, `{"order":"a1"}`, string(result.Value), "the result is the one that was checked")
}

func TestSchemaThatCannotBeUsedChecksNothing(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.micro(micro.Config{Name: "orders", Version: "1.0.0"}, map[string]micro.EndpointConfig{
		"place": {Subject: "orders.place", Metadata: map[string]string{"oneturn-input": `{"$ref":"https://example.com/schema"}`, "oneturn-output": `{`}},
	})
	tool := k.tool(&target.NATS{Service: "orders"})
	_, err := k.invoke(tool, k.call(nil))
	require.NoError(t, err)
	d, err := tool.Describe(t.Context())
	require.NoError(t, err)
	require.Nil(t, d.Input)
	require.Nil(t, d.Output)
}

// TestOfInstancesThatDifferTheNewestCounts has one service in three versions.
func TestOfInstancesThatDifferTheNewestCounts(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	for version, effect := range map[string]string{"1.9.0": "none", "1.10.0": "none", "1.10.0-rc.1": "keyed"} {
		k.micro(micro.Config{Name: "orders", Version: version}, map[string]micro.EndpointConfig{
			"place": {Subject: "orders.v" + strings.ReplaceAll(version, ".", "_"), Metadata: map[string]string{"oneturn-effect": effect}},
		})
	}
	tool := k.tool(&target.NATS{Service: "orders", TrustMetadata: true})
	result, err := k.invoke(tool, k.call(nil))
	require.NoError(t, err)
	require.Equal(t, `"orders.v1_10_0"`, string(result.Value))
	d, known := tool.Known()
	require.True(t, known)
	require.Equal(t, tools.Description{Version: "1.10.0"}, d, "any of them may get the call, and they do not agree on the effect")
}

func TestServiceThatIsNotThereIsRetryable(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.micro(micro.Config{Name: "orders", Version: "1.0.0"}, map[string]micro.EndpointConfig{"a": {Subject: "orders.a"}, "b": {Subject: "orders.b"}})
	for _, to := range []*target.NATS{{Service: "absent"}, {Service: "orders", Endpoint: "c"}, {Service: "orders"}} {
		_, err := k.invoke(k.tool(to), k.call(nil))
		require.ErrorIs(t, err, events.ErrToolError)
		require.True(t, tools.IsRetryable(err), "nothing has happened")
		if to.Service == "absent" {
			require.ErrorContains(t, err, "no service answers at absent")
		}
	}
}

func TestServiceLeadsTheWorkerToNoSubjectOfTheServer(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	answer := ""
	_, err := k.services.Subscribe("$SRV.INFO.evil", func(m *nats.Msg) { respond(m, answer) })
	require.NoError(t, err)
	require.NoError(t, k.services.Flush())
	for _, subject := range []string{"$JS.API.STREAM.DELETE.ONETURN_IN", "oneturn.in.default.cancel.a.w.c", "_INBOX.a.b", "orders.>", ""} {
		data, err := json.Marshal(micro.Info{
			ServiceIdentity: micro.ServiceIdentity{Name: "evil", ID: "1", Version: "1.0.0"}, Endpoints: []micro.EndpointInfo{{Name: "e", Subject: subject}},
		})
		require.NoError(t, err)
		answer = string(data)
		require.NoError(t, k.services.Flush())
		_, err = k.invoke(k.tool(&target.NATS{Service: "evil"}), k.call(nil))
		require.ErrorIs(t, err, events.ErrToolError, subject)
		require.False(t, tools.IsRetryable(err), subject)
		require.Contains(t, err.Error(), "name the subject to call in the manifest")
	}
	for _, bad := range []string{`[]`, `{"name":"other","endpoints":[{"name":"e","subject":"a"}]}`, `{"name":"evil","endpoints":null}`} {
		answer = bad
		require.NoError(t, k.services.Flush())
		_, err = k.invoke(k.tool(&target.NATS{Service: "evil"}), k.call(nil))
		require.Error(t, err, bad)
	}
}

func TestDiscoveryEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	_, err := k.services.Subscribe("$SRV.INFO.silent", func(*nats.Msg) {})
	require.NoError(t, err)
	require.NoError(t, k.services.Flush())
	tool := natstool.New(&target.NATS{Service: "silent"}, natstool.Options{Conn: k.worker})
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, errors.New("enough"))
	defer cancel()
	_, err = tool.Invoke(ctx, k.call(nil))
	require.Error(t, err)
	require.Less(t, len(err.Error()), 200)
	ended, end := context.WithCancel(t.Context())
	end()
	require.Error(t, tool.Close(ended), "it was still asking")
}
