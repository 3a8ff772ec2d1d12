package serve

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A body of which next to nothing came within a minute is not waited for any longer; one that comes slowly is.
func TestABodyComesAtALeastRate(t *testing.T) {
	slow := errors.New("too slow")
	for came, ends := range map[int]bool{leastRate * 30: true, leastRate * 61: false} {
		request := httptest.NewRequest("PUT", "/", strings.NewReader("more"))
		body := PatientBody(httptest.NewRecorder(), request, slow).(*patientBody)
		body.waited, body.came = clientPatience+time.Second, came
		_, err := body.Read(make([]byte, 10))
		if ended := errors.Is(err, slow); ended != ends {
			t.Errorf("after %d bytes in a minute: %v", came, err)
		}
	}
}
