// Command turnctl is for operators of oneturn: it checks workflow folders, shows turns, and provisions and
// diagnoses a server.
//
//	turnctl check DIR          errors in workflow manifests, and their bindings
//	turnctl tools              callable tools: ls, pin
//	turnctl call TOOL JSON     try one tool
//	turnctl show CHAT TURN     all records of one turn
//	turnctl ls                 the newest turns
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
package main
