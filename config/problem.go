package config

import (
	"errors"
	"strings"
)

// Problem is one thing that is wrong with the settings.
type Problem struct {
	Setting string `json:"setting"` // as it was written: "--slots", "ONETURN_SLOTS", "slots in oneturn.yaml:3"
	Message string `json:"message"` // never a secret
	Mend    string `json:"mend"`    // the smallest value that works
}

// String is the problem as one line.
func (p Problem) String() string { return p.Setting + ": " + p.Message + "; try " + p.Mend }

// Error lists everything that is wrong with the settings.
type Error struct {
	Problems []Problem
}

// Error implements error, one line a problem.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return "configuration: " + strings.Join(lines, "\nconfiguration: ")
}

// Unwrap returns each problem as an error, so that a command can print its name before each line.
func (e *Error) Unwrap() []error {
	all := make([]error, len(e.Problems))
	for i, p := range e.Problems {
		all[i] = errors.New("configuration: " + p.String())
	}
	return all
}
