// Package bindings turns a folder of workflow manifests into an immutable [Set]: which tool a
// turn calls, with which model its data is checked and how its arguments are mapped.
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
//	defaults      {effect, timeout, max_attempts} of every tool that does not set them
//	context       name → {type, description, default, source, triggers, agents}
//	on_key_reuse  refuse (default) or run; with refuse written out, turns made under run are found too
//	compat        {silent: true} restores MozaiksAI's silence on failures, {events: true} the
//	              older names of its events
//
// [ManifestSchema] is a JSON Schema of it for editors. A file tools.oneturn.yaml next to the
// folders has tools and servers for all workflows ([SharedSchema]).
//
// An error disables only the model, the tool or the variable that has it: everything else of the
// workflow works. Each problem is a [Diagnostic] with file, line and fix, and a turn that would have used
// the disabled part gets an error that repeats it.
//
// How the parts fit: load.go reads all folders ([Load]) and watch.go repeats that on changes ([Watch]).
// For each folder, parsed_workflow.go reads the files (folder.go, parse.go) into a manifest
// (manifest.go): oneturn.yaml with oneturn.go, MozaiksAI's files with mozaiks.go and its neighbours, the
// settings of one tool with entry_reader.go, target_blocks.go and tool_rules.go. Then bind.go and the
// bind_*.go files connect agents, models and tools to bindings (binding.go), which set.go finds by the
// names of a turn. args.go maps the data of a turn to arguments, trusted_data.go keeps a model from
// setting what belongs to the turn.
package bindings
