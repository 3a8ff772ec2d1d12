package gauge

import (
	"os"
	"strings"
	"testing"
)

func TestMetricsAreSummedUp(t *testing.T) {
	text := "# HELP x y\nx{mode=\"a\"} 1.5\nx{mode=\"b b\"} 2\ny 1e+06\n"
	if m, err := parseMetrics(strings.NewReader(text)); err != nil || m["x"] != 3.5 || m[`x{mode="b b"}`] != 2 || m["y"] != 1e6 {
		t.Errorf("%v, %v", m, err)
	}
	if _, err := parseMetrics(strings.NewReader("x one\n")); err == nil {
		t.Error("a word was read as a number")
	}
}

func TestMemoryIsRead(t *testing.T) {
	status := "VmPeak:\t 9 kB\nVmHWM:\t 2048 kB\nVmRSS:\t 12 kB\n"
	for name, want := range map[string]int64{"VmHWM:": 2 << 20, "VmRSS:": 12 << 10} {
		if bytes, err := parseMemory(status, name); err != nil || bytes != want {
			t.Errorf("%s %d, %v", name, bytes, err)
		}
	}
	for _, wrong := range []string{"", "VmPeak:\t 9 kB\n", "VmHWM:", "VmHWM: 5 MB", "VmHWM: -5 kB", "VmHWM: x kB"} {
		if bytes, err := parseMemory(wrong, "VmHWM:"); err == nil {
			t.Errorf("%q was read as %d", wrong, bytes)
		}
	}
	own := os.Getpid()
	now, err := Resident(own)
	if err != nil || now < 1<<20 {
		t.Errorf("this process has %d bytes, %v", now, err)
	}
	if most, err := Peak(own); err != nil || most < now/2 {
		t.Errorf("this process had %d bytes at most, %v", most, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("a{x=\"1\"} 2\n")
	f.Add("VmRSS:\t 12 kB\n")
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = parseMetrics(strings.NewReader(text))
		if bytes, err := parseMemory(text, "VmRSS:"); err == nil && bytes < 0 {
			t.Errorf("%q was read as %d", text, bytes)
		}
	})
}
