//go:build unix

package oneturntest_test

import (
	"context"
	"errors"
	"testing"

	"go.uber.org/goleak"

	"github.com/oneturn/oneturn/oneturntest"
)

func TestMain(m *testing.M) {
	roles := map[string]oneturntest.Role{
		"wait": func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		},
		"fail": func(context.Context) error { return errors.New("as asked") },
	}
	if oneturntest.RunRole(roles) {
		return
	}
	goleak.VerifyTestMain(m)
}
