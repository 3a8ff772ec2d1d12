package gateway_test

import (
	"testing"

	"github.com/restripe/restripe/agent/gateway/api"
)

// expectAsPlanned expects that work cost what its plans say: those blocks, read and written in those bytes, and at most as many bytes
// sent, as zeros at the end of a message are not.
func expectAsPlanned(t *testing.T, of string, measured, predicted api.Traffic) {
	t.Helper()
	sent := measured.BytesSent
	measured.BytesSent = predicted.BytesSent
	if measured != predicted || sent > predicted.BytesSent || (sent > 0) != (predicted.BytesSent > 0) {
		t.Errorf("%s: measured %+v and %d bytes sent, the plans say %+v", of, measured, sent, predicted)
	}
}
