// Package bindings turns a folder of workflow manifests into an immutable [Set] that says which
// tool a turn calls, with which model its data is checked and how its arguments are mapped.
//
// A workflow is a folder directly under the root; its name is the folder's name. Two formats
// are read, alone or side by side:
//
//   - the manifests of MozaiksAI, every generation, as YAML or JSON: agents, tools,
//     structured_outputs, context_variables, orchestrator;
//   - our own oneturn.yaml, one file a workflow.
//
// A complete oneturn.yaml:
//
//	agents:
//	  Greeter: {model: Greeting}
//	models:
//	  Greeting:                     # JSON Schema 2020-12
//	    type: object
//	    required: [name]
//	    properties:
//	      name: {type: string}
//	tools:
//	  - name: greet
//	    agent: Greeter
//	    file: greet.py              # in the folder or in its tools/ folder
//
// Keys of oneturn.yaml:
//
//	workflow      optional; must be the folder's name
//	agents        name → {model, description, tools (the only ones that it may call)}
//	models        name → JSON Schema
//	tools         list of {name, kind (python, go, nats, mcp, http, agent), agent or agents,
//	              model or schema, file, function (default: name), auto (default: true), effect,
//	              timeout, max_attempts, ui {component, mode}, description, use (a shared tool),
//	              nats, mcp, http or completion (where a tool is that is neither Python nor Go),
//	              id (of an agent), input, output, cache, limits, guards}
//	servers       name → MCP server {command, env, url, headers, …}
//	defaults      {effect, timeout, max_attempts} of every tool that does not say its own
//	context       name → {type, description, default, source, triggers, agents}
//	on_key_reuse  refuse (default) or run; refuse written out also finds the turns of when it was run
//	compat        {silent: true} restores MozaiksAI's silence on failures, {events: true} the
//	              older names of its events
//
// [ManifestSchema] is a JSON Schema of it for editors. A file tools.oneturn.yaml beside the folders
// has tools and servers for all workflows ([SharedSchema]).
//
// Faults isolate to the model, the tool or the variable that has them: everything else of the
// workflow works on. Each fault is a [Diagnostic] with file and line, and a turn that would
// have used the faulty part gets an error that repeats it.
package bindings
