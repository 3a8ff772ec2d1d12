package price

import "github.com/restripe/restripe/agent/stripe"

// Tariff is what users of a scheme pay, per unit of their own data.
type Tariff struct {
	StorageGiBMonth float64 // of user bytes
	MillionPuts     float64
	MillionGets     float64
}

// Workload is what happens to a class in a month.
type Workload struct {
	GiB  float64 // user bytes held
	Puts float64
	Gets float64
}

// Bill is what a workload costs.
type Bill struct {
	Storage, Puts, Gets float64
}

// Total is the sum of the bill.
func (b Bill) Total() float64 { return b.Storage + b.Puts + b.Gets }

// Month returns what a month of a workload costs.
func (t Tariff) Month(w Workload) Bill {
	return Bill{Storage: w.GiB * t.StorageGiBMonth, Puts: w.Puts / 1e6 * t.MillionPuts, Gets: w.Gets / 1e6 * t.MillionGets}
}

// Tariff returns what follows for a scheme from the prices of storage, network and operations, for puts and gets of so
// many bytes that are part of one cell each: a put writes its cell and sends M differences or copies, which are written
// too; whatever is written anew is read first. A get reads the cell and sends it.
func (t Table) Tariff(scheme stripe.Scheme, bytes int64) Tariff {
	blocks := int64(1 + scheme.M)
	return Tariff{
		StorageGiBMonth: t.StorageGiBMonth * scheme.Overhead(),
		MillionPuts:     t.Operations(2*blocks*1e6) + 1e6*t.Network(blocks*bytes),
		MillionGets:     t.Operations(1e6) + 1e6*t.Network(bytes),
	}
}
