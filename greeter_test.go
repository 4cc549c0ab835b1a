package oneturn_test

import "github.com/oneturn/oneturn/internal/test/harness"

// Short names of the worker that most tests run.
var (
	greeter, turn, server, start = harness.Greeter, harness.GreetingTurn, harness.NewServer, harness.StartWorker

	client, publish, await = harness.NewClient, harness.Publish, harness.Await
)

type greeting = harness.Greeting
