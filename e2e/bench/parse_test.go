//go:build linux

package main

import (
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/stripe"
)

const deviceText = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0
bridge:     152       2    0    0    0     0          0         2      180       3    0    0    0     0       0          0
`

func TestParseDevices(t *testing.T) {
	devices, err := parseDevices(strings.NewReader(deviceText))
	if err != nil {
		t.Fatal(err)
	}
	if want := (device{received: counted{152, 2}, sent: counted{180, 3}}); len(devices) != 2 || devices["bridge"] != want {
		t.Errorf("devices %v", devices)
	}
	for _, wrong := range []string{"1\n2\nbridge 1", "1\n2\nbridge: 1 2 3", "1\n2\n" + "b: " + strings.Repeat("-1 ", 16), "1\n2\nb: " + strings.Repeat("x ", 16)} {
		if _, err := parseDevices(strings.NewReader(wrong)); err == nil {
			t.Errorf("%q was accepted", wrong)
		}
	}
}

func FuzzParseDevices(f *testing.F) {
	f.Add(deviceText)
	f.Fuzz(func(t *testing.T, text string) {
		devices, err := parseDevices(strings.NewReader(text))
		for name, d := range devices {
			if err == nil && (d.received.bytes < 0 || d.sent.packets < 0) {
				t.Errorf("device %q counts %v", name, d)
			}
		}
	})
}

func TestCountDevices(t *testing.T) {
	devices, err := countDevices()
	if _, there := devices["lo"]; err != nil || !there {
		t.Errorf("no loopback device among %v, %v", devices, err)
	}
}

// Two agents send each other 1000 and 200 bytes, of which 100 are lost on the way and sent again; the gateway sends 30
// to the first and gets 40 from the second; the bench sends 5 to the gateway and gets 6.
func TestTransferBetween(t *testing.T) {
	before := map[string]device{"n1": {sent: counted{7, 7}}, "n2": {}, gatewayName: {}, bridgeDevice: {}, "lo": {}}
	after := map[string]device{
		"n1":         {received: counted{1100, 11}, sent: counted{7 + 200 + 30, 7 + 2 + 3}},
		"n2":         {received: counted{200 + 40, 2 + 4}, sent: counted{1000, 10}},
		gatewayName:  {received: counted{30 + 6, 3 + 1}, sent: counted{40 + 5, 4 + 1}},
		bridgeDevice: {received: counted{6, 1}, sent: counted{5, 1}},
		"lo":         {received: counted{9, 9}, sent: counted{9, 9}},
	}
	got := transferBetween(before, after)
	if want := (transfer{delivered: counted{1200, 12}, sent: counted{1300, 13}, control: counted{70, 7}}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got.delivered.headers() != 12*66 || got.delivered.payload() != 1200-12*66 {
		t.Errorf("headers %d, payload %d", got.delivered.headers(), got.delivered.payload())
	}
}

func TestParseProcessTime(t *testing.T) {
	text := "42 (a )( b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 1 0"
	if used, err := parseProcessTime([]byte(text)); used != 2*time.Second || err != nil {
		t.Errorf("%v, %v", used, err)
	}
	for _, wrong := range []string{"", "42 (a", "42 (a) S 1 2", "42 (a) S 1 2 3 4 5 6 7 8 9 10 x 50", "42 (a) S 1 2 3 4 5 6 7 8 9 10 -1 50"} {
		if used, err := parseProcessTime([]byte(wrong)); err == nil {
			t.Errorf("%q was read as %v", wrong, used)
		}
	}
	own, err := processTime(os.Getpid())
	if direct, directErr := ownTime(); err != nil || directErr != nil || own > direct+time.Second {
		t.Errorf("this process used %v (%v) or %v (%v)", own, err, direct, directErr)
	}
}

func FuzzParseProcessTime(f *testing.F) {
	f.Add([]byte("42 (a) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if used, err := parseProcessTime(text); err == nil && used < 0 {
			t.Errorf("%q was read as %v", text, used)
		}
	})
}

func TestParseSteps(t *testing.T) {
	steps, err := parseSteps(defaultSteps + " ; rep(3) -> rs(4,2);")
	if err != nil || len(steps) != 7 || steps[6] != (step{from: stripe.Replicas(3), to: stripe.RS(4, 2)}) {
		t.Fatalf("%v, %v", steps, err)
	}
	if nodes := steps[0].nodes(); nodes != 6 {
		t.Errorf("%s lies on %d nodes", steps[0], nodes)
	}
	if steps, err := parseSteps(""); err != nil || len(steps) != 0 {
		t.Errorf("%v, %v", steps, err)
	}
	for _, wrong := range []string{"rs(4,1)", "rs(4,1)->", "rs(4,1)->rs(4,1)", "rs(4,1)->rs(5,1);rs(4,1)->rs(5,1)", "x->y"} {
		if _, err := parseSteps(wrong); err == nil {
			t.Errorf("%q was accepted", wrong)
		}
	}
}

func FuzzParseSteps(f *testing.F) {
	f.Add(defaultSteps)
	f.Add(defaultMerges)
	f.Fuzz(func(t *testing.T, text string) {
		steps, err := parseSteps(text)
		if err != nil {
			return
		}
		texts := make([]string, len(steps))
		for i, s := range steps {
			texts[i] = s.String()
		}
		again, err := parseSteps(strings.Join(texts, ";"))
		if err != nil || !slices.Equal(again, steps) {
			t.Errorf("%q gave %v, whose text gave %v, %v", text, steps, again, err)
		}
	})
}

func TestParseOptions(t *testing.T) {
	o, err := parseOptions([]string{"-write"}, io.Discard)
	if err != nil || !o.write || !slices.Equal(o.rates, []int{200, 1000}) || len(o.steps) != 6 || len(o.merges) != 3 ||
		!o.parts[partTransitions] || !o.parts[partDataPath] || o.objects != 64 || o.objectBytes != 4<<20 || o.command != "go run ./e2e/bench -write" {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := parseOptions([]string{"-quick", "-only", "data-path"}, io.Discard); err != nil || o.parts[partTransitions] || o.objects != 8 {
		t.Errorf("%+v, %v", o, err)
	}
	for _, wrong := range [][]string{
		{"-only", "x"}, {"-rates", "0"}, {"-rates", "200"}, {"-rates", "1,x"}, {"-rounds", "0,1"}, {"-steps", "x"}, {"-merges", "x"},
		{"-stores", "file"}, {"-stores", "x"}, {"-objects", "0"}, {"-passes", "0"}, {"-concurrency", "0"}, {"-object-bytes", "5"}, {"x"}, {"-x"},
	} {
		if _, err := parseOptions(wrong, io.Discard); err == nil {
			t.Errorf("%v was accepted", wrong)
		}
	}
}

const topText = `File: restripe
Active filters:
   tagfocus=role=agent
Showing nodes accounting for 100ms, 50% of 200ms total
      flat  flat%   sum%        cum   cum%
      60ms 30.00% 30.00%       60ms 30.00%  runtime.memmove
      30ms 15.00% 45.00%       30ms 15.00%  example.com/a/kernel.(*Thing[go.shape.struct { example.com/b.X }]).run
      10ms  5.00% 50.00%       10ms  5.00%  example.com/a/kernel.leap (inline)
         0     0% 50.00%        9ms  4.50%  main.main
`

func TestParseTop(t *testing.T) {
	packages, err := parseTop(strings.NewReader(topText))
	want := []packageTime{{"runtime", 0.06}, {"example.com/a/kernel", 0.04}, {"main", 0}}
	if err != nil || !slices.Equal(packages, want) {
		t.Errorf("%v, %v; want %v", packages, err, want)
	}
	for _, wrong := range []string{"", "File: x\n", "flat flat% sum% cum cum%\n1ms 2\n", "flat flat% sum% cum cum%\nx 1% 1% 1ms 1% f\n"} {
		if packages, err := parseTop(strings.NewReader(wrong)); err == nil {
			t.Errorf("%q was read as %v", wrong, packages)
		}
	}
}

func FuzzParseTop(f *testing.F) {
	f.Add(topText)
	f.Fuzz(func(t *testing.T, text string) {
		packages, err := parseTop(strings.NewReader(text))
		for _, p := range packages {
			if err == nil && strings.ContainsAny(p.name, " \n") {
				t.Errorf("package %q", p.name)
			}
		}
	})
}
