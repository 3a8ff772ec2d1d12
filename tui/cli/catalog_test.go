package cli

import (
	"testing"

	"github.com/restripe/restripe/agent/gateway/api"
)

// The size of a catalog is said with what is known of it: not every engine counts records quickly, or has a limit.
func TestTheSizeOfACatalogIsSaid(t *testing.T) {
	for _, test := range []struct {
		size api.CatalogSize
		want string
	}{
		{api.CatalogSize{Records: 1234, Bytes: 3 << 20}, "The catalog has 3.0 MiB in about 1,234 records."},
		{api.CatalogSize{Records: 1, Bytes: 2 << 30, Limit: 8 << 30},
			"The catalog has 2.0 GiB in about 1 record, 25 % of the 8.0 GiB that its engine takes."},
		{api.CatalogSize{Records: -1, Bytes: 512}, "The catalog has 512 B."},
	} {
		if got := sizeText(test.size); got != test.want {
			t.Errorf("%+v is said as %q, want %q", test.size, got, test.want)
		}
	}
}
