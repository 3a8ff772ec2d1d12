package server

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
)

// A body of which next to nothing came within a minute is not waited for any longer; one that comes slowly is.
func TestABodyComesAtALeastRate(t *testing.T) {
	for came, ends := range map[int]bool{leastRate * 30: true, leastRate * 61: false} {
		request := httptest.NewRequest("PUT", "/", strings.NewReader("more"))
		body := patiently(httptest.NewRecorder(), request)
		body.waited, body.came = clientPatience+time.Second, came
		_, err := body.Read(make([]byte, 10))
		if ended := errors.Is(err, errSlow); ended != ends {
			t.Errorf("after %d bytes in a minute: %v", came, err)
		}
	}
	if status, code := statusOf(errSlow); status != 408 || code != api.CodeTimeout {
		t.Errorf("a slow client is told %d %s", status, code)
	}
}
