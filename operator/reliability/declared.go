package reliability

import (
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// TargetOf reads what a policy declares, for so many nodes (or failure domains, if they are fewer) that store nodeBytes
// each. Fields that are zero have their defaults; nodeBytes 0 is DefaultNodeBytes. The target is not validated.
func TargetOf(declared v1alpha1.Reliability, nodes int, nodeBytes int64) Target {
	e := DefaultEnvironment()
	e.FailurePercent = quantityOr(declared.AnnualFailurePercent, e.FailurePercent)
	e.RepairBandwidth = quantityOr(declared.RepairBandwidth, e.RepairBandwidth)
	if nodeBytes > 0 {
		e.NodeBytes = float64(nodeBytes)
	}
	return Target{
		Nines: float64(declared.Nines), Nodes: nodes, MaxOverhead: quantityOr(declared.MaxOverhead, DefaultOverhead),
		Environment: e,
	}
}

func quantityOr(quantity resource.Quantity, otherwise float64) float64 {
	if quantity.IsZero() {
		return otherwise
	}
	// By way of the decimal digits: the quantity's own approximation makes 1.4000000000000001 of 1.4.
	number, err := strconv.ParseFloat(quantity.AsDec().String(), 64)
	if err != nil {
		return quantity.AsApproximateFloat64()
	}
	return number
}
