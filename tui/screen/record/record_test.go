package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// TestCast: a recording is the head and what was written, with every character whole.
func TestCast(t *testing.T) {
	var out bytes.Buffer
	c, err := newCast(&out, 80, 24, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	written := "ok ✓ 𝛂 \x1b[31m<end>"
	for _, one := range []byte(written) { // a byte at a time
		if _, err := c.Write([]byte{one}); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var head castHead
	if err := json.Unmarshal([]byte(lines[0]), &head); err != nil || head.Version != 2 || head.Width != 80 || head.Height != 24 {
		t.Fatal(head, err)
	}
	read, before := "", -1.0
	for _, line := range lines[1:] {
		var event []any
		if err := json.Unmarshal([]byte(line), &event); err != nil || event[1] != "o" || event[0].(float64) < before {
			t.Fatal(line, err)
		}
		read, before = read+event[2].(string), event[0].(float64)
	}
	if read != written {
		t.Errorf("%q, was %q", read, written)
	}
}

// TestPicture: a picture is XML, has every text, and the colours of the terminal.
func TestPicture(t *testing.T) {
	svg := picture("a \x1b[94mblue\x1b[m <&> ✓\nb \x1b[7mreversed\x1b[m", 20, 2)
	text := ""
	for decoder := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err, svg)
		}
		if data, is := token.(xml.CharData); is {
			text += string(data)
		}
	}
	for _, want := range []string{"blue", "<&> ✓", "reversed"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
	if !strings.Contains(svg, palette[12]) || !strings.Contains(svg, `fill="`+foreground+`"/>`) {
		t.Errorf("colours: %s", svg)
	}
}
