package accounts

import "github.com/oneturn/oneturn/events"

// gateway is in the account of the workers, since it reads the journal itself: it shows chats while no worker runs.
func (s *setup) gateway() User {
	u := user("gateway", "A gateway: shows chats to browsers, and publishes what their users write.", s.gatewayPublishes(),
		[]string{s.Space.EventsPrefix() + ".>", s.Space.LiveEvents(), s.Space.AllAnswerReplies(), s.Space.GatewaySubjects()})
	u.Publish = append(u.Publish, u.Inbox+".>") // gateways answer each other
	return u
}

func (s *setup) gatewayPublishes() (list []string) {
	for _, pool := range s.Pools {
		for _, kind := range []string{events.KindUserMessage, events.KindToolCallResponse, events.KindCancel} {
			list = append(list, s.Space.InKind(pool, kind))
		}
	}
	turns, blobs := s.Space.TurnsStream(), "OBJ_"+s.Space.BlobsBucket()
	list = append(list, s.Space.GatewaySubjects(),
		"$JS.API.CONSUMER.CREATE."+turns+".>", "$JS.API.CONSUMER.MSG.NEXT."+turns+".*", "$JS.API.CONSUMER.INFO."+turns+".*",
		"$JS.API.CONSUMER.DELETE."+turns+".*", "$JS.FC."+turns+".>",
	)
	for _, stream := range []string{turns, s.Space.TurnsMirror(), "KV_" + s.Space.ContextBucket(), blobs, s.Space.WorkflowsStream()} {
		list = append(list, "$JS.API.STREAM.INFO."+stream, "$JS.API.STREAM.MSG.GET."+stream)
	}
	for _, stream := range []string{turns, s.Space.TurnsMirror(), blobs} {
		list = append(list, "$JS.API.DIRECT.GET."+stream, "$JS.API.DIRECT.GET."+stream+".>")
	}
	return append(list, "$JS.API.DIRECT.GET."+s.Space.WorkflowsStream())
}
