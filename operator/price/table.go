package price

import (
	"fmt"
	"math"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// Table is the prices of the cost-benefit check.
type Table struct {
	// StorageGiBMonth is the price of a GiB on a node for a month: of stored bytes, redundancy included.
	StorageGiBMonth float64 `json:"storageGiBMonth"`
	// NetworkGiB is the price of sending a GiB between nodes.
	NetworkGiB float64 `json:"networkGiB"`
	// MillionOperations is the price of a million reads or writes of a block.
	MillionOperations float64 `json:"millionOperations"`
	// PaybackMonths is within how many months a move must have paid for itself.
	PaybackMonths float64 `json:"paybackMonths"`
}

// Default returns the documented prices.
func Default() Table {
	return Table{StorageGiBMonth: 0.02, NetworkGiB: 0.01, MillionOperations: 0.4, PaybackMonths: 6}
}

// TableOf returns the default table with what a policy declares in its place; nil declares nothing. Errors wrap ErrTable
// and name the field.
func TableOf(declared *v1alpha1.Prices) (Table, error) {
	t := Default()
	if declared == nil {
		return t, nil
	}
	for _, entry := range []struct {
		field string
		value *resource.Quantity
		price *float64
	}{
		{"storageGiBMonth", declared.StorageGiBMonth, &t.StorageGiBMonth},
		{"networkGiB", declared.NetworkGiB, &t.NetworkGiB},
		{"millionOperations", declared.Operations, &t.MillionOperations},
		{"paybackMonths", declared.PaybackMonths, &t.PaybackMonths},
	} {
		if entry.value == nil {
			continue
		}
		*entry.price = numberOf(*entry.value)
		if !(*entry.price >= 0) || math.IsInf(*entry.price, 1) {
			return Table{}, fmt.Errorf("%w: prices.%s is %s; give 0 or more", ErrTable, entry.field, entry.value)
		}
	}
	return t, nil
}

// numberOf goes by the decimal digits: a quantity's own approximation is off in the last place.
func numberOf(quantity resource.Quantity) float64 {
	number, err := strconv.ParseFloat(quantity.AsDec().String(), 64)
	if err != nil {
		return quantity.AsApproximateFloat64()
	}
	return number
}

const gib = 1 << 30

// Storage returns the price of storing so many bytes for a month.
func (t Table) Storage(bytes int64) float64 { return t.StorageGiBMonth * float64(bytes) / gib }

// Network returns the price of sending so many bytes between nodes.
func (t Table) Network(bytes int64) float64 { return t.NetworkGiB * float64(bytes) / gib }

// Operations returns the price of so many reads and writes of blocks.
func (t Table) Operations(count int64) float64 { return t.MillionOperations * float64(count) / 1e6 }
