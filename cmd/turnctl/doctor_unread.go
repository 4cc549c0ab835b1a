package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	maxSubjects = 100_000 // of waiting messages, which are looked through
	maxPools    = 50      // whose consumers are asked for
	maxNamed    = 5       // subjects that are told
)

// unread finds messages that wait for nobody: no consumer takes their subject, so that no
// worker ever sees them.
func (d *diagnosis) unread(ctx context.Context, s *server) {
	stream, err := s.js.Stream(ctx, s.space.InStream())
	if err != nil {
		return // told by streams
	}
	if n := stream.CachedInfo().State.NumSubjects; n > maxSubjects {
		d.addf("unread", verdictInfo, "", "%d subjects have messages, more than are looked through for ones that no worker takes", n)
		return
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(s.space.InSubjects()))
	if err != nil {
		d.addf("unread", verdictWarning, "", "whether all messages are taken by a worker could not be found out: %v", err)
		return
	}
	lost, pools, err := s.nobodys(ctx, info.State.Subjects)
	switch {
	case err != nil:
		d.addf("unread", verdictWarning, "", "whether all messages are taken by a worker could not be found out: %v", err)
	case len(lost) == 0:
		d.addf("unread", verdictOK, "", "every message is for a pool that has a consumer")
	default:
		total := uint64(0)
		for _, subject := range lost {
			total += info.State.Subjects[subject]
		}
		mend := "turns belong on " + s.space.Prefix() + ".in.<pool>.<kind>.<app>.<workflow>.<chat>: mend the publisher"
		if len(pools) > 0 {
			mend += ", or give the pool a consumer: turnctl provision --pools " + strings.Join(pools, ",") + " (together with the pools that are there)"
		}
		named := strings.Join(lost[:min(len(lost), maxNamed)], ", ")
		if more := len(lost) - maxNamed; more > 0 {
			named += fmt.Sprintf(" and %d more", more)
		}
		d.addf("unread", verdictWarning, mend, "%s in %s that no consumer takes: %s", plural(int(min(total, 1<<31)), "message"), s.space.InStream(), named)
	}
}

// nobodys returns the subjects that no pool's consumer takes, sorted, and the pools that have
// no consumer.
func (s *server) nobodys(ctx context.Context, subjects map[string]uint64) (lost, pools []string, err error) {
	root := strings.TrimSuffix(s.space.InSubjects(), ">")
	known := make(map[string]bool) // whether a pool has its consumer
	for _, subject := range slices.Sorted(maps.Keys(subjects)) {
		pool, _, complete := strings.Cut(strings.TrimPrefix(subject, root), ".")
		if !complete {
			lost = append(lost, subject) // the pool alone
			continue
		}
		has, asked := known[pool]
		if !asked {
			if len(known) == maxPools {
				return nil, nil, fmt.Errorf("there are messages for more than %d pools", maxPools)
			}
			_, err := s.js.Consumer(ctx, s.space.InStream(), s.space.WorkerConsumer(pool))
			if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) && !errors.Is(err, jetstream.ErrInvalidConsumerName) {
				return nil, nil, fmt.Errorf("look for the consumer of pool %q: %w", pool, err)
			}
			if has = err == nil; !has {
				pools = append(pools, pool)
			}
			known[pool] = has
		}
		if !has {
			lost = append(lost, subject)
		}
	}
	return lost, pools, nil
}
