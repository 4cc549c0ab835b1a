package bindings

// presentation is how the tools of a name are shown.
type presentation struct {
	component, display string

	secret bool
}

// Presentation returns the component that displays tools of a name, and where, as the manifests of a
// workflow have it; if that workflow has no component for them, as any other workflow has it. The name
// may also be the name of the component. The tool may have no agent: the code of another tool may
// display it. All is "" for a name that no manifest has with a component.
func (s *Set) Presentation(workflow, tool string) (component, display string) {
	l := s.presentation(workflow, tool, func(presentation) bool { return true })
	return l.component, l.display
}

// AsksSecrets reports whether the manifests of a workflow mark answers to the questions of a UI tool as
// secret; if that workflow does not know the tool, whether any other workflow does. The name is the
// name of a tool or a component, as for [Set.Presentation].
func (s *Set) AsksSecrets(workflow, tool string) bool {
	return s.presentation(workflow, tool, func(l presentation) bool { return l.secret }).secret
}

// presentation is how the tools of a name are shown in a workflow, else in the first other workflow whose
// presentation counts.
func (s *Set) presentation(workflow, tool string, counts func(presentation) bool) presentation {
	if w := s.find(workflow); w != nil {
		if l, ok := w.presentations[tool]; ok {
			return l
		}
	}
	for _, name := range s.names {
		if l, ok := s.workflows[name].presentations[tool]; ok && counts(l) {
			return l
		}
	}
	return presentation{}
}

// addPresentation notes how a tool is shown. Of two of a name the later one counts, as for bindings.
// MozaiksAI knows UI tools by their component.
func (b *binder) addPresentation(t *toolEntry) {
	if t.component == "" {
		return
	}
	if b.w.presentations == nil {
		b.w.presentations = map[string]presentation{}
	}
	l := presentation{t.component, t.mode, t.secret}
	b.w.presentations[t.name] = l
	other, named := b.w.presentations[t.component]
	if !named {
		other = l
	}
	other.secret = other.secret || l.secret // a component shows no less than the tools that it is of
	b.w.presentations[t.component] = other
}
