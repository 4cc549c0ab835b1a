// Command turnctl is for operators of oneturn: it checks workflow folders, shows turns, and provisions and
// diagnoses a server.
//
//	turnctl check DIR          errors in workflow manifests, and their bindings
//	turnctl tools              callable tools: ls, pin
//	turnctl call TOOL JSON     try one tool
//	turnctl plan check FILE    what a worker would do with a plan or an orchestration
//	turnctl extract            the JSON object in a text of an agent
//	turnctl handoff            handoffs: explain one, eval a condition
//	turnctl show CHAT TURN     all records of a turn or message, the steps of a program; or what a chat has
//	turnctl retry CHAT TURN    run a program that failed again, without its finished calls
//	turnctl ls                 the newest turns, or messages
//	turnctl questions          open questions to people: ls, show, expire, cancel
//	turnctl dead               messages that no worker could handle: ls, show, redrive, drop
//	turnctl repair             end turns whose message is deleted
//	turnctl provision          create streams, buckets and consumers
//	turnctl doctor             diagnose the server and its set-up
//	turnctl nats-config        accounts and rights for a NATS server
//	turnctl secret-key         a new key for the file of --secret-keys
//	turnctl version            what this binary was built from
//
// Exit codes: 0 success, 1 errors were found or the work failed, 2 the command line or the settings are
// invalid. Errors go to standard error, once; results to standard output, as
// text or, with -o json, as one JSON document.
//
// # Files
//
// Each command is a method of app that returns a cobra command, next to the type of its output. A type of output has
// the JSON of the command in its tags and the text for people in a method text. NAME.go has the command NAME, or the
// command group NAME; NAME_*.go the subcommands and what they need.
//
//   - Start: main.go (app, the command tree, exit codes), connect.go (the connection to a server, its journal).
//   - Output: output.go (JSON or text, ids and texts from outside, times, sizes), table.go (tables that fit the width).
//   - Folders of workflows: check.go with check_report.go (the checks), check_text.go, check_program.go (tools that run programs), check_variables.go (context variables), check_handoffs.go (handoff rules), check_corrections.go (corrections of outputs), check_env.go (variables of tools and
//     .env files), check_module_names.go (files named like Python modules) and check_explain.go (--explain). tools.go
//     (tools ls) with tools_row.go (one tool as it is listed), tools_location.go (where its code is), tools_schema.go
//     (schemas on one line), tools_live.go (--live: the descriptions of services and servers), tools_pin.go.
//   - One tool: call.go, call_find_tool.go (which tool a name selects), call_host.go (questions on the terminal).
//     plan.go (plan check). extract.go with extract_lines.go, handoff.go with handoff_eval.go (handoff eval) and
//     handoff_explain.go (handoff explain), with handoff_explain_values.go (which values conditions have seen) and
//     handoff_explain_text.go. json_file.go (JSON that these read), json_lines.go
//     (--jsonl of both).
//   - Turns and messages: ls.go, ls_read.go, ls_messages.go (--messages), growing_window.go (reads the newest records of a stream, also for questions and dead letters).
//     show.go with turn_report.go (a turn as read from the journal), show_find.go (a turn by the id of a step or question),
//     message_report.go (a message as read from the journal) with message_records.go and message_turns.go, message_text.go, show_chat.go (a chat),
//     show_text.go, show_steps.go (the steps of a program), show_step.go (one of them) and show_not_found.go. repair.go.
//     retry.go with retry_find.go (the turn to retry), retry_check.go (--workflows), retry_publish.go and retry_report.go
//     (what it prints).
//   - Questions: questions.go with question_report.go (a question as read from the journal), questions_find.go (by its id),
//     questions_ls.go, questions_show.go, questions_end.go (expire and cancel).
//   - Dead letters: dead.go (reads them), dead_ls.go, dead_show.go, dead_redrive.go (redrive and drop).
//   - Servers: provision.go. doctor.go with doctor_checks.go (server, streams, queues, clock),
//     doctor_mirror.go, doctor_unconsumed_messages.go and doctor_workers.go. nats_config.go. secret_key.go.
package main
