package reliability

import (
	"math"
	"testing"

	"github.com/restripe/restripe/agent/stripe"
)

// The paper gives neither the failure rate nor the repair rate of its Figures 2 and 16. Two numbers of its text fix them:
// rs(3,1) has 3.5 nines of reliability, and the best code, of the family SRS(2,1,s), 3.35 nines of availability.
const (
	ringFailure = 0.21 // a year
	ringRepair  = 1700 // a year: about 5 hours
)

func ring(t *testing.T, k, m, columns int) (reliability, availability float64) {
	t.Helper()
	f, err := SRS(stripe.RS(k, m), columns, StretchedRates(k, columns, ringFailure, ringRepair))
	if err != nil {
		t.Fatal(err)
	}
	return f.Nines, -math.Log10(f.DegradedShare)
}

// Figure 2, as far as Section 3.3 says what it shows.
func TestRingsReliability(t *testing.T) {
	plain, _ := ring(t, 3, 1, 3)
	for columns := 3; columns <= 7; columns++ {
		if nines, _ := ring(t, 3, 1, columns); math.Abs(nines-3.5) > 0.25 {
			t.Errorf("SRS(3,1,%d): %.2f nines; the family is around 3.5", columns, nines)
		}
	}
	if math.Abs(plain-3.5) > 0.05 {
		t.Errorf("rs(3,1): %.2f nines, want 3.5", plain)
	}
	narrow, _ := ring(t, 3, 2, 3)
	if wide, _ := ring(t, 3, 2, 6); wide <= narrow {
		t.Errorf("SRS(3,2,6): %.2f nines, rs(3,2) %.2f; stretching makes it more reliable", wide, narrow)
	}
	// Stretching changes every family by less than half a nine.
	for _, c := range [][2]int{{2, 1}, {3, 1}, {3, 2}, {4, 2}, {4, 3}, {5, 3}} {
		plain, _ := ring(t, c[0], c[1], c[0])
		for columns := c[0]; columns <= 7; columns++ {
			if nines, _ := ring(t, c[0], c[1], columns); math.Abs(nines-plain) > 0.5 {
				t.Errorf("SRS(%d,%d,%d): %.2f nines, rs(%d,%d) %.2f", c[0], c[1], columns, nines, c[0], c[1], plain)
			}
		}
	}
}

// With data nodes repaired at (k/s)*mu, as printed, both statements of Section 3.3 fail: it is a misprint.
func TestPrintedRepairRateContradictsThePaper(t *testing.T) {
	printed := func(k, m, columns int) float64 {
		f, err := SRS(stripe.RS(k, m), columns, Rates{ringFailure, ringRepair * float64(k) / float64(columns), ringRepair})
		if err != nil {
			t.Fatal(err)
		}
		return f.Nines
	}
	if nines := printed(3, 1, 7); nines > 2.8 {
		t.Errorf("SRS(3,1,7): %.2f nines", nines)
	}
	if printed(3, 2, 6) >= printed(3, 2, 3) {
		t.Error("SRS(3,2,6) is more reliable than rs(3,2)")
	}
}

// Figure 16, as far as Appendix A.3 says what it shows.
func TestRingsAvailability(t *testing.T) {
	best, family := 0.0, 0
	for k := 2; k <= 7; k++ {
		for m := 1; m < k || m == 1; m++ {
			for columns := k; columns <= 7; columns++ {
				_, nines := ring(t, k, m, columns)
				if nines >= 3.4 {
					t.Errorf("SRS(%d,%d,%d): %.2f nines of availability; all have less than 3.4", k, m, columns, nines)
				}
				if nines > best {
					best, family = nines, k
				}
			}
		}
	}
	if family != 2 || math.Abs(best-3.35) > 0.05 {
		t.Errorf("the best availability is %.2f nines, with k = %d; want about 3.35 with 2", best, family)
	}
	for k := 2; k < 7; k++ {
		_, here := ring(t, k, 2, k)
		if _, wider := ring(t, k+1, 2, k+1); wider >= here {
			t.Errorf("rs(%d,2) is more available than rs(%d,2)", k+1, k)
		}
	}
}
