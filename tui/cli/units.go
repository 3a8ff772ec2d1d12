package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
)

// parseRate reads a limit such as 50MiB/s, 50MB/s or 50MiB; "unlimited" and 0 lift it.
func parseRate(text string) (int64, error) {
	if text == "" || text == "unlimited" {
		return 0, nil
	}
	n, err := humanize.ParseBytes(strings.TrimSuffix(text, "/s"))
	if err != nil || n > math.MaxInt64 {
		return 0, fmt.Errorf("rate %q: want a number of bytes per second such as 50MiB/s, or unlimited", text)
	}
	return int64(n), nil
}

// parseSpan reads a range of bytes: "a-b" (both included), "a-" to the end, or "a+n" n bytes from a on.
func parseSpan(text string) (offset, length int64, err error) {
	wrong := fmt.Errorf("range %q: want first-last (both included), first- or first+count, in bytes", text)
	if first, count, found := strings.Cut(text, "+"); found {
		offset, err = strconv.ParseInt(first, 10, 64)
		if err == nil {
			length, err = strconv.ParseInt(count, 10, 64)
		}
		if err != nil || offset < 0 || length <= 0 || offset > math.MaxInt64-length {
			return 0, 0, wrong
		}
		return offset, length, nil
	}
	first, last, found := strings.Cut(text, "-")
	if offset, err = strconv.ParseInt(first, 10, 64); err != nil || !found {
		return 0, 0, wrong
	}
	if last == "" {
		return offset, 0, nil
	}
	end, err := strconv.ParseInt(last, 10, 64)
	if err != nil || end < offset || end == math.MaxInt64 {
		return 0, 0, wrong
	}
	return offset, end - offset + 1, nil
}
