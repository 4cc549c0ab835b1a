package provision

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/diag"
)

// ErrNotReady means that the promise does not hold on a server as it is provisioned.
var ErrNotReady = errors.New("the server is not ready for workers")

// Require is [Check] for a worker: what breaks the promise is returned as one error with
// all reasons, [ErrNotReady]. A setting that is not as planned, but safe, is logged at
// debug level: turnctl doctor reports it.
func Require(ctx context.Context, js jetstream.JetStream, plan Plan, logger *slog.Logger) error {
	findings, err := Check(ctx, js, plan)
	if err != nil {
		return err
	}
	var broken []string
	for _, f := range findings {
		if f.Severity == diag.SeverityError {
			broken = append(broken, "  "+f.String())
			continue
		}
		logger.Debug("setting is not the default, but safe", "object", f.Object, "setting", f.Setting, "is", f.Have, "default", f.Want)
	}
	if len(broken) > 0 {
		return fmt.Errorf("%w, turnctl provision fixes it:\n%s", ErrNotReady, strings.Join(broken, "\n"))
	}
	return nil
}
