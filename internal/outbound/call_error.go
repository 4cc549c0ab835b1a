package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/url"
	"syscall"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// Errors of requests with texts that are safe to display: CallError distinguishes what certainly was not sent, which
// may be retried, from what may have arrived; reason and certificateProblem name the cause without any text of the
// server.

// Unknown ends a message when the effect of a request is not known.
const Unknown = "its effect may or may not have happened"

// CallError makes an *[events.Error] of what sending a request, or reading its answer, failed with.
// It is retryable only if the server has certainly not got the request. No text of it comes from
// the server, and its message does not hold the URL: a [target.HostError] in its chain has the host. Op is the operation.
func CallError(ctx context.Context, op string, err error) error {
	fail := func(code events.Code, msg string, cause error) error {
		return &events.Error{Code: code, Op: op, Msg: msg, Err: cause}
	}
	var (
		wrapped *url.Error
		own     *events.Error
		address *AddressError
		unsent  unsentError
	)
	var host error
	if errors.As(err, &wrapped) { // it holds the URL
		if at, errURL := url.Parse(wrapped.URL); errURL == nil && at.Host != "" {
			host = &target.HostError{Host: at.Host}
		}
		err = wrapped.Err
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && tools.TimedOut(ctx):
		return fail(events.CodeTimeout, "the endpoint did not answer in time: "+Unknown, context.Cause(ctx))
	case ctx.Err() != nil:
		return tools.Unknown(fail(events.CodeToolError, "the call was stopped before the endpoint answered: "+Unknown, context.Cause(ctx)))
	case errors.As(err, &own):
		return err
	case errors.As(err, &address):
		return fail(events.CodeToolError, "the endpoint's name leads to a "+address.Kind+" address, which is refused: "+
			"if it is meant, add it to allow_private in the manifest", address)
	case errors.Is(err, errRedirect):
		return fail(events.CodeToolError, "the endpoint redirects: "+err.Error(), nil)
	case errors.Is(err, errURL):
		return fail(events.CodeToolError, err.Error(), nil)
	case errors.Is(err, errTooLarge):
		return fail(events.CodeTooLarge, err.Error(), nil)
	case errors.Is(err, errEncoding):
		return tools.Unknown(fail(events.CodeToolError, err.Error(), nil))
	case errors.As(err, &unsent):
		return tools.Retryable(fail(events.CodeToolError, "the endpoint cannot be reached: "+reason(err), host))
	}
	return tools.Unknown(fail(events.CodeToolError, "the connection broke after the request was sent ("+reason(err)+"): "+Unknown, host))
}

// Unrecognized reports whether err is none of connections, requests and answers of HTTP, so that
// [CallError] has no text for it.
func Unrecognized(err error) bool {
	var (
		sent *url.Error
		own  *events.Error
	)
	known := errors.As(err, &sent) || errors.As(err, &own) || errors.Is(err, errTooLarge) || errors.Is(err, errEncoding)
	return err != nil && !known && reason(err) == noHTTP
}

// Ended is the error of a context that has ended before anything was sent. It is nil if it has not ended.
func Ended(ctx context.Context, op string) error {
	switch {
	case ctx.Err() == nil:
		return nil
	case tools.TimedOut(ctx):
		return &events.Error{Code: events.CodeTimeout, Op: op, Msg: "the time of the call was over before anything was sent", Err: context.Cause(ctx)}
	}
	return &events.Error{Code: events.CodeToolError, Op: op, Msg: "the call was stopped before anything was sent", Err: context.Cause(ctx)}
}

// reason is why a connection failed, in a text that contains nothing of the server.
func reason(err error) string {
	var (
		name        *net.DNSError
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		alert       tls.AlertError
		number      syscall.Errno
		timeout     net.Error
	)
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		return "DNS does not know its name"
	case errors.As(err, &name):
		return "its name cannot be resolved"
	case errors.As(err, &certificate):
		return "its certificate is not accepted: " + certificateProblem(certificate.Err)
	case errors.As(err, &record), err.Error() == "http: server gave HTTP response to HTTPS client":
		return "it does not speak TLS"
	case errors.As(err, &alert):
		return alert.Error()
	case errors.As(err, &number):
		return number.Error()
	case errors.As(err, &timeout) && timeout.Timeout():
		return "it took too long to answer"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), err.Error() == "http: server closed idle connection":
		return "it closed the connection"
	}
	return noHTTP
}

const noHTTP = "it does not keep to HTTP"

func certificateProblem(err error) string {
	var (
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
	)
	switch {
	case errors.As(err, &authority):
		return "certificate signed by unknown authority"
	case errors.As(err, &host):
		return "it is for another host"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "it has expired, or is not valid yet"
	}
	return "it is not valid for a server"
}
