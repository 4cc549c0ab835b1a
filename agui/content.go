package agui

import (
	stdjson "encoding/json"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Content is the content of a message or the result of a call: a text, or a list of parts.
type Content struct {
	Text  string        // if Parts is nil
	Parts []ContentPart // nil: the content is Text
}

// Text returns content that is a text.
func Text(s string) Content { return Content{Text: s} }

// Types of parts.
const (
	PartText     = "text"
	PartImage    = "image"
	PartAudio    = "audio"
	PartVideo    = "video"
	PartDocument = "document"
	PartBinary   = "binary" // of clients before 1.0: MimeType, and Data, URL or ID
)

// ContentPart is a part of a content. Parts of unknown types keep the fields that are known.
type ContentPart struct {
	Type     string             `json:"type"`
	ID       string             `json:"id,omitzero"`
	Text     *string            `json:"text,omitzero"`   // of text
	Source   *Source            `json:"source,omitzero"` // of image, audio, video and document
	Metadata stdjson.RawMessage `json:"metadata,omitzero"`

	MimeType string `json:"mimeType,omitzero"` // of binary, as the fields below
	URL      string `json:"url,omitzero"`
	Data     string `json:"data,omitzero"`
	Filename string `json:"filename,omitzero"`
}

// Types of sources.
const (
	SourceData = "data" // Value is base64
	SourceURL  = "url"  // Value is a URL
	SourceFile = "file" // Value is a handle that Provider issued; not for clients before 1.0
)

// Source is where the bytes of a part are.
type Source struct {
	Type     string `json:"type"`
	Value    string `json:"value"`
	MimeType string `json:"mimeType,omitzero"`
	Provider string `json:"provider,omitzero"`
}

// TextPart returns a part that is a text.
func TextPart(s string) ContentPart { return ContentPart{Type: PartText, Text: &s} }

// String returns the text, or the texts of the parts, one a line.
func (c Content) String() string {
	if c.Parts == nil {
		return c.Text
	}
	var texts []string
	for _, p := range c.Parts {
		if p.Text != nil {
			texts = append(texts, *p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// MarshalJSON writes a string or a list.
func (c Content) MarshalJSON() ([]byte, error) {
	var v any = c.Text
	if c.Parts != nil {
		v = c.Parts
	}
	b, err := json.Marshal(v, encodeOptions)
	if err != nil {
		return nil, fmt.Errorf("encode the content: %w", err)
	}
	return b, nil
}

// UnmarshalJSON reads a string or a list of parts; null is the empty text.
func (c *Content) UnmarshalJSON(b []byte) error {
	*c = Content{}
	var err error
	switch jsontext.Value(b).Kind() {
	case jsontext.KindBeginArray:
		err = json.Unmarshal(b, &c.Parts, decodeLists)
	case jsontext.KindString, jsontext.KindNull:
		err = json.Unmarshal(b, &c.Text)
	default:
		err = &memberError{code: CodeInvalidField, msg: "has to be a string or a list of parts"}
	}
	if err != nil {
		return fmt.Errorf("read the content: %w", err)
	}
	return nil
}
