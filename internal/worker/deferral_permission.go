package worker

import (
	"context"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/events"
)

// checkDeferralPermission uses the permission that a worker needs seldom and users of earlier versions lack: to publish
// deferred answers. The server reports a denial to [Worker.denied], so the worker is not ready and names the subject before
// an answer depends on it. The stream expected is not the one there, so nothing is stored.
func (w *Worker) checkDeferralPermission(context.Context) {
	m := nats.NewMsg(w.space.In(w.c.Pool, events.KindDeferredResponse, events.DefaultApp, "-", "-"))
	m.Header.Set(nats.ExpectedStreamHdr, "-")
	if err := w.nc.PublishMsg(m); err != nil {
		w.c.Logger.Debug("the permissions of the worker cannot be checked", "err", err)
	}
}
