package api

// BlobRequest asks for a payload over the inline limit, by the name that stands in its place in an event
// of the subject's tenant. The body of the reply is a piece of the payload.
type BlobRequest struct {
	Blob string `json:"blob"`           // the name: $blob of the event
	From uint64 `json:"from,omitempty"` // HeaderBlobNext of the reply before, 0 = the beginning
}

// Headers of a reply to [VerbBlob].
const (
	HeaderBlobSize = "Oneturn-Size" // of the whole payload, in bytes
	HeaderBlobNext = "Oneturn-Next" // From of the next piece; missing when there is none
)
