package handlers

// defaultMaxAckPending is how many messages the workers of a pool hold together if the consumer does
// not say: as many as package provision sets.
const defaultMaxAckPending = 20_000

// givenBackShare is the share of a process in what its pool may hold, one in so many, for messages that are given back
// with a delay. Six workers that use up all of their shares, see [Registry.Resize], leave a quarter to turns that run.
const givenBackShare = 64

// SetMaxAckPending sets how many messages the workers of the pool may hold together from now on, as
// the configuration of its consumer says, and with it the shares of this process. 0 or less is
// unknown, or no limit: then it counts as 20,000. What holds a place keeps it.
func (h *Handlers) SetMaxAckPending(n int) {
	if n <= 0 {
		n = defaultMaxAckPending
	}
	if before := h.maxAckPending.Swap(int64(n)); before == int64(n) {
		return
	} else if before > 0 {
		h.Logger.Info("the consumer allows another number of messages to be held; the shares of this worker follow",
			"before", before, "max_ack_pending", n)
	}
	h.givenBack.Resize(n / givenBackShare)
	h.runs.Resize(n)
}
