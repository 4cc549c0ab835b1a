package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/internal/plural"
)

// This check compares the subjects of stored inbound messages with the filters of the consumers: a message that no
// consumer selects is never handled, and one whose consumer no worker pulls from waits. Both are found without
// reading a message.

const (
	maxSubjects = 100_000 // of waiting messages that are checked
	maxPools    = 50      // whose consumers are read
	maxNamed    = 5       // subjects in one report
)

// unconsumed finds messages that no consumer selects or whose consumer no worker pulls from. They fill the
// inbound stream, which then refuses the messages of all pools.
func (d *diagnosis) unconsumed(ctx context.Context, s *server) {
	stream, err := s.js.Stream(ctx, s.space.InStream())
	if err != nil {
		return // reported by check streams
	}
	if n := stream.CachedInfo().State.NumSubjects; n > maxSubjects {
		d.addf("unread", diag.SeverityInfo, "", "%d subjects have messages: too many to check that workers take all", n)
		return
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(s.space.InSubjects()))
	if err != nil {
		d.addf("unread", diag.SeverityWarning, "", "could not check that workers take all messages: %v", err)
		return
	}
	found, err := s.unconsumed(ctx, info.State.Subjects)
	lost, pools := found.subjects, found.missing
	for _, pool := range found.idle {
		d.addf("pools", diag.SeverityWarning, "start a worker with --pool "+pool, "messages wait for pool %s, and no worker pulls from it", pool)
	}
	switch {
	case err != nil:
		d.addf("unread", diag.SeverityWarning, "", "could not check that workers take all messages: %v", err)
	case len(lost) == 0:
		d.addf("unread", severityOK, "", "every message is for a pool that has a consumer")
	default:
		total := uint64(0)
		for _, subject := range lost {
			total += info.State.Subjects[subject]
		}
		fix := "turns belong on " + s.space.Prefix() + ".in.<pool>.<kind>.<app>.<workflow>.<chat>: fix the publisher"
		if len(pools) > 0 {
			fix += ", or give the pool a consumer: turnctl provision --pools " + strings.Join(pools, ",") + " (together with the pools that are there)"
		}
		named := strings.Join(lost[:min(len(lost), maxNamed)], ", ")
		if more := len(lost) - maxNamed; more > 0 {
			named += fmt.Sprintf(" and %d more", more)
		}
		d.addf("unread", diag.SeverityWarning, fix, "%s in %s that no consumer takes: %s", plural.Of(total, "message"), s.space.InStream(), named)
	}
}

// unconsumedMessages are messages that no worker takes.
type unconsumedMessages struct {
	subjects []string // that no consumer has, sorted
	missing  []string // pools without a consumer
	idle     []string // pools without a worker
}

// unconsumed returns which of the messages on some subjects no worker takes.
func (s *server) unconsumed(ctx context.Context, subjects map[string]uint64) (out unconsumedMessages, err error) {
	root := strings.TrimSuffix(s.space.InSubjects(), ">")
	known := make(map[string]bool) // whether a pool has its consumer
	for _, subject := range slices.Sorted(maps.Keys(subjects)) {
		pool, _, complete := strings.Cut(strings.TrimPrefix(subject, root), ".")
		if !complete {
			out.subjects = append(out.subjects, subject) // the pool alone
			continue
		}
		has, asked := known[pool]
		if !asked {
			if len(known) == maxPools {
				return unconsumedMessages{}, fmt.Errorf("there are messages for more than %d pools", maxPools)
			}
			consumer, err := s.js.Consumer(ctx, s.space.InStream(), s.space.WorkerConsumer(pool))
			if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) && !errors.Is(err, jetstream.ErrInvalidConsumerName) {
				return unconsumedMessages{}, fmt.Errorf("read the consumer of pool %q: %w", pool, err)
			}
			switch has = err == nil; {
			case !has:
				out.missing = append(out.missing, pool)
			case idle(consumer.CachedInfo()):
				out.idle = append(out.idle, pool)
			}
			known[pool] = has
		}
		if !has {
			out.subjects = append(out.subjects, subject)
		}
	}
	return out, nil
}

// idle reports whether messages wait and no worker pulls: a worker always has a pull request open, unless all
// its slots are in use.
func idle(info *jetstream.ConsumerInfo) bool {
	return info.NumPending > 0 && info.NumWaiting == 0 && info.NumAckPending == 0
}
