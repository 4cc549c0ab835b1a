package guards

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"github.com/oneturn/oneturn/internal/tools"
)

// A condition is compiled once: newCondition parses it, reader walks its tree, refuses what it may not use and counts
// its loops, and compile makes the program. evaluate runs it for a call; refuse makes a refusal of true, and of an
// evaluation that fails or takes too long.

// Bounds of a condition. Its loops are counted, because the evaluation cannot be interrupted.
const (
	maxCondition = 2 << 10     // bytes of text
	maxNodes     = 200         // of its tree
	maxPattern   = 512         // bytes of a regular expression
	maxLoops     = 100_000     // passes of loops in one evaluation
	maxMemory    = 100_000     // elements that one evaluation may build
	maxTime      = time.Second // of its loops
)

// Functions returns the names that a condition can call: they look at values, build none that are
// larger, and reach nothing outside.
func Functions() []string {
	return []string{
		"all", "any", "none", "one", "filter", "find", "count", "sum", "len", "type", "abs", "ceil", "floor", "round", "int", "float", "string",
		"trim", "lower", "upper", "hasPrefix", "hasSuffix", "indexOf", "min", "max", "first", "last", "get", "keys", "values",
	}
}

// environment is what a condition on input sees.
type environment struct {
	Args     map[string]any `expr:"args"`
	Agent    string         `expr:"agent"`
	Workflow string         `expr:"workflow"`
	Tool     string         `expr:"tool"`
	UserID   string         `expr:"user_id"`
	ChatID   string         `expr:"chat_id"`
	AppID    string         `expr:"app_id"`
	Step     func() bool    `expr:"#step"` // counts loops; no text of an expression can name it
}

// outputEnvironment is what a condition on output sees.
type outputEnvironment struct {
	environment

	Output any `expr:"output"`
}

// stepName is the name of [environment.Step] in the tree of an expression.
const stepName = "#step"

// condition refuses when its expression is true.
type condition struct {
	on         string
	text       string
	program    *vm.Program
	usesArgs   bool
	usesOutput bool
	names      []string // that it looks at, once each
}

func newCondition(on, text string) (check, error) {
	if len(text) > maxCondition {
		return nil, refused("when", fmt.Sprintf("write at most %d", maxCondition), "it has %d bytes", len(text))
	}
	c := &condition{on: on, text: text}
	look := &reader{condition: c}
	var env any = environment{}
	if on == OnOutput {
		env = outputEnvironment{}
	}
	options := []expr.Option{
		expr.Env(env), expr.AsBool(), expr.WarnOnAny(), expr.MaxNodes(maxNodes), expr.DisableAllBuiltins(), expr.Patch(look),
		expr.Optimize(false),
	} // which would build ranges while it compiles
	for _, name := range Functions() {
		options = append(options, expr.EnableBuiltin(name))
	}
	program, err := compile(text, options)
	switch {
	case look.problem != "":
		return nil, refused("when", "use args, agent, workflow, tool, user_id, chat_id, app_id, on: output also output, and "+strings.Join(Functions(), ", "), "%s", look.problem)
	case err != nil:
		return nil, refused("when", conditionFix(on, err), "%s", err.Error())
	}
	c.program = program
	return c, nil
}

// compile does not let a bug of the compiler end the process.
func compile(text string, options []expr.Option) (program *vm.Program, err error) {
	defer func() {
		if p := recover(); p != nil {
			program, err = nil, fmt.Errorf("it cannot be compiled: %v", p)
		}
	}()
	if _, err := parser.Parse(text); err != nil {
		return nil, oneLine(err)
	}
	program, err = expr.Compile(text, options...)
	if err != nil {
		return nil, oneLine(err)
	}
	return program, nil
}

// oneLine leaves out the drawing of the place that expr adds to its errors.
func oneLine(err error) error {
	var at *file.Error
	if errors.As(err, &at) {
		return fmt.Errorf("%s (column %d)", at.Message, at.Column+1)
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return errors.New(first)
}

// conditionFix returns what to write instead.
func conditionFix(on string, err error) string {
	switch text := err.Error(); {
	case strings.Contains(text, "expected bool"):
		return "write a comparison, for example args.confirmed == true: it has to be true or false, whatever the values are"
	case on == OnInput && strings.Contains(text, "unknown name output"):
		return "there is no result yet on: input; write on: output"
	default:
		return "write an expression that is true when the call is to be refused, for example args.amount > 1000"
	}
}

// reader looks at the tree of an expression: what it uses, and what it may not. It puts a step
// before the body of every loop.
type reader struct {
	condition *condition
	problem   string
}

// Visit implements [ast.Visitor].
func (r *reader) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		if !slices.Contains(r.condition.names, n.Value) {
			r.condition.names = append(r.condition.names, n.Value)
		}
		r.condition.usesArgs = r.condition.usesArgs || n.Value == "args" || n.Value == "$env"
		r.condition.usesOutput = r.condition.usesOutput || n.Value == "output"
		if n.Value == "$env" {
			r.refuse("$env cannot be used")
		}
	case *ast.BuiltinNode: // the names of loops are not in the compiler's list of functions
		if !slices.Contains(Functions(), n.Name) {
			r.refuse(n.Name + " cannot be called")
		}
	case *ast.VariableDeclaratorNode:
		r.refuse("let cannot be used")
	case *ast.SequenceNode:
		if !counted(n) {
			r.refuse("it is more than one expression")
		}
	case *ast.BinaryNode:
		if n.Operator != "matches" {
			return
		}
		if pattern, ok := n.Right.(*ast.StringNode); !ok || len(pattern.Value) > maxPattern {
			r.refuse(fmt.Sprintf("the pattern of matches must be a plain text of at most %d bytes", maxPattern))
		}
	case *ast.PredicateNode:
		if body, ok := n.Node.(*ast.SequenceNode); ok && counted(body) {
			return
		}
		step := &ast.CallNode{Callee: &ast.IdentifierNode{Value: stepName}}
		n.Node = &ast.SequenceNode{Nodes: []ast.Node{step, n.Node}}
	default:
	}
}

// counted reports whether a sequence was made by the reader.
func counted(n *ast.SequenceNode) bool {
	call, ok := n.Nodes[0].(*ast.CallNode)
	if !ok {
		return false
	}
	name, ok := call.Callee.(*ast.IdentifierNode)
	return ok && name.Value == stepName
}

func (r *reader) refuse(problem string) {
	if r.problem == "" {
		r.problem = problem
	}
}

// Errors of an evaluation.
var (
	errLoops = errors.New("its loops take too many passes")
	errTime  = errors.New("it takes too long")
)

func (c *condition) refuse(ctx context.Context, call *tools.Call, v *value) error {
	result, err := c.evaluate(ctx, call, v)
	var unread *Refusal
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &unread):
		return unread
	case err != nil:
		return &Refusal{Reason: "a guard could not decide, so the call is refused: " + c.failure(err), Err: err}
	case result:
		return &Refusal{Reason: "a guard refuses " + v.name + ": " + c.text}
	}
	return nil
}

// failure returns what went wrong without the values, which the error of expr may contain.
func (c *condition) failure(err error) string {
	for _, known := range []error{errLoops, errTime} {
		if errors.Is(err, known) {
			return known.Error() + ": " + c.text
		}
	}
	return "a value is missing or of another type than " + c.text + " takes it for"
}

func (c *condition) evaluate(ctx context.Context, call *tools.Call, v *value) (bool, error) {
	left, end := maxLoops, time.Now().Add(maxTime)
	env := environment{
		Agent: call.Agent, Workflow: call.Workflow, Tool: call.Name, UserID: call.UserID, ChatID: call.Turn.Chat, AppID: call.Turn.App,
		Step: func() bool {
			left--
			switch {
			case left < 0:
				panic(errLoops)
			case time.Now().After(end):
				panic(errTime)
			case ctx.Err() != nil:
				panic(ctx.Err())
			}
			return true
		},
	}
	if c.usesArgs {
		args, _ := plain(call.Args).(map[string]any)
		env.Args = args
	}
	machine := vm.VM{MemoryBudget: maxMemory}
	var all any = env
	if c.on == OnOutput {
		out := outputEnvironment{environment: env}
		if c.usesOutput {
			tree, err := v.tree()
			if err != nil {
				return false, err
			}
			out.Output = plain(tree)
		}
		all = out
	}
	result, err := machine.Run(c.program, all)
	if err != nil {
		return false, err //nolint:wrapcheck // failure reads it
	}
	yes, ok := result.(bool)
	if !ok {
		return false, fmt.Errorf("it is %T", result)
	}
	return yes, nil
}
