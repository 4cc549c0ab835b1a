package display_test

import (
	"fmt"

	"github.com/oneturn/oneturn/gateway/display"
)

// A client connects while a turn runs: it gets what there is, then what changes.
func Example() {
	chat := display.New()
	apply := func(sequence uint64, event string) []display.Change {
		e, err := display.Decode([]byte(event))
		if err != nil {
			fmt.Println(err)
		}
		return chat.Apply(sequence, e)
	}
	apply(1, `{"type":"chat.tool_call","data":{"kind":"tool_call","turn":"t1","tool_call_id":"t1","tool_name":"greet","agent":"Greeter","interaction_type":"auto_tool","payload":{"tool_args":{"name":"Ada"}}}}`)

	view := &display.View{}
	for _, e := range view.Snapshot(chat, nil) {
		fmt.Println(e.Type())
	}
	changes := apply(2, `{"type":"chat.tool_response","data":{"kind":"tool_response","turn":"t1","tool_call_id":"t1","interaction_type":"auto_tool","status":"ok","success":true,"payload":{"message":"Hello, Ada!"}}}`)
	for _, e := range view.Render(chat, changes) {
		fmt.Println(e.Type())
	}
	fmt.Println(chat.State().Turns["t1"].Phase)
	// Output:
	// MESSAGES_SNAPSHOT
	// STATE_SNAPSHOT
	// TOOL_CALL_RESULT
	// STATE_DELTA
	// done
}
