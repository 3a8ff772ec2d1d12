package daemon

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/trace"
	"github.com/restripe/restripe/tui/cli/program"
)

// The environment that says what is traced where the command line does not, as of every program that has OpenTelemetry.
const (
	collectorVariable = "OTEL_EXPORTER_OTLP_ENDPOINT"
	shareVariable     = "OTEL_TRACES_SAMPLER_ARG"
)

// traceFlags are the flags that say what is traced.
type traceFlags struct {
	collector string
	share     float64
}

// newTraceFlags adds --traces and --traces-share.
func newTraceFlags(command *cobra.Command) *traceFlags {
	t := new(traceFlags)
	command.Flags().StringVar(&t.collector, "traces", "", "URL of an OpenTelemetry collector that takes OTLP over HTTP, such as "+
		"http://127.0.0.1:4318, which gets to know where the time of requests goes (default: "+
		collectorVariable+"; without either nothing is traced)")
	command.Flags().Float64Var(&t.share, "traces-share", 0.01, "share of requests that are traced, 0 to 1, beside those that come "+
		"with a trace (default: "+shareVariable+", or 0.01)")
	return t
}

// check completes the flags from the environment and looks at them.
func (t *traceFlags) check(report *program.Report) {
	if t.collector == "" {
		t.collector = os.Getenv(collectorVariable)
	}
	if t.collector == "" {
		return
	}
	if text := os.Getenv(shareVariable); text != "" && !report.Command().Flags().Changed("traces-share") {
		var err error
		if t.share, err = strconv.ParseFloat(text, 64); err != nil {
			report.Add("traces-share", fmt.Errorf("%s is %q: want a share, 0 to 1", shareVariable, text))
		}
	}
	report.Add("traces", prefixed("traces", trace.CheckCollector(t.collector)))
	report.Add("traces-share", prefixed("traces-share", trace.CheckShare(t.share)))
}

// start traces from now on what a process does, if that is wanted. stop is due whatever the error.
func (t *traceFlags) start(ctx context.Context, s *program.Streams, service, instance string) (stop func(), err error) {
	if t.collector == "" {
		return func() {}, nil
	}
	stop, err = trace.Start(ctx, trace.Options{
		Collector: t.collector, Share: t.share, Service: service, Instance: instance, Release: program.Version(), Logger: s.Log(),
	})
	if err != nil {
		return func() {}, fmt.Errorf("--traces: %w", err)
	}
	return stop, nil
}
