package bindings

// look is how the tools of a name are shown.
type look struct{ component, display string }

// Look returns the component that shows tools of a name, and where it shows, as the manifests of
// a workflow have it; if that one has no component for them, as any other workflow has it. The
// name may be that of the component itself. A tool need not be bound to an agent: the code of
// another may put it on the screen. All is "" for a name that no manifest has with a component.
func (s *Set) Look(workflow, tool string) (component, display string) {
	if w := s.find(workflow); w != nil {
		if l, ok := w.looks[tool]; ok {
			return l.component, l.display
		}
	}
	for _, name := range s.names {
		if l, ok := s.workflows[name].looks[tool]; ok {
			return l.component, l.display
		}
	}
	return "", ""
}

// look notes how a tool is shown. Of two of a name the later one counts, as for bindings.
// MozaiksAI knows UI tools by their component.
func (b *binder) look(t *toolEntry) {
	if t.component == "" {
		return
	}
	if b.w.looks == nil {
		b.w.looks = map[string]look{}
	}
	l := look{t.component, t.mode}
	b.w.looks[t.name] = l
	if _, named := b.w.looks[t.component]; !named {
		b.w.looks[t.component] = l
	}
}
