package provision_test

import (
	"fmt"

	"github.com/oneturn/oneturn/provision"
)

func Example() {
	plan, err := provision.New(provision.Options{Pools: []string{"default", "gpu"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range plan.Streams {
		fmt.Println("stream", s.Name)
	}
	for _, c := range plan.Consumers {
		fmt.Println("consumer", c.Stream, c.Config.Durable)
	}
	// Output:
	// stream KV_ONETURN_TURNS
	// stream ONETURN_IN
	// stream ONETURN_TIMERS
	// stream KV_ONETURN_CONTEXT
	// stream OBJ_ONETURN_BLOBS
	// stream ONETURN_DEAD
	// stream KV_ONETURN_LIMITS
	// stream KV_ONETURN_WORKFLOWS
	// consumer ONETURN_IN workers-default
	// consumer ONETURN_IN workers-gpu
	// consumer ONETURN_TIMERS timers
}
