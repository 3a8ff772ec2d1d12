package access

import (
	"errors"
	"fmt"
	"net/http"
)

// Guard returns a handler that passes on the requests of those who have a right. Others are told why not: 401 whom nobody knows, 403
// who lacks the right, 503 where it cannot be told.
func Guard(authority Authority, right Right, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, err := authority.Identify(r.Context(), r.Header)
		may := false
		if err == nil {
			may, err = authority.May(r.Context(), user, right)
		}
		switch {
		case errors.Is(err, ErrUnknown):
			w.Header().Set("WWW-Authenticate", `Bearer realm="restripe"`)
			http.Error(w, err.Error(), http.StatusUnauthorized)
		case err != nil:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		case !may:
			http.Error(w, fmt.Sprintf("%s may not do this: the verb %s on %s is missing; who looks after this server can grant it",
				user.Name, right.Verb, right.Resource), http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}
