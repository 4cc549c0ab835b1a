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

// bus is the connection to NATS, and the server when it is the worker's own.
type bus struct {
	nc    *nats.Conn
	own   *embedded.Server // nil on a server of somebody else's
	url   string           // for publishers, without secrets
	space subjects.Space
	tier  provision.Tier
}

// close ends the connection and the server. Records are on their way to the disk until then.
func (b *bus) close() error {
	if b.nc != nil {
		b.nc.Close()
	}
	if b.own != nil {
		return b.own.Stop()
	}
	return nil
}

// connectTimeout bounds provisioning and checking.
const connectTimeout = 30 * time.Second

// connect starts the embedded server and provisions it, or connects to another one: a worker
// creates nothing on a server that is not its own.
func connect(ctx context.Context, cfg *config.Worker, logger *slog.Logger) (_ *bus, err error) {
	b := &bus{}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if b.space, err = subjects.New(cfg.Prefix); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	wanted := provision.Options{Space: b.space, Pools: []string{cfg.Pool}, MaxTurnLife: cfg.MaxTurnLife, MaxEventAge: cfg.MaxEventAge, Retention: cfg.Retention}
	if cfg.Embeds() {
		wanted.AckWait = cfg.AckWait
		err = b.embed(ctx, cfg, logger)
	} else {
		err = b.dial(cfg, logger)
	}
	if err != nil {
		return nil, err
	}
	var denials denied.Denials
	stop := denials.Watch(b.nc, b.space.Prefix())
	defer stop()
	if err := b.provision(ctx, wanted, int64(cfg.StoreMax)); err != nil {
		return nil, denials.Explain(err)
	}
	return b, nil
}

func (b *bus) embed(ctx context.Context, cfg *config.Worker, logger *slog.Logger) (err error) {
	b.own, err = embedded.Start(ctx, embedded.Options{
		Listen: cfg.Listen, Store: cfg.Store, MaxStore: max(int64(cfg.StoreMax), 0), SyncAlways: cfg.SyncAlways,
		Username: cfg.ListenUser, Password: string(cfg.ListenPassword), Accounts: cfg.Accounts, Account: b.space.Account(), Logger: logger,
	})
	if err != nil {
		return err
	}
	b.url = b.own.URL()
	b.nc, err = b.own.Conn(config.ConnOptions(clientName, logger)...)
	return err
}

func (b *bus) dial(cfg *config.Worker, logger *slog.Logger) (err error) {
	if b.nc, err = config.Connect(cfg.NATS, clientName, logger); err != nil {
		return err
	}
	b.url = cfg.URL.String()
	if b.url == "" {
		b.url = config.URL(b.nc.ConnectedUrlRedacted()).String()
	}
	return nil
}

// fit has the streams of an embedded server with a given limit leave room for the ends of turns. Dead letters that are
// there already lose none: then their size stays.
func (b *bus) fit(ctx context.Context, js jetstream.JetStream, wanted provision.Options, limit int64) (provision.Options, error) {
	if b.own == nil || limit <= 0 {
		return wanted, nil
	}
	wanted = wanted.Within(limit)
	dead, err := js.Stream(ctx, b.space.DeadStream())
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
	case err != nil:
		return wanted, fmt.Errorf("size of the dead letters: %w", err)
	default:
		wanted.DeadMaxBytes = max(wanted.DeadMaxBytes, dead.CachedInfo().Config.MaxBytes)
	}
	return wanted, nil
}

// provision makes streams and buckets on the embedded server, and reads what the records survive.
// On any other server the worker itself checks them.
func (b *bus) provision(ctx context.Context, wanted provision.Options, limit int64) error {
	js, err := jetstream.New(b.nc)
	if err != nil {
		return fmt.Errorf("open JetStream: %w", err)
	}
	if wanted, err = b.fit(ctx, js, wanted, limit); err != nil {
		return err
	}
	plan, err := provision.New(wanted)
	if err != nil {
		return err
	}
	sync := provision.SyncUnknown
	if b.own != nil {
		if _, err := provision.Apply(ctx, js, plan); err != nil {
			return err
		}
		if sync = provision.SyncLazy; b.own.SyncAlways() {
			sync = provision.SyncAlways
		}
	}
	b.tier, err = provision.ReadTier(ctx, js, plan, sync)
	return err
}
