package variables

// supersededBy reports whether the producer has changed a variable since a tool changed it last. A
// producer does not learn what tools set: a snapshot that repeats what it held then, or holds
// nothing, is older than the stored value. MozaiksAI needs no such rule, as its tools and its
// producer change one object.
func (e variable) supersededBy(snapshot map[string]any, name string) bool {
	value, ok := snapshot[name]
	return ok && Digest(value) != e.Base
}
