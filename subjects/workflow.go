package subjects

import "strings"

// WorkflowsBucket is the KV bucket in which workers announce the workflows that they have.
func (s Space) WorkflowsBucket() string { return s.upper + "_WORKFLOWS" }

// WorkflowsStream is the stream of [Space.WorkflowsBucket].
func (s Space) WorkflowsStream() string { return "KV_" + s.WorkflowsBucket() }

// WorkflowSubjects matches all announced workflows.
func (s Space) WorkflowSubjects() string { return "$KV." + s.WorkflowsBucket() + ".>" }

// WorkflowSubject is where the workers of a pool announce a workflow, given by its name.
func (s Space) WorkflowSubject(workflow, pool string) string {
	return "$KV." + s.WorkflowsBucket() + "." + WorkflowKey(workflow, pool)
}

// WorkflowKey is the key of a workflow in [Space.WorkflowsBucket], as the workers of a pool announce it.
func WorkflowKey(workflow, pool string) string { return Token(workflow) + "." + pool }

// ParseWorkflow returns the workflow, a token, and the pool of a subject that [Space.WorkflowSubject] makes. It
// reports false for any other subject.
func (s Space) ParseWorkflow(subject string) (workflow, pool string, ok bool) {
	key, ok := strings.CutPrefix(subject, "$KV."+s.WorkflowsBucket()+".")
	if !ok {
		return "", "", false
	}
	workflow, pool, ok = strings.Cut(key, ".")
	return workflow, pool, ok && isToken(workflow) && CheckPool(pool) == nil
}
