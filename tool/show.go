package tool

import (
	"context"

	"github.com/oneturn/oneturn/internal/tools"
)

// Surface is what [Show] displays.
type Surface struct {
	// Name distinguishes the surface from the others of the call. Without a name it is numbered, in the order
	// in which the call displays them.
	Name string
	// Tool is the id of the UI tool, the tool_name of the event. Empty: the name of the call.
	Tool string
	// Component that is displayed. Empty: the component of Tool's binding, else Tool.
	Component string
	// Display is where the component is displayed. Empty: as Tool's binding specifies, else [DisplayInline].
	Display Display
	// Payload is what the component gets: a struct, map or [json.RawMessage] that becomes a JSON object.
	Payload any
}

// Show displays a component without asking and returns its id, for [Dismiss]. A repeated run
// displays nothing twice.
func Show(ctx context.Context, s Surface) (id string, err error) {
	const op = "tool.Show"
	host, err := numberedHost(ctx, op, s.Name)
	if err != nil {
		return "", err
	}
	payload, err := object(op, s.Payload)
	if err != nil {
		return "", err
	}
	return host.Show(ctx, tools.Surface{Name: s.Name, Tool: s.Tool, Component: s.Component, Display: string(s.Display), Payload: payload})
}

// Dismiss removes what [Show] displays, by its id.
func Dismiss(ctx context.Context, id string) error {
	host, err := tools.HostFrom(ctx, "tool.Dismiss")
	if err != nil {
		return err
	}
	return host.Dismiss(ctx, id)
}

// Progress reports how far the tool is: percent from 0 to 100, or less than 0 if that is not
// known. Current viewers of the chat receive it; it is not stored, and frequent reports are
// thinned out.
func Progress(ctx context.Context, percent float64, message string) error {
	host, err := tools.HostFrom(ctx, "tool.Progress")
	if err != nil {
		return err
	}
	return host.Progress(ctx, tools.Progress{Percent: percent, Message: message})
}
