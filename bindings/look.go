package bindings

// look is how the tools of a name are shown.
type look struct {
	component, display string

	secret bool
}

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

// AsksSecrets reports whether the manifests of a workflow say that answers to the questions of a UI
// tool are secret; if that workflow does not know the tool, whether any other says so. The name is
// one of a tool or a component, as for [Set.Look].
func (s *Set) AsksSecrets(workflow, tool string) bool {
	if w := s.find(workflow); w != nil {
		if l, ok := w.looks[tool]; ok {
			return l.secret
		}
	}
	for _, name := range s.names {
		if s.workflows[name].looks[tool].secret {
			return true
		}
	}
	return false
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
	l := look{t.component, t.mode, t.secret}
	b.w.looks[t.name] = l
	other, named := b.w.looks[t.component]
	if !named {
		other = l
	}
	other.secret = other.secret || l.secret // a component shows no less than the tools that it is of
	b.w.looks[t.component] = other
}
