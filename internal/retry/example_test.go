package retry_test

import (
	"fmt"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/retry"
)

// A retry that was not published yet has the key of the turn and a number.
func ExampleKey() {
	nothing := func(events.TurnID) (*retry.Past, error) { return retry.Read(nil, nil) }
	id, exists, err := retry.Key(events.TurnID{Chat: "chat-42", Turn: "turn-7"}, "", nothing)
	fmt.Println(id.Turn, exists, err)
	// Output: turn-7~retry1 false <nil>
}
