package traceparent_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/traceparent"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestContextHasTheTraceOfTheHeader(t *testing.T) {
	t.Parallel()
	require.Equal(t, parent, traceparent.From(traceparent.With(t.Context(), parent)))
	require.Empty(t, traceparent.From(t.Context()))
	span, ok := traceparent.Parse(parent)
	require.True(t, ok)
	require.True(t, span.IsSampled())
	require.True(t, span.IsRemote())
}

func TestHeaderThatIsNotATraceIsIgnored(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "x", "00-00000000000000000000000000000000-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
		"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c.b7ad6b7169203331-01",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x", "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01x", "0A-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0A", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g",
		"x0-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333\n-01",
	} {
		require.Empty(t, traceparent.From(traceparent.With(t.Context(), text)), text)
	}
}

func TestFlagsAreBitsAndLaterVersionsMayHaveMore(t *testing.T) {
	t.Parallel()
	const ids = "-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-"
	for text, sampled := range map[string]bool{
		"00" + ids + "00": false, "00" + ids + "01": true, "00" + ids + "02": false, "00" + ids + "03": true, "00" + ids + "05": true,
		"00" + ids + "ff": true, "00" + ids + "fe": false, "00" + ids + "10": false, "00" + ids + "0b": true,
		"01" + ids + "01": true, "cc" + ids + "01-what-comes-later": true, "fe" + ids + "00-": false,
	} {
		span, ok := traceparent.Parse(text)
		require.True(t, ok, text)
		require.Equal(t, sampled, span.IsSampled(), text)
	}
}

func FuzzParsedHeaderIsFormattedTheSame(f *testing.F) {
	for _, text := range []string{parent, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		span, ok := traceparent.Parse(text)
		require.Equal(t, ok, span.IsValid())
		if !ok {
			return
		}
		again, ok := traceparent.Parse(traceparent.Format(span))
		require.True(t, ok)
		require.Equal(t, span, again)
		require.Equal(t, text[2:52], traceparent.Format(span)[2:52], "except for version and flags")
	})
}
