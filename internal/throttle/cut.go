package throttle

// Cut bounds a subject or an id for the log, at 200 bytes.
func Cut(text string) string {
	const most = 200
	return text[:min(len(text), most)]
}
