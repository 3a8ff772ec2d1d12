package price

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/restripe/restripe/operator/api/v1alpha1"
)

func quantity(text string) *resource.Quantity {
	q := resource.MustParse(text)
	return &q
}

func TestTableOf(t *testing.T) {
	if table, err := TableOf(nil); err != nil || table != Default() {
		t.Errorf("%+v, %v", table, err)
	}
	table, err := TableOf(&v1alpha1.Prices{StorageGiBMonth: quantity("4m"), PaybackMonths: quantity("12")})
	want := Default()
	want.StorageGiBMonth, want.PaybackMonths = 0.004, 12
	if err != nil || table != want {
		t.Errorf("%+v, %v; want %+v", table, err, want)
	}
	zero, err := TableOf(&v1alpha1.Prices{NetworkGiB: quantity("0"), Operations: quantity("0")})
	if err != nil || zero.NetworkGiB != 0 || zero.MillionOperations != 0 || zero.StorageGiBMonth != Default().StorageGiBMonth {
		t.Errorf("%+v, %v", zero, err)
	}
	if _, err := TableOf(&v1alpha1.Prices{Operations: quantity("-1")}); !errors.Is(err, ErrTable) || !strings.Contains(err.Error(), "prices.millionOperations is -1; give 0 or more") {
		t.Error(err)
	}
}

func TestAmount(t *testing.T) {
	for amount, want := range map[float64]string{
		0: "0", 4.1: "4.10", -0.3: "-0.30", 0.005: "0.01", 0.0041: "0.0041", 0.00012345: "0.00012", 1e-9: "less than 0.000001", 12345.678: "12345.68",
	} {
		if got := Amount(amount); got != want {
			t.Errorf("%v: %q, want %q", amount, got, want)
		}
	}
}
