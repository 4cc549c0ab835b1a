// Package timers handles the messages that schedules deliver.
//
// [Timers.Handle] runs a sweep that is due and schedules the next one (timers.go). The end of the time to answer a
// question, and a message that was deferred, it publishes into the inbound stream, where the workers of the right pool
// decide them (publish_due.go). [ScheduleExpiry] creates the schedule of a question (schedule.go). log.go bounds the rate of log lines.
package timers
