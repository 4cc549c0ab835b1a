package accounts

import "github.com/oneturn/oneturn/events"

// orchestrator is in the account of the workers, since its consumer is one of the journal. It may create one of the messages of chats
// alone, and not one of all records.
func (s *setup) orchestrator() User {
	turns := s.Space.TurnsStream()
	publish := []string{ //nolint:prealloc // a handful
		"$JS.API.CONSUMER.CREATE." + turns + ".*." + s.Space.JournalSubject("e.*.*.*.*."+events.RecordText), "$JS.ACK." + turns + ".*.>",
	}
	for _, pool := range s.Pools {
		publish = append(publish, s.Space.InKind(pool, events.KindAgentMessage))
	}
	return user("orchestrator", "An orchestrator: receives the messages of all chats, and publishes messages of agents.", publish, nil)
}
