package wire

import (
	"bytes"
	"testing"
)

// A header that a mark is added to is read as before, by who knows of marks and who does not.
func TestMarksOfTracesEndHeaders(t *testing.T) {
	mark := bytes.Repeat([]byte{7}, 24)
	many := map[int]int{}
	for i := range 40 {
		many[i] = i
	}
	for name, c := range map[string]struct {
		request any
		marked  bool
	}{
		"no header":      {nil, true},
		"few fields":     {ListRequest{Limit: 5}, true},
		"very many":      {many, false}, // how many there are takes a byte of its own
		"none to be set": {struct{}{}, true},
	} {
		header, err := encode(c.request)
		if err != nil {
			t.Fatal(err)
		}
		if found := markOf(header); found != nil {
			t.Errorf("%s: %x has the mark %x", name, header, found)
		}
		sent := withMark(header, mark)
		if found := markOf(sent); c.marked != bytes.Equal(found, mark) {
			t.Errorf("%s: a mark was added to %x, and %x is found", name, header, found)
		}
		if !bytes.Equal(withMark(header, nil), header) {
			t.Errorf("%s: without a mark the header is another one", name)
		}
		var read map[any]any
		if err := Decode(sent, &read); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	header, err := encode(ListRequest{Limit: 5})
	if err != nil {
		t.Fatal(err)
	}
	var read ListRequest
	if err := Decode(withMark(header, mark), &read); err != nil || read.Limit != 5 {
		t.Errorf("read is %+v, %v", read, err)
	}
}
