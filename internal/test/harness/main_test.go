//go:build unix

package harness_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/oneturntest"
)

func TestMain(m *testing.M) {
	roles := map[string]oneturntest.Role{
		"wait": func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		},
	}
	if harness.RunRole(roles) {
		return
	}
	goleak.VerifyTestMain(m)
}
