package serve

import (
	"fmt"
	"net"
	"net/http"
	"strings"
)

// Foreign says in words why a request may have been sent by a page of somebody else; empty if it was not. A browser sends
// requests for whatever page it shows, and a name of theirs may lead to this machine. So a request comes from a page of this
// server where it says from which it comes and, where everybody who reaches the server may do everything, onlyLoopback, it is
// for a name of this machine that nobody else can give.
func Foreign(r *http.Request, onlyLoopback bool) (why string) {
	if onlyLoopback && !LoopbackHost(r.Host) {
		return fmt.Sprintf("this server answers to localhost and addresses of this machine only, not to %s", clean(r.Host))
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host && origin != "https://"+r.Host {
		return fmt.Sprintf("pages of %s may not call this server", clean(origin))
	}
	if err := new(http.CrossOriginProtection).Check(r); err != nil {
		return "pages of other sites may not call this server"
	}
	return ""
}

// clean takes out of what a caller sent all but printable characters.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e {
			return -1
		}
		return r
	}, text)
}

// LoopbackHost reports whether a host, with or without a port, is this machine by a name that no one else can give.
func LoopbackHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
