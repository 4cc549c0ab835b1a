package agui_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/oneturn/oneturn/agui"
)

// greet is an agent that greets.
func greet(w http.ResponseWriter, r *http.Request) {
	in, err := agui.ReadInput(r.Body, agui.InputLimits{})
	if err != nil {
		status := http.StatusBadRequest
		if refused := (*agui.InputError)(nil); errors.As(err, &refused) {
			status = refused.Status()
		}
		http.Error(w, err.Error(), status)
		return
	}
	stream, err := agui.NewStream(w, agui.StreamOptions{Peer: in.Peer(), Verifier: agui.NewVerifier(in)})
	if err != nil {
		return // the client has gone
	}
	_ = stream.Send(
		&agui.RunStarted{ThreadID: in.ThreadID, RunID: in.RunID, ProtocolVersion: agui.ProtocolVersion},
		&agui.TextMessageStart{MessageID: "msg_1"},
		&agui.TextMessageContent{MessageID: "msg_1", Delta: "Hello!"},
		&agui.TextMessageEnd{MessageID: "msg_1"},
		&agui.RunFinished{ThreadID: in.ThreadID, RunID: in.RunID, Outcome: agui.Success()},
	)
}

func Example() {
	server := httptest.NewServer(http.HandlerFunc(greet))
	defer server.Close()
	body := strings.NewReader(`{"threadId":"chat_1","runId":"run_1","messages":[]}`)
	response, err := http.Post(server.URL, "application/json", body) //nolint:noctx // an example
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	events, _ := io.ReadAll(response.Body)
	fmt.Println(strings.ReplaceAll(string(events), "\n\n", "\n"))
	// Output:
	// data: {"type":"RUN_STARTED","threadId":"chat_1","runId":"run_1","protocolVersion":"1.0"}
	// data: {"type":"TEXT_MESSAGE_START","messageId":"msg_1"}
	// data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"msg_1","delta":"Hello!"}
	// data: {"type":"TEXT_MESSAGE_END","messageId":"msg_1"}
	// data: {"type":"RUN_FINISHED","threadId":"chat_1","runId":"run_1","outcome":{"type":"success"}}
}
