package limits_test

import (
	"context"
	"fmt"

	"github.com/oneturn/oneturn/internal/limits"
	"github.com/oneturn/oneturn/internal/tools/target"
)

func Example() {
	limiter := limits.New(nil, nil) // limits.NewKV(js, space) for rates, which workers share
	defer limiter.Close()

	one := target.Limits{Tool: target.Limit{Concurrency: 1}}
	release, err := limiter.Wait(context.Background(), "render", "acme", one)
	fmt.Println("first:", err)

	hurry, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = limiter.Wait(hurry, "render", "acme", one)
	fmt.Println("second:", err)

	release()
	_, err = limiter.Wait(context.Background(), "render", "acme", one)
	fmt.Println("third:", err)
	// Output:
	// first: <nil>
	// second: context canceled
	// third: <nil>
}
