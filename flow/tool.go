package flow

import (
	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
)

// Tool is what the compiler knows of a tool that steps may call.
type Tool struct {
	Name   string
	Effect events.Effect
	// Program is the kind of program that the tool runs, "" for a tool that does its work itself.
	Program Kind
	Steps   Tools        // that steps of its program may call; nil: the same tools
	Input   *model.Model // completes and checks arguments; nil takes any
	// Arguments and Output are the schemas of arguments and result; nil if none is declared, and then
	// no reference can lead into the output.
	Arguments, Output *Schema
}

// Tools finds the tools that the steps of a program may call.
type Tools interface {
	// Find returns a tool by the name that the program uses.
	Find(name string) (Tool, bool)
	// Names returns the names of all, sorted, for feedback.
	Names() []string
}

// ToolList is a Tools of a list. Names have to be sorted and distinct.
type ToolList []Tool

// Find implements [Tools].
func (l ToolList) Find(name string) (Tool, bool) {
	for _, t := range l {
		if t.Name == name {
			return t, true
		}
	}
	return Tool{}, false
}

// Names implements [Tools].
func (l ToolList) Names() []string {
	names := make([]string, len(l))
	for i, t := range l {
		names[i] = t.Name
	}
	return names
}
