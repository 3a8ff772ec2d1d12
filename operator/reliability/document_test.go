package reliability

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/stripe"
)

var update = flag.Bool("update", false, "write the table of docs/reliability.md anew")

const (
	document   = "../../docs/reliability.md"
	tableBegin = "<!-- table of codes: go test ./operator/reliability -run Document -update -->\n"
	tableEnd   = "<!-- end -->\n"
)

// The table of the document is what the models say.
func TestDocumentedTable(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), tableBegin)
	_, after, closed := strings.Cut(rest, tableEnd)
	if !found || !closed {
		t.Fatalf("%s has no place for the table", document)
	}
	want := before + tableBegin + codesTable(t) + tableEnd + after
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("%s is not what the models say; run with -update", document)
	}
	if err := os.WriteFile(document, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func codesTable(t *testing.T) string {
	t.Helper()
	const nodes = 20
	e := DefaultEnvironment()
	var table strings.Builder
	table.WriteString("| code | stored | repair | nines | loss once in years | degraded | nines of the cluster |\n|---|---:|---:|---:|---:|---:|---:|\n")
	for _, scheme := range []stripe.Scheme{
		stripe.Replicas(2), stripe.Replicas(3), stripe.Replicas(4), stripe.RS(4, 2), stripe.RS(6, 3), stripe.RS(8, 3), stripe.RS(8, 4), stripe.RS(10, 4), stripe.RS(12, 2), stripe.RS(12, 4),
	} {
		rates := e.Rates(scheme.K)
		one, err := RS(scheme, rates)
		if err != nil {
			t.Fatal(err)
		}
		all, err := Cluster(scheme, nodes, rates)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&table, "| %s | %.2fx | %s | %s | %s | %.2g %% | %s |\n", scheme, scheme.Overhead(), timeText(e.RepairSeconds(scheme.K)),
			NinesText(one.Nines), yearsText(one.MeanYearsToLoss), 100*one.DegradedShare, NinesText(all.Nines))
	}
	return table.String()
}
