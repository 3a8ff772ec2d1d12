package block

import (
	"fmt"
	"strconv"
	"strings"
)

// Incarnation identifies the contents of a node's store: a marker kept in the store itself. It has a number, which only
// grows, so that a marker that goes back with the store it lies in is known by it; a random part; and the run of the server
// since which nothing can have been lost unseen, empty where no restart loses anything. One that an earlier release made
// is random as a whole: its number is 1.
type Incarnation string

// NewIncarnation names contents that nobody has seen before. random must be drawn for them.
func NewIncarnation(number uint64, random, run string) Incarnation {
	return Incarnation(fmt.Sprintf("%d.%s.%s", number, random, run))
}

// Number is 0 for contents that have no name yet.
func (i Incarnation) Number() uint64 {
	if i == "" {
		return 0
	}
	number, _, _ := i.parts()
	return number
}

// Run is the run of the server that the contents were last seen whole in.
func (i Incarnation) Run() string {
	_, _, run := i.parts()
	return run
}

func (i Incarnation) parts() (number uint64, random, run string) {
	parts := strings.SplitN(string(i), ".", 3)
	if len(parts) < 3 {
		return 1, string(i), ""
	}
	number, err := strconv.ParseUint(parts[0], 10, 64)
	if err != nil {
		return 1, string(i), ""
	}
	return number, parts[1], parts[2]
}

// Outdates reports whether contents of this name are not those of the other name any more, nor newer: whoever knows i and
// finds other has found contents that went back.
func (i Incarnation) Outdates(other Incarnation) bool {
	return i != other && i.Number() >= other.Number()
}

// Watermark is how far the contents of a store had come, by their high-water mark; the zero value says nothing.
type Watermark struct {
	Contents Incarnation `cbor:"1,keyasint"`
	Mark     int64       `cbor:"2,keyasint"`
}

// Max returns the one that is of newer contents, or the higher one of the same.
func (w Watermark) Max(other Watermark) Watermark {
	isLater := other.Contents.Number() >= w.Contents.Number()
	if other.Contents == w.Contents {
		isLater = other.Mark > w.Mark
	}
	if isLater {
		return other
	}
	return w
}
