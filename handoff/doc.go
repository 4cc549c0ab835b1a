// Package handoff decides which agent speaks next: the handoff rules of a workflow, as MozaiksAI and AG2 have them,
// without I/O.
//
// [Compile] reads the rules of all shapes and generations. A rule that has an error is left out alone: it is a finding,
// and each decision about its agent lists it as ignored. [Rules.Decide] decides what follows a message, in this order:
//
//  1. conditions for a model of the agent that spoke, in the order of the manifest
//  2. its conditions on context variables and on the text, in this order
//  3. its last rule without a condition
//  4. for a message of the user to which no rule applies: the agent that spoke last
//  5. the pre rules of the agent that was chosen, and then the pre rules of the agent that they choose, and so on
//
// The order of 1 to 3 does not depend on the places of the rules in the file. The pre rules of the agent that spoke are
// not tried, since they decide before it speaks.
//
// A decision never guesses. Where a rule that has to be tried cannot be decided, for example because a variable does
// not exist, the decision is undecided: it names the rule, the code of the reason, and as a fallback what the
// other rules give. Where no rule applies, the decision is no_rule.
//
// Decide is a pure function of its [Input]. A condition for a model needs an answer from outside: Decide then returns a
// [Question], and the caller stores the answer under [Question.Call] before it calls Decide again with the same
// input and this answer. So a caller that resumes asks no model twice, and takes no answer to what other rules have asked.
//
// # Files
//
//   - compile.go: from a manifest to entries; rule_reader.go: one entry; condition_reader.go: its condition;
//     agent_names.go: aliases and spellings; unreachable.go: rules that never apply
//   - rules.go: [Rules] and [Rule]; decide.go: [Rules.Decide]; decision.go: [Decision]; decider.go: what a decider is asked
//   - explain.go: [Rules.Explain], the rules as a decision has tried them
package handoff
