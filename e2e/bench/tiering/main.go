package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/e2e/bench/provenance"
	"github.com/restripe/restripe/operator/replay"
)

// tracesVariable names the folder of the real traces.
const tracesVariable = "RESTRIPE_TRACES"

const (
	ownTraces = "e2e/bench/tiering/testdata"
	document  = "docs/benchmarks/tiering.md"
)

func main() {
	write := flag.Bool("write", false, "write "+document)
	s := defaultSetting()
	flag.Float64Var(&s.days, "days", s.days, "days over which each trace is stretched")
	flag.DurationVar(&s.halfLife, "half-life", s.halfLife, "after which an access counts half")
	flag.DurationVar(&s.dwell, "dwell", s.dwell, "under one scheme at least")
	flag.Parse()
	if err := run(s, *write); err != nil {
		fmt.Fprintln(os.Stderr, "tiering:", err)
		os.Exit(1)
	}
}

// sources are the traces by file name.
var sources = []struct {
	file, name string
	parse      replay.Parse
}{
	{"adaptsize-request.trace", "web objects", replay.ParseObjects},
	{"cloudphysics-io.csv", "virtual disk", replay.ParseDisk},
}

// readTraces reads the traces of a folder, stretched over days.
func readTraces(folder string, days float64) ([]*replay.Trace, error) {
	var traces []*replay.Trace
	for _, source := range sources {
		text, err := openTrace(filepath.Join(folder, source.file))
		if err != nil {
			return nil, err
		}
		t, err := replay.Read(source.name, strings.NewReader(text), source.parse, time.Duration(days*24*float64(time.Hour)))
		if err != nil {
			return nil, err
		}
		traces = append(traces, t)
	}
	return traces, nil
}

// openTrace reads a file, plain or compressed by xz.
func openTrace(path string) (string, error) {
	text, err := os.ReadFile(path)
	if !errors.Is(err, os.ErrNotExist) {
		return string(text), err
	}
	if _, err := os.Stat(path + ".xz"); err != nil {
		return "", fmt.Errorf("neither %s nor %s.xz is there: %w", path, path, err)
	}
	text, err = exec.Command("xz", "-dc", path+".xz").Output()
	if err != nil {
		return "", fmt.Errorf("unpacking %s.xz with xz: %w", path, err)
	}
	return string(text), nil
}

func defaultSetting() setting {
	return setting{days: 14, hot: 4, warm: 0.25, halfLife: api.DefaultHalfLife, dwell: api.DefaultDwell, networkDays: 13}
}

func run(s setting, write bool) error {
	folder := os.Getenv(tracesVariable)
	if folder == "" {
		fmt.Fprintf(os.Stderr, "%s names no folder of real traces: replaying the small synthetic ones of %s\n", tracesVariable, ownTraces)
		folder = ownTraces
	}
	traces, err := readTraces(folder, s.days)
	if err != nil {
		return err
	}
	var text strings.Builder
	above, err := head(s)
	if err != nil {
		return err
	}
	fmt.Fprintf(&text, "# Tiering on traces\n\n%s\n", above)
	if err := compare(&text, traces, s); err != nil {
		return err
	}
	if !write {
		_, err := io.WriteString(os.Stdout, text.String())
		return err
	}
	if folder == ownTraces {
		return fmt.Errorf("not writing %s from synthetic traces; set %s to the folder of the real ones", document, tracesVariable)
	}
	if err := os.WriteFile(document, []byte(text.String()), 0o644); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// head is what stands above the tables.
func head(s setting) (string, error) {
	source, err := provenance.Read("go run ./e2e/bench/tiering -write")
	if err != nil {
		return "", err
	}
	return "What a temperature policy stores and moves, by the decisions of the operator under a clock stretched over days, next to one code " +
		"for everything and to an oracle that knows the future.\n\n" +
		source.List("what is counted is the same on every machine",
			fmt.Sprintf("policy: %s from %g accesses a day, %s from %g, %s below; half-life %.0fh and a third and three times of it, dwell %.0fh, hysteresis 25 %%, heat reported every hour, new objects on %s",
				ladder[0], s.hot, ladder[1], s.warm, ladder[2], s.halfLife.Hours(), s.dwell.Hours(), ladder[0]),
			fmt.Sprintf("oracle: for each group the way that costs least: bytes stored, %g days of storing a byte for each byte sent, and for an access on %s and %s what makes the policy's bounds break even; no dwell time; the cost of the last column is that",
				s.networkDays, ladder[1], ladder[2]),
			"auto: the choice by shadows (agent/heat/shadow), followed as gateways and operators do",
			fmt.Sprintf("each trace is stretched over %g days; every object, or 4 MiB extent of the disk, is a group", s.days),
		), nil
}
