package s3

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
)

// conditions are those of a read, or of what a copy reads.
type conditions struct {
	match, noneMatch, modified, unmodified string
	isCopy                                 bool // in which what is as it was is refused as well
}

func readConditions(header http.Header, prefix string) conditions {
	return conditions{
		match: header.Get(prefix + "If-Match"), noneMatch: header.Get(prefix + "If-None-Match"),
		modified: header.Get(prefix + "If-Modified-Since"), unmodified: header.Get(prefix + "If-Unmodified-Since"), isCopy: prefix != "",
	}
}

// check refuses an object for which the conditions do not hold, in the order of RFC 9110, section 13.2.2.
func (c *conditions) check(object *api.Object) error {
	tag, modified := etagOf(object), object.Modified.Truncate(time.Second)
	switch since, err := http.ParseTime(c.unmodified); {
	case c.match != "":
		if !matches(c.match, tag) {
			return refuse(preconditionFailed, "If-Match is %.200s, and the object has the tag %q", c.match, tag)
		}
	case err == nil && modified.After(since):
		return refuse(preconditionFailed, "the object was modified at %s", modified.Format(http.TimeFormat))
	}
	as := notModified
	if c.isCopy {
		as = preconditionFailed
	}
	switch since, err := http.ParseTime(c.modified); {
	case c.noneMatch != "":
		if matches(c.noneMatch, tag) {
			return refuse(as, "If-None-Match is %.200s, and the object has the tag %q", c.noneMatch, tag)
		}
	case err == nil && !modified.After(since):
		return refuse(as, "the object was modified at %s", modified.Format(http.TimeFormat))
	}
	return nil
}

// deletion are the conditions of a delete; each may be empty.
type deletion struct{ tag, modified, size string }

// check refuses an object for which a condition does not hold.
func (c *deletion) check(object *api.Object) error {
	if c.tag != "" && !matches(c.tag, etagOf(object)) {
		return refuse(preconditionFailed, "If-Match is %.200s, and the object has the tag %q", c.tag, etagOf(object))
	}
	if c.size != "" {
		size, err := strconv.ParseInt(c.size, 10, 64)
		if err != nil || size < 0 {
			return refuse(invalidArgument, "the size that the object is to have is %.40q; want a number of bytes", c.size)
		}
		if size != object.Size {
			return refuse(preconditionFailed, "the object is to have %d bytes, and has %d", size, object.Size)
		}
	}
	return checkTime(c.modified, "modified", object.Modified)
}

// checkTime refuses a time that is not the one that a client asks for, to the second; an empty text asks for none.
func checkTime(text, what string, at time.Time) error {
	if text == "" {
		return nil
	}
	asked, err := http.ParseTime(text)
	if err != nil {
		asked, err = time.Parse(time.RFC3339Nano, text)
	}
	if err != nil {
		return refuse(invalidArgument, "the time when it was %s is to be %.40q; want one as in %s, or as in %s", what, text,
			http.TimeFormat, time.RFC3339)
	}
	if asked.Unix() != at.Unix() {
		return refuse(preconditionFailed, "it is to be %s at %s, and was at %s", what, asked.UTC().Format(http.TimeFormat),
			at.UTC().Format(http.TimeFormat))
	}
	return nil
}

// matches reports whether a tag is among those of a list.
func matches(list, tag string) bool {
	for one := range strings.SplitSeq(list, ",") {
		one = strings.TrimSpace(one)
		if one == "*" || bare(one) == tag {
			return true
		}
	}
	return false
}

// bare is a tag without quotes.
func bare(tag string) string {
	return strings.Trim(strings.TrimPrefix(strings.TrimSpace(tag), "W/"), `"`)
}

// over reads the conditions of a change: the revision that the object has to have, nil for any. The commit holds it to that.
func (q *request) over() (*block.Stamp, error) {
	noneMatch, match := q.Header.Get("If-None-Match"), q.Header.Get("If-Match")
	if noneMatch == "" && match == "" {
		return nil, nil
	}
	if noneMatch != "" && (noneMatch != "*" || match != "") {
		return nil, refuse(notImplemented,
			"a change can be made where there is no object (If-None-Match: *), or over the one of a tag (If-Match)")
	}
	there, err := q.server.options.Objects.Find(q.Context(), q.object())
	switch {
	case err != nil:
		return nil, err
	case noneMatch != "" && there != nil:
		return nil, refuse(preconditionFailed, "If-None-Match is *, and there is an object")
	case noneMatch != "":
		return &block.Stamp{}, nil
	case there == nil:
		return nil, noKey(q.key)
	case !matches(match, etagOf(there)):
		return nil, refuse(preconditionFailed, "If-Match is %.200s, and the object has the tag %q", match, etagOf(there))
	}
	return &there.Revision, nil
}
