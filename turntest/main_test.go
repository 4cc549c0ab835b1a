//go:build unix

package turntest_test

import (
	"context"
	"errors"
	"testing"

	"go.uber.org/goleak"

	"github.com/oneturn/oneturn/turntest"
)

func TestMain(m *testing.M) {
	roles := map[string]turntest.Role{
		"wait": func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		},
		"fail": func(context.Context) error { return errors.New("as asked") },
	}
	if turntest.RunRole(roles) {
		return
	}
	goleak.VerifyTestMain(m)
}
