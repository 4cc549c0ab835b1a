package main

import (
	"context"
	"fmt"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/internal/retry"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/subjects"
)

// What turnctl retry reads of the turn to retry, and the errors if it is not found.

// missingProgram is the error for a turn without records. If the id identifies a step, it names the turn of the step.
func (s *server) missingProgram(ctx context.Context, id events.TurnID, read func(events.TurnID) (*retry.Past, error)) error {
	for call := range events.StepIDs(id.Turn) {
		of := id
		of.Turn = call
		past, err := read(of)
		if err != nil {
			return fmt.Errorf("retry: %s", clean(messageOf(err), longestText))
		}
		if past.Claim != nil {
			return cli.Usagef("retry: %s is a step: give the turn: %s", clean(id.Turn, maxCallID), argument(call))
		}
	}
	if _, qualified := events.Unqualified(id.Turn); qualified {
		return s.missingQualified(ctx, id)
	}
	return s.missing(ctx, keyOfTurn(id), id)
}

// missingQualified is the error for an id without records that may be the tool_call_id of a turn with a run id or under a reused key.
func (s *server) missingQualified(ctx context.Context, id events.TurnID) error {
	found, err := s.reader.Names(subjects.Token(id.App)).Locate(ctx, query.RefTo(id, id.Turn, ""), query.Claims)
	if err != nil || len(found) == 0 {
		return s.missing(ctx, keyOfTurn(id), id)
	}
	run, turn, plain := subjects.ParseTurnToken(found[0].Turn)
	_, hashed, _ := subjects.Untoken(found[0].Turn)
	switch {
	case hashed: // of long ids: either
		return s.missing(ctx, keyOfTurn(id), id)
	case !plain:
		return fmt.Errorf("retry: turn %s runs under a reused key (on_key_reuse: run) and cannot be retried: send it again under a new turn key", clean(id.Turn, maxCallID))
	}
	return cli.Usagef("retry: %s is the tool_call_id of a turn with a run id: give %s --run %s", clean(id.Turn, maxCallID), argument(turn), argument(run))
}

// past reads a turn, and the pool of its worker.
func (s *server) past(ctx context.Context, id events.TurnID) (past *retry.Past, pool string, err error) {
	turn, err := idempotency.Load(ctx, s.journal, keyOfTurn(id))
	if err != nil {
		return nil, "", err
	}
	if turn.Claim != nil && subjects.CheckPool(turn.Claim.Meta.Pool) == nil {
		pool = turn.Claim.Meta.Pool
	}
	past, err = retry.FromTurn(turn, func(key subjects.Key, kind string, stored any) (any, error) {
		if _, isBlob := events.BlobOf(stored); !isBlob {
			return stored, nil
		}
		blobs, err := store.NewBlobs(ctx, s.nc, s.js, s.space)
		if err != nil {
			return nil, err
		}
		return blobs.Value(ctx, key, kind, stored)
	})
	return past, pool, err
}

func keyOfTurn(id events.TurnID) subjects.Key {
	return subjects.TurnKey(id.App, id.Chat, id.Run, id.Turn)
}
