package mutants

import "github.com/oneturn/oneturn/internal/failpoint"

// Point is a failpoint inside the rules of package idempotency. The overlay adds it, so that the rules hold no code of
// tests. Its name is a constant of package failpoint.
type Point struct {
	Name string
	Edit Edit
}

// Points returns the failpoints inside the rules.
func Points() []Point {
	return []Point{
		{failpoint.AfterAnswer, Edit{
			File: "idempotency/answer.go",
			From: `c.noSignal = v.Status`,
			To:   `if t.Claim != nil { point("after_answer", t.Claim.Meta.Effect, a.Key) }; c.noSignal = v.Status`,
		}},
		{failpoint.AfterWake, Edit{
			File: "idempotency/answer.go",
			From: `case park.Meta.Outcome == ParkWoken:`,
			To:   `case park.Meta.Outcome == ParkWoken: point("after_wake", hold.Effect, c.Key)`,
		}},
		{failpoint.BeforeContinue, Edit{
			File: "idempotency/park.go",
			From: `switch won, err := j.own(`,
			To:   `point("before_continue", h.Effect, h.Key); switch won, err := j.own(`,
		}},
		{failpoint.AfterSeal, Edit{
			File: "idempotency/takeover.go",
			From: `if park.Meta.Outcome == ParkParked &&`,
			To:   `point("after_seal", claimed.Effect, c.Key); if park.Meta.Outcome == ParkParked &&`,
		}},
		{failpoint.AfterResume, Edit{
			File: "idempotency/takeover.go",
			From: "case !won:\n\t\treturn Decision{}, true, nil\n\t}",
			To:   "case !won:\n\t\treturn Decision{}, true, nil\n\t}; if c.Signal { point(\"after_resume\", hold.Effect, c.Key) }",
		}},
		{failpoint.AfterTakeover, Edit{
			File: "idempotency/takeover.go",
			From: `before := t`,
			To:   `point("after_takeover", hold.Effect, c.Key); before := t`,
		}},
	}
}
