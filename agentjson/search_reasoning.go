package agentjson

// reasoning passes reasoning and channels at the current offset, and reports whether it did.
func (s *search) reasoning() (passed bool, err *Error) {
	rest := s.text[s.at:]
	b := reasoningAt(rest)
	isChannel := false
	if b.length == 0 {
		b = channelAt(rest)
		isChannel = b.length > 0
	}
	s.work += b.length
	switch {
	case b.length == 0:
		return false, nil
	case !b.closed:
		return true, s.fail(Truncated, s.at, "the text ends inside the reasoning: send the answer too")
	case b.before:
		had := !s.atStart()
		s.forget()
		if had || !isChannel {
			s.around.add(think)
		}
	default:
		s.around.add(think)
	}
	if isChannel {
		s.others++
	}
	s.at += b.length
	return true, nil
}

// forget drops all that was found: it was reasoning.
func (s *search) forget() {
	*s = search{
		text: s.text, options: s.options, inner: s.inner, base: s.base, at: s.at, listed: s.listed,
		around: s.around, work: s.work,
	}
}

// resume continues after reasoning whose opening mark is missing, if the JSON that could not be read, between an offset and the
// current one, began in it.
func (s *search) resume(from, to int) bool {
	s.work += to - from
	i := lastClosing(s.text[from:to])
	if i < 0 {
		return false
	}
	s.at = from + i
	s.forget()
	s.around.add(think)
	return true
}
