// Package agent asks models as tools: a call becomes one request to a chat-completions endpoint
// as OpenAI has made it common, and what the model answers is the result. With a schema for the
// result the model is made to answer JSON; without one the result is its text.
//
// Asking a model changes nothing, so the effect of such a tool is none. What it costs, and which
// words it finds, is another matter: an answer is not the same twice.
//
// agent.go has the tool, result.go what it makes of an answer; messages.go what it asks the model; endpoint.go the request to a chat-completions endpoint,
// response_format.go the forms in which endpoints take a schema, content.go the text of an answer.
package agent
