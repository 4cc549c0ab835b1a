// Package expression evaluates the conditions of handoff rules: the language of AG2's ContextExpression.
//
// A condition compares context variables and literals:
//
//	${plan} != None and (len(${items}) > 0 or not ${done})
//
//	${name}                   the variable of that name; it has to exist
//	"text" 'text'             with Python's escapes
//	12 -1.5 1e3 0x1F 1_000    exact numbers
//	True False None           booleans are the numbers 1 and 0
//	== != < <= > >=           chains are allowed: 0 < ${n} < 10
//	and or not                also " & " and " | " with spaces, and ! before ${ and (
//	len(${name})              items of a list, keys of an object, characters of a text, else 0
//
// Texts are ordered by code point. A list or an object is its truth: True unless it is empty. The result is the truth
// of the value: 0, False, None and "" are false. Nothing else is allowed: no arithmetic, no in, no attributes, no other
// functions. A value is data and never parsed, so no value can change what a condition means.
//
// [Parse] refuses an invalid condition when a rule is loaded, [Expression.Eval] fails for an unknown variable and for
// types that have no order. Both return an [*Error] with code, position and fix. A condition has at most 4 KiB and is
// at most 100 levels deep; both functions take time in proportion to the condition and the values.
//
// # Files
//
//   - lexer.go: tokens, with number_literal.go and text_literal.go; parser.go: tokens become nodes; refused.go: the errors
//     for what the language does not have
//   - evaluate.go: the nodes; operand.go: values and their comparison; decimal.go: exact numbers
//   - error.go: [Error] and its codes
package expression
