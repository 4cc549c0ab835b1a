package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/embedded"
	"github.com/oneturn/oneturn/internal/denied"
	"github.com/oneturn/oneturn/provision"
	"github.com/oneturn/oneturn/subjects"
)

// An embedded server is provisioned by the worker itself; an external one is only read, because workers have no
// right to create streams (turnctl provision does it). In both cases the tier is read: which failures the stored
// records survive.

// natsLink is the connection to NATS, and the embedded server if the worker has one.
type natsLink struct {
	nc     *nats.Conn
	server *embedded.Server // the embedded server; nil on an external one
	url    string           // for publishers, without secrets
	space  subjects.Space
	tier   provision.Tier
}

// close closes the connection and stops the server, which then writes its records to disk.
func (l *natsLink) close() error {
	if l.nc != nil {
		l.nc.Close()
	}
	if l.server != nil {
		return l.server.Stop()
	}
	return nil
}

// connectTimeout bounds provisioning and checking.
const connectTimeout = 30 * time.Second

// connect starts the embedded server and provisions it, or connects to an external one, on which a worker
// creates nothing.
func connect(ctx context.Context, cfg *config.Worker, logger *slog.Logger) (_ *natsLink, err error) {
	l := &natsLink{}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	if l.space, err = subjects.New(cfg.Prefix); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	wanted := provision.Options{Space: l.space, Pools: []string{cfg.Pool}, MaxTurnLife: cfg.MaxTurnLife, MaxEventAge: cfg.MaxEventAge, Retention: cfg.Retention}
	if cfg.Embeds() {
		wanted.AckWait = cfg.AckWait
		err = l.embed(ctx, cfg, logger)
	} else {
		err = l.dial(cfg, logger)
	}
	if err != nil {
		return nil, err
	}
	var denials denied.Denials
	stop := denials.Watch(l.nc, l.space.Prefix())
	defer stop()
	if err := l.provision(ctx, wanted, int64(cfg.StoreMax)); err != nil {
		return nil, denials.Explain(err)
	}
	return l, nil
}

func (l *natsLink) embed(ctx context.Context, cfg *config.Worker, logger *slog.Logger) (err error) {
	l.server, err = embedded.Start(ctx, embedded.Options{
		Listen: cfg.Listen, Store: cfg.Store, MaxStore: max(int64(cfg.StoreMax), 0), SyncAlways: cfg.SyncAlways,
		Username: cfg.ListenUser, Password: string(cfg.ListenPassword), Accounts: cfg.Accounts, Account: l.space.Account(), Logger: logger,
	})
	if err != nil {
		return err
	}
	l.url = l.server.URL()
	l.nc, err = l.server.Conn(config.ConnOptions(clientName, logger)...)
	return err
}

func (l *natsLink) dial(cfg *config.Worker, logger *slog.Logger) (err error) {
	if l.nc, err = config.Connect(cfg.NATS, clientName, logger); err != nil {
		return err
	}
	l.url = cfg.URL.String()
	if l.url == "" {
		l.url = config.URL(l.nc.ConnectedUrlRedacted()).String()
	}
	return nil
}

// fitToAccount limits the streams of an embedded server with a storage limit, so that responses always have
// room. The stream of dead letters never shrinks, so that none is lost.
func (l *natsLink) fitToAccount(ctx context.Context, js jetstream.JetStream, wanted provision.Options, limit int64) (provision.Options, error) {
	if l.server == nil || limit <= 0 {
		return wanted, nil
	}
	wanted = wanted.Within(limit)
	dead, err := js.Stream(ctx, l.space.DeadStream())
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
	case err != nil:
		return wanted, fmt.Errorf("size of the dead letters: %w", err)
	default:
		wanted.DeadMaxBytes = max(wanted.DeadMaxBytes, dead.CachedInfo().Config.MaxBytes)
	}
	return wanted, nil
}

// provision creates streams and buckets on the embedded server, and reads which failures the records survive.
// On an external server the worker itself checks them.
func (l *natsLink) provision(ctx context.Context, wanted provision.Options, limit int64) error {
	js, err := jetstream.New(l.nc)
	if err != nil {
		return fmt.Errorf("open JetStream: %w", err)
	}
	if wanted, err = l.fitToAccount(ctx, js, wanted, limit); err != nil {
		return err
	}
	plan, err := provision.New(wanted)
	if err != nil {
		return err
	}
	sync := provision.SyncUnknown
	if l.server != nil {
		if _, err := provision.Apply(ctx, js, plan); err != nil {
			return err
		}
		if sync = provision.SyncLazy; l.server.SyncAlways() {
			sync = provision.SyncAlways
		}
	}
	l.tier, err = provision.ReadTier(ctx, js, plan, sync)
	return err
}
