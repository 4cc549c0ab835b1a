package feed

import (
	"testing"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

func BenchmarkRecordOfAChatWithoutFollowers(b *testing.B) {
	f := &Feeds{chats: map[chat]map[*Follower]struct{}{}}
	name := subjects.MessageKey("app", "chat", "", "m").Public(events.RecordText)
	record, _ := subjects.ParseKey(name)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for n := uint64(1); pb.Next(); n++ {
			f.route(record, n, n, nil)
		}
	})
}
