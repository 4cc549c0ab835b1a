package guards_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/internal/guards"
)

// FuzzCondition: whatever text compiles decides about a call in bounded time, or refuses it.
func FuzzCondition(f *testing.F) {
	for _, when := range []string{
		`args.amount > 1000`, `any(args.items, .price > 1)`, `all(args.l, all(args.l, # == 1))`, `args.to matches "^a+$"`, `len(1..99999) > 1`,
		`args?.a?.b == nil`, `"a" in keys(args)`, `filter(args.l, # in args.l) == args.l`, `string(args) contains "x"`, `get(args.l, -1) == 1`, `args.a ?? true`,
		`args.l[1:5] == [1]`, `{"a": 1}.a == 1`, `not not true`, `1 / 0 > 1`, `args.l[args.n] == 1`, `sum(args.l, # ** 99) > 1`, `#`, `.x`, `$env`, `int("x") == 1`,
	} {
		f.Add(when)
	}
	f.Fuzz(func(t *testing.T, when string) {
		g, err := guards.Compile(guards.Declared{On: guards.OnInput, When: when})
		if err != nil {
			_, ok := diag.Of(err)
			require.True(t, ok)
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err = guards.AdmitInput(ctx, []guards.Guard{g}, call(t, `{"amount":5,"n":1,"to":"aaa","l":[1,2,3,"x",null],"items":[{"price":1},{"price":"2"}],"a":{"b":true}}`))
		var r *guards.Refusal
		require.True(t, err == nil || errors.As(err, &r), "%v", err)
		require.False(t, r != nil && r.Reason == "a guard broke, so the call is refused", "%s: %v", when, r)
	})
}
