package contract

import (
	"testing"

	"github.com/restripe/restripe/agent/gateway/api"
)

func TestRatesHaveTwoDigits(t *testing.T) {
	for rate, want := range map[float64]int64{0: 0, 0.4: 0, 7.6: 8, 99.4: 99, 101: 100, 1_234_567: 1_200_000, 9_960_000: 10_000_000} {
		if got := twoDigits(rate); got != want {
			t.Errorf("%v is %d, want %d", rate, got, want)
		}
	}
}

// A plan says in one sentence what it moves and for how long, and without a limit not how long.
func TestAPlanInOneSentence(t *testing.T) {
	for _, c := range []struct {
		plan api.BalancePlan
		want string
	}{
		{api.BalancePlan{Even: true, Seconds: 0}, "Every node would hold about its share; nothing is moved"},
		{api.BalancePlan{Bytes: 1 << 30, Slots: 3, BytesPerSecond: 32 << 20, Seconds: 96},
			"1.0 GiB in 3 slots would be moved, which takes 1 min 36 s at 32 MiB/s"},
		{api.BalancePlan{Bytes: 1 << 30, Slots: 1, Seconds: -1}, "1.0 GiB in 1 slot would be moved"},
	} {
		if said := BalancePlan(&c.plan).Said; said != c.want {
			t.Errorf("%q, want %q", said, c.want)
		}
	}
}
