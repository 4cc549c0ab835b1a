// Package bindings turns a folder of workflow manifests into an immutable [Set]: which tool a
// turn calls, with which model its data is checked and how its arguments are mapped.
//
// A workflow is a folder directly under the root; its name is the folder's name. Two formats
// are read, alone or side by side:
//
//   - the manifests of MozaiksAI, every generation, as YAML or JSON: agents, tools,
//     structured_outputs, context_variables, handoffs, orchestrator;
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
//	description   what the workflow is for, shown to people
//	agents        name → {model, description, tools (the only ones that it may call)}
//	models        name → JSON Schema
//	tools         list of {name, kind (python, go, nats, mcp, http, agent, plan, orchestrate),
//	              agent or agents, model or schema, file, function (default: name), auto (default: true), effect,
//	              timeout, max_attempts, ui {component, mode}, description, use (a shared tool),
//	              nats, mcp, http or completion (where a tool is that is neither Python nor Go),
//	              id (of an agent), input, output, cache, limits, guards; of kind plan and
//	              orchestrate: uses, planner, respond, approve, enabled, program {calls, steps,
//	              parallel, depth, step_timeout, timeout}}
//	servers       name → MCP server {command, env, url, headers, …}
//	defaults      {effect, timeout, max_attempts} of every tool that does not set them
//	context       name → {type, description, default, source, triggers, transitions, agents}
//	handoffs      list of {from, to, condition, conditions, condition_type, trigger, scope, description}, or
//	              {decider (a tool of kind agent), rules}; see package handoff
//	on_key_reuse  refuse (default) or run; with refuse written out, turns made under run are found too
//	compat        {silent: true} restores MozaiksAI's silence on failures, {events: true} the
//	              older names of its events, {split_hiding: true} its rule of hiding messages
//
// [ManifestSchema] is a JSON Schema of it for editors. A file tools.oneturn.yaml next to the
// folders has tools and servers for all workflows ([SharedSchema]).
//
// An error disables only the model, the tool or the variable that has it: everything else of the
// workflow works. Each problem is a [Diagnostic] with file, line and fix, and a turn that would have used
// the disabled part gets an error that repeats it.
//
// # Files
//
// Reading the folders, in the order of the work:
//
//   - load.go: [Load] reads all workflows into a [Set]; watch.go and watch_tree.go repeat it on changes ([Watch])
//   - workflow_folder.go: finds workflows, reads and hashes their files, and never leaves the folder
//   - manifest_parser.go, manifest_yaml.go, manifest_json.go: the bytes of a manifest become values with lines
//     (manifest_value.go)
//   - parsed_workflow.go: all that is read of one workflow; shared_tools.go: the file for all workflows; go_tools.go: tools that
//     a Go program declares
//
// Reading a manifest into the common form of manifest.go:
//
//   - oneturn_yaml.go: oneturn.yaml and its JSON Schema for editors; agent_allowlist.go: the tools that an agent may call
//   - mozaiks_*.go: the manifests of MozaiksAI
//   - context_variables.go, trigger_reader.go: context variables and their triggers; start_values.go: what variables start
//     with, from the environment, files (variable_files.go) and tools (variable_tools.go)
//   - handoffs.go: handoff rules, which package handoff compiles, and their decider; corrections.go: the models that correct outputs
//   - tool_entry_reader.go: the settings of one tool, all or none of them: tool_address.go (where it is),
//     http_settings.go (URLs, headers, networks), mcp_servers.go, tool_schemas.go, tool_limits.go, tool_guards.go,
//     cache_policy.go, program.go (tools that run programs: plans and orchestrations)
//
// Binding agents, models and tools to each other:
//
//   - workflow.go: what is made of a folder; bind.go: makes the bindings; bind_models.go and bind_schemas.go compile the schemas, bind_checks.go reports what does
//     not belong together; program_check.go checks the tools that programs name
//   - python_signatures.go: what a Python function takes; python_shims.go: the imports that the Python host has stand-ins for
//   - presentation.go: which component displays a tool
//
// Using the result:
//
//   - agent.go: what a worker knows of an agent that writes messages; handoffs.go: the rules of who is next
//   - binding.go: a [Binding]; set.go: [Set.Resolve] and what else a set has; tool_lookup.go: tools by their name;
//     program_tools.go: the tools of a program's steps, its planner and its responder
//   - trigger_rules.go: what a text or an answer changes in the context variables ([Rules], [Updates])
//   - arguments.go: the data of a turn becomes arguments; identity_fields.go keeps a model from setting what belongs to
//     the turn
//   - diagnostic.go, diagnostic_groups.go, suggestions.go: findings, one line for those that are alike, and words that were
//     probably meant
//
// # MozaiksAI compatibility
//
// docs/mozaiksai.md describes each difference. In the code:
//
//   - rules and conditions of handoffs: packages handoff and handoff/expression
//   - manifests of every generation: mozaiks_manifests.go (orchestrator, agents), mozaiks_models.go, mozaiks_tools.go,
//     mozaiks_tools_2025.go, mozaiks_context_variables.go, and sourceType and inlineSource in context_variables.go
//   - hiding by another rule than setting, under compat.split_hiding: [Rules.Text]
//   - booleans written as texts and numbers: truth in manifest_value.go
//   - types of models: model/mozaiks_compiler.go, model/mozaiks_types.go; constraints that MozaiksAI ignores:
//     model/mozaiks_constraints.go; coercion, the lax column: model/coerce.go; closed sets, 1 and true: model/enum.go
//   - **runtime and the names of ids: fillRuntime, enterprise_id: [Binding.TrustedData], both in arguments.go, and RUNTIME
//     in internal/tools/python/host/tool_function.py; **kwargs that stays empty: binding in bind.go
//   - UI tools that are known by their component: presentation.go and checkComponent in bind_checks.go
//   - imports of MozaiksAI's modules: python_shims.go, internal/tools/python/host/shims.py
//   - use_ui_tool, UI events and progress: internal/tools/python/host/questions.py; answers as its frontends send them:
//     events/answer.go, events/event_kinds.go; the older names of events under compat.events: events/unstored_events.go, published by
//     handlers/answer.go
//   - texts and status of responses: failed and success in internal/engine/outcome.go
//   - silence on failures under compat.silent: CompatSilent in handlers/end.go
//   - turn keys that are used again: on_key_reuse in manifest.go, RunOnKeyReuse in handlers/claim.go
package bindings
