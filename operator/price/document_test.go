package price

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/stripe"
)

var update = flag.Bool("update", false, "write the table of docs/prices.md anew")

const (
	document   = "../../docs/prices.md"
	tableBegin = "<!-- table of months: go test ./operator/price -run Document -update -->\n"
	tableEnd   = "<!-- end -->\n"
)

// The table of the document is what the tariffs say.
func TestDocumentedMonths(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), tableBegin)
	_, after, closed := strings.Cut(rest, tableEnd)
	if !found || !closed {
		t.Fatalf("%s has no place for the table", document)
	}
	want := before + tableBegin + monthsTable() + tableEnd + after
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("%s is not what the tariffs say; run with -update", document)
	}
	if err := os.WriteFile(document, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func monthsTable() string {
	workloads := []struct {
		name string
		w    Workload
	}{
		{"never used", Workload{GiB: 1024}},
		{"10 M gets", Workload{GiB: 1024, Gets: 1e7}},
		{"10 M puts of a cell", Workload{GiB: 1024, Puts: 1e7}},
		{"100 M gets, 10 M puts", Workload{GiB: 1024, Gets: 1e8, Puts: 1e7}},
	}
	var table strings.Builder
	table.WriteString("| code |")
	rule := "|---|"
	for _, w := range workloads {
		table.WriteString(" " + w.name + " |")
		rule += "---:|"
	}
	table.WriteString("\n" + rule + "\n")
	for _, scheme := range []stripe.Scheme{stripe.Replicas(1), stripe.Replicas(3), stripe.RS(4, 2), stripe.RS(12, 2)} {
		tariff := Default().Tariff(scheme, 64<<10)
		fmt.Fprintf(&table, "| %s |", scheme)
		for _, w := range workloads {
			fmt.Fprintf(&table, " %s |", Amount(tariff.Month(w.w).Total()))
		}
		table.WriteString("\n")
	}
	return table.String()
}

// The documented defaults are those of the table.
func TestDocumentedDefaults(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	d := Default()
	for field, value := range map[string]float64{
		"storageGiBMonth": d.StorageGiBMonth, "networkGiB": d.NetworkGiB, "millionOperations": d.MillionOperations, "paybackMonths": d.PaybackMonths,
	} {
		if row := fmt.Sprintf("| `%s` | %s |", field, numberText(value)); !strings.Contains(string(text), row) {
			t.Errorf("%s has no row that begins %q", document, row)
		}
	}
}
