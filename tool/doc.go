// Package tool is what a tool written in Go uses while it runs: its call ([Info]), the
// context variables of its chat ([Vars]), people ([Ask], [Input]), what it displays ([Show],
// [Dismiss], [Progress]), work that must not be repeated ([Step]), and how it fails
// ([UserError], [Retryable], [RetryAfter]). Every function takes the context that the tool was
// called with. A whole tool:
//
//	type Post struct {
//		Title string `json:"title"`
//	}
//
//	type Decision struct {
//		Status string `json:"status"`
//	}
//
//	func publish(ctx context.Context, in Post) (string, error) {
//		if in.Title == "" {
//			return "", tool.UserError("a post needs a title")
//		}
//		draft, err := tool.Step(ctx, "save the draft", func(ctx context.Context) (int, error) {
//			return blog.Save(ctx, in, tool.Info(ctx).IdempotencyKey)
//		})
//		if err != nil {
//			return "", err
//		}
//		d, err := tool.Ask[Decision](ctx, tool.Question{Payload: in, Timeout: 24 * time.Hour})
//		switch {
//		case errors.Is(err, tool.ErrExpired):
//			return "not published: no decision within a day", nil
//		case err != nil: // also tool.ErrParked: the answer runs the tool again
//			return "", err
//		case d.Status != "approved":
//			return "not published", nil
//		}
//		if err := blog.Publish(ctx, draft); err != nil {
//			return "", tool.Retryable(err) // only if nothing was published
//		}
//		return "published", tool.Vars(ctx).Set("last_post", in.Title)
//	}
//
// [oneturn.NewTool] makes it a tool of a worker, and package oneturntest calls it in a test
// without a server. docs/go-tools.md and docs/questions.md have the details.
//
// # Runs
//
// A tool runs again when its worker died or was parked. A question may stay open for days, and
// the worker does not wait for that long: it parks the turn, that is, it ends this run of the
// tool with [ErrParked] and keeps nothing of it in memory. The answer runs the tool again, on any
// worker, and the same Ask returns it. So
//
//   - return the error of Ask unchanged, and do nothing after ErrParked: the result is discarded;
//   - code before an open question may run again: put its effects into a [Step]. Code after the
//     last answer never runs twice if the effect of the tool is replay, the default of tools with
//     a component;
//   - a repeated run has to ask the same questions in the same order, or to name them: questions
//     that are asked concurrently, in a loop over data that changes, or inside a step need a
//     [Question.Name].
//
// # Files
//
//   - call.go: the call and its context variables
//   - question.go: questions, and answers as values; show.go: surfaces and progress
//   - step.go: steps
//   - errors.go: errors with which a tool fails or refuses
//
// [oneturn.NewTool]: https://pkg.go.dev/github.com/oneturn/oneturn#NewTool
package tool
