package events

import "golang.org/x/text/unicode/norm"

// Name returns the form in which names of workflows, agents, models and tools are compared and
// stored: NFC, which editors, file systems and models mostly write. A letter with an accent can
// also be written as two characters; both spellings look the same and are one name.
func Name(name string) string { return norm.NFC.String(name) }
