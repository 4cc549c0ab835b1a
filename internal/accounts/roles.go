package accounts

import (
	"fmt"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// One function for each account, and in it one user for each role, with the subjects that it may publish and
// subscribe. A role gets what its commands and methods use and no more: the tests in docs run them with these
// rights.

// setup makes the roles of a set-up.
type setup struct{ Options }

func user(role, about string, publish, subscribe []string) User {
	inbox := "_INBOX_" + role // of workers subjects.WorkerInboxes
	return User{Name: role, Role: role, About: about, Publish: publish, Subscribe: append(subscribe, inbox+".>"), Inbox: inbox}
}

// tenant is the account of one tenant: what its roles publish, and what they read.
func (s *setup) tenant(id string) Account {
	token := subjects.Token(id)
	in := func(kinds ...string) (list []string) {
		for _, pool := range s.Pools {
			for _, kind := range kinds {
				list = append(list, fmt.Sprintf("%s.in.%s.%s.%s.>", s.Space.Prefix(), pool, kind, token))
			}
		}
		return list
	}
	requests := func(verbs ...string) (list []string) {
		for _, verb := range verbs {
			list = append(list, s.Space.API(id, verb))
			if verb == api.VerbQuestions {
				list = append(list, s.Space.API(id, api.VerbWaits)) // clients fall back to it for one more release
			}
		}
		return list
	}
	live := s.Space.Prefix() + ".live." + token + ".>"
	stored := s.Space.EventsPrefix() + "." + token + ".>"
	a := Account{Name: "TENANT_" + token, About: fmt.Sprintf("Tenant %q.", id), Users: []User{
		user("publisher", "Publishes turns, messages, cancels and answers, and waits for the outcome.",
			append(in(events.KindStructuredOutputReady, events.KindAgentMessage, events.KindUserMessage, events.KindPlanReady, events.KindRetry, events.KindCancel,
				events.KindToolCallResponse), requests(api.VerbTurn, api.VerbQuestions, api.VerbAnswer)...), []string{stored, s.Space.AnswerReplies(id)}),
		user("answerer", "Answers questions, as any user of the tenant: for a service that knows who its users are.",
			append(in(events.KindToolCallResponse), requests(api.VerbQuestions, api.VerbAnswer)...), []string{s.Space.AnswerReplies(id)}),
		user("reader", "Shows what happens in chats.", requests(api.VerbTurn, api.VerbHistory, api.VerbQuestions), []string{stored, live}),
		user("fetcher", "Fetches payloads over 256 KiB, on top of reader.", requests(api.VerbBlob), nil),
		user("inspector", "Reads context variables, which are not in events, on top of reader.", requests(api.VerbContext), nil),
	}}
	for i := range a.Users {
		a.Users[i].Name = token + "-" + a.Users[i].Role
	}
	return a
}

// operator reads. It may not create a consumer: that could deliver records to any subscriber of the
// product's account.
func (s *setup) operator() User {
	publish := []string{"$JS.API.INFO", "$JS.API.STREAM.INFO.*", "$JS.API.CONSUMER.INFO.*.*"}
	for _, stream := range []string{s.Space.TurnsStream(), s.Space.InStream(), s.Space.TimersStream(), s.Space.DeadStream(), "KV_" + s.Space.ContextBucket()} {
		publish = append(publish, "$JS.API.STREAM.MSG.GET."+stream)
	}
	return user("operator", "turnctl show, handoff explain, questions show and doctor.", append(publish, "$SRV.STATS."+s.Space.APIName()), nil)
}

// workers are one role for each pool.
func (s *setup) workers() (users []User) {
	for _, pool := range s.Pools {
		u := user("worker", fmt.Sprintf("Runs tools of pool %s, and answers requests, hence allow_responses.", pool), s.workerPublishes(pool), nil)
		u.Responses = true
		u.Subscribe = append([]string{
			s.Space.EventsOfKind(events.KindCancel), s.Space.Acks(), s.Space.InKind(pool, events.KindCancel), s.Space.Prefix() + ".api.*.*", s.Space.AllAnswerReplies(),
			"$SRV.PING", "$SRV.INFO", "$SRV.STATS",
		}, u.Subscribe...)
		for _, verb := range []string{"PING", "INFO", "STATS"} {
			name := "$SRV." + verb + "." + s.Space.APIName()
			u.Subscribe = append(u.Subscribe, name, name+".>")
		}
		u.Subscribe = append(u.Subscribe, u.Inbox+"_tools.>")
		if pool != subjects.DefaultPool {
			u.Name = "worker-" + pool
		}
		users = append(users, u)
	}
	return users
}

func (s *setup) workerPublishes(pool string) []string {
	in, timers, turns := s.Space.InStream(), s.Space.TimersStream(), s.Space.TurnsStream()
	blobs, consumer := "OBJ_"+s.Space.BlobsBucket(), s.Space.WorkerConsumer(pool)
	list := []string{ //nolint:prealloc // a handful
		"$JS.API.CONSUMER.MSG.NEXT." + in + "." + consumer, "$JS.ACK." + in + "." + consumer + ".>",
		"$JS.API.CONSUMER.MSG.NEXT." + timers + ".timers", "$JS.ACK." + timers + ".timers.>", s.Space.Prefix() + ".timer.>",
		"$JS.API.STREAM.MSG.GET." + timers, "$JS.API.STREAM.MSG.GET." + in, "$JS.API.STREAM.MSG.DELETE." + in,
	}
	// A deferred message is published again by any worker, an answer as one of a kind that only workers publish.
	for _, kind := range []string{
		events.KindResume, events.KindExpire, events.KindToolCallResponse, events.KindDeferredResponse, events.KindStructuredOutputReady,
		events.KindAgentMessage, events.KindUserMessage, events.KindPlanReady, events.KindRetry,
	} {
		list = append(list, s.Space.Prefix()+".in.*."+kind+".>")
	}
	list = append(list,
		"$KV."+s.Space.TurnsBucket()+".>", "$JS.API.STREAM.MSG.GET."+turns,
		"$JS.API.CONSUMER.CREATE."+turns+".>", "$JS.API.CONSUMER.MSG.NEXT."+turns+".*", "$JS.API.CONSUMER.DELETE."+turns+".*",
	)
	context, limits := s.Space.ContextBucket(), s.Space.LimitsBucket()
	list = append(list, "$KV."+context+".>", "$JS.API.STREAM.MSG.GET.KV_"+context, "$KV."+limits+".>", "$JS.API.DIRECT.GET.KV_"+limits+".>",
		s.Space.WorkflowSubjects(), "$JS.API.DIRECT.GET."+s.Space.WorkflowsStream())
	list = append(list,
		"$O."+s.Space.BlobsBucket()+".>", "$JS.API.DIRECT.GET."+blobs, "$JS.API.DIRECT.GET."+blobs+".>", "$JS.API.STREAM.MSG.GET."+blobs, "$JS.API.STREAM.PURGE."+blobs,
		"$JS.API.CONSUMER.CREATE."+blobs+".>", "$JS.API.CONSUMER.DELETE."+blobs+".*", "$JS.FC."+blobs+".>",
		s.Space.Prefix()+".dead.>", s.Space.Prefix()+".live.>", s.Space.AllAnswerReplies(),
		"$JS.API.INFO", "$JS.API.STREAM.INFO.*", "$JS.API.CONSUMER.INFO.*.*",
	)
	for _, service := range s.Services {
		list = append(list, service, service+".>", "$SRV.INFO."+service, "_INBOX_"+service+".>")
	}
	return list
}

// repairer can give the workers anything, of every tenant.
func (s *setup) repairer() User {
	publish := []string{ //nolint:prealloc // a handful
		s.Space.Prefix() + ".in.>", "$JS.API.STREAM.MSG.DELETE." + s.Space.DeadStream(),
		"$JS.API.INFO", "$JS.API.STREAM.INFO.*", "$JS.API.CONSUMER.INFO.*.*", "$JS.API.STREAM.MSG.GET.*", "$SRV.STATS." + s.Space.APIName(),
	}
	blobs := "OBJ_" + s.Space.BlobsBucket()
	for _, stream := range []string{s.Space.DeadStream(), s.Space.TurnsStream()} {
		publish = append(publish, "$JS.API.CONSUMER.CREATE."+stream+".>", "$JS.API.CONSUMER.MSG.NEXT."+stream+".*", "$JS.API.CONSUMER.DELETE."+stream+".*")
	}
	publish = append(publish, "$JS.API.DIRECT.GET."+blobs+".>", "$JS.API.CONSUMER.CREATE."+blobs+".>", "$JS.API.CONSUMER.DELETE."+blobs+".*")
	return user("repairer", "turnctl ls, questions, dead and repair, besides what operator may.", publish, nil)
}

func (s *setup) provisioner() User {
	return user("provisioner", "turnctl provision.", []string{"$JS.API.>", "$SRV.PING." + s.Space.APIName()}, nil)
}

// services answer calls of tools. What they publish with goes to inboxes of calls only, which no
// stream stores, so their reply subjects lead nowhere.
func (s *setup) services() (users []User) {
	for _, name := range s.Services {
		u := user(name, "NATS service "+name+".", []string{"_INBOX_worker_tools.>"}, nil)
		u.Service = true
		subscribe := []string{name, name + ".>"}
		for _, verb := range []string{"PING", "INFO", "STATS"} {
			at := "$SRV." + verb
			subscribe = append(subscribe, at, at+"."+name, at+"."+name+".>")
		}
		u.Subscribe = append(subscribe, u.Subscribe...)
		users = append(users, u)
	}
	return users
}
