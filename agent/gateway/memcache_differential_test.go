package gateway_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/store/storetest/server"
)

// exchange is what is sent, the same to memcached and to us. Replies are the same, but for the numbers of versions, and where it is
// said what we answer, and why it is something else. {cas} is the number of a version that was told last.
type exchange struct{ send, we, why string }

var long = strings.Repeat("k", 251)

// memcacheScript is one script: what it stores is there for what comes after.
var memcacheScript = []exchange{
	{send: "get a\r\n"},
	{send: "gets a b  c\r\n"},
	{send: "set a 5 0 5\r\nhello\r\nget a\r\ngets a\r\n"},
	{send: "get b a b a c\r\n"},
	{send: "get\r\n"},
	{send: "gets \r\n"},
	{send: "gat\r\n"},
	{send: "gat 100\r\n"},
	{send: "gat x a\r\n"},
	{send: "gat 100 a b\r\nmg a t\r\ngats 0 a\r\nmg a t\r\n"},
	{send: "get " + long + "\r\n"},
	{send: "get a " + long + " a\r\n"},
	{send: "get " + long[1:] + "\r\n"},
	{send: "set " + long[1:] + " 0 0 1\r\n1\r\nget " + long[1:] + "\r\ndelete " + long[1:] + "\r\n"},
	{send: "set e 0 0 0\r\n\r\nget e\r\nappend e 0 0 1\r\nx\r\nget e\r\n"},
	{send: "set b 4294967295 0 3\r\n\r\n\n\r\nget b\r\n"},
	{send: "set bad -1 0 1\r\n1\r\n", we: "CLIENT_ERROR bad command line format\r\n",
		why: "the value behind a line that is wrong is not taken for a command"},
	{send: "set wide 4294967296 0 1\r\n1\r\n", we: "CLIENT_ERROR bad command line format\r\n",
		why: "flags above 32 bits are refused, and not cut off"},
	{send: "set bad 0 x 1\r\n1\r\n", we: "CLIENT_ERROR bad command line format\r\n",
		why: "the value behind a line that is wrong is not taken for a command"},
	{send: "set " + long + " 0 0 1\r\n1\r\n", we: "CLIENT_ERROR bad command line format\r\n",
		why: "the value behind a line that is wrong is not taken for a command"},
	{send: "set bad 0 0 x\r\n"},
	{send: "set bad 0 0 -1\r\n"},
	{send: "set bad 0 0 2147483647\r\n"},
	{send: "set bad 0 0\r\n"},
	{send: "set bad\r\n"},
	{send: "set\r\n"},
	{send: "set bad 0 0 1 noreply more\r\n"},
	{send: "set bad 0 0 3\r\nhello\r\n"},
	{send: "set bad 0 0 3 noreply\r\nhello\r\n"},
	{send: "get bad\r\n"},
	{send: "set q 0 0 1 noreply\r\n1\r\nget q\r\n"},
	{send: "set q 0 0 1 more\r\n2\r\nget q\r\n"},
	{send: "add a 0 0 1\r\n1\r\n"},
	{send: "add new 9 0 1\r\n1\r\nget new\r\n"},
	{send: "replace none 0 0 1\r\n1\r\nget none\r\n"},
	{send: "replace new 1 0 2\r\n22\r\nget new\r\n"},
	{send: "append none 0 0 1\r\n1\r\nprepend none 0 0 1\r\n1\r\n"},
	{send: "append new 7 100 2\r\n33\r\nprepend new 8 100 2\r\n11\r\nget new\r\nmg new t f s\r\n"},
	{send: "cas new 0 0 1 1\r\n1\r\n"},
	{send: "cas none 0 0 1 1\r\n1\r\n"},
	{send: "gets new\r\n"},
	{send: "cas new 3 0 1 {cas}\r\nx\r\nget new\r\n"},
	{send: "cas new 3 0 1 {cas}\r\nx\r\n"},
	{send: "cas new 3 0 1 x\r\nx\r\n", we: "CLIENT_ERROR bad command line format\r\n",
		why: "the value behind a line that is wrong is not taken for a command"},
	{send: "cas new 3 0 1\r\n"},
	{send: "gets new\r\n"},
	{send: "cas new 3 0 1 {cas} noreply\r\ny\r\nget new\r\n"},
	{send: "delete new\r\ndelete new\r\nget new\r\n"},
	{send: "delete\r\n"},
	{send: "delete a 1\r\n"},
	{send: "delete a 1 noreply\r\n"},
	{send: "delete none 0\r\ndelete none 0 noreply\r\ndelete none noreply\r\n"},
	{send: "delete a b c d e\r\n"},
	{send: "delete " + long + "\r\n"},
	{send: "set n 6 0 2\r\n10\r\nincr n 5\r\ndecr n 4\r\nincr n 100\r\nget n\r\n"},
	{send: "decr n 1000\r\n"},
	{send: "incr n 18446744073709551615\r\nincr n 1\r\n"},
	{send: "incr n 18446744073709551616\r\n"},
	{send: "incr n -1\r\nincr n x\r\nincr n\r\nincr\r\nincr n 1 2 3\r\n"},
	{send: "incr none 1\r\ndecr none 1\r\nincr none 1 noreply\r\n"},
	{send: "incr a 1\r\ndecr a 1\r\n"},
	{send: "incr " + long + " 1\r\n"},
	{send: "set n 0 0 4\r\n12 x\r\nincr n 1\r\n"},
	{send: "set n 0 0 0\r\n\r\nincr n 1\r\n"},
	{send: "set n 0 0 1\r\n1\r\nincr n 1 noreply\r\nget n\r\n"},
	{send: "set n 0 0 2\r\n10\r\ndecr n 1\r\nget n\r\n", we: "STORED\r\n9\r\nVALUE n 0 1\r\n9\r\nEND\r\n",
		why: "a counter that becomes shorter is not filled up with spaces"},
	{send: "touch n 1000\r\nmg n t\r\ntouch n 0\r\nmg n t\r\ntouch none 1\r\n"},
	{send: "touch n\r\ntouch n x\r\ntouch\r\ntouch n 1 2 3\r\ntouch " + long + " 1\r\n"},
	{send: "touch n 0 noreply\r\n"},
	{send: "touch n -1\r\nget n\r\n"},
	{send: "set gone 0 -1 1\r\n1\r\nget gone\r\n"},
	{send: "set gone 0 2592001 1\r\n1\r\nget gone\r\n"},
	{send: "set stays 0 2592000 1\r\n1\r\nmg stays t\r\n"},
	{send: "set stays 0 4102444800 1\r\n1\r\nget stays\r\n", we: "STORED\r\nVALUE stays 0 1\r\n1\r\nEND\r\n",
		why: "times have 64 bits"},
	{send: "set stays 0 2147483647 1\r\n1\r\nget stays\r\ndelete stays\r\n"},
	{send: "set x 0 1000000000 1\r\n1\r\nget x\r\n"},
	{send: "verbosity\r\nverbosity 0\r\nverbosity x\r\nverbosity 0 noreply\r\nverbosity 0 1 2\r\n"},
	{send: "nonsense\r\n"},
	{send: "\r\n"},
	{send: "a\r\n"},
	{send: "GET a\r\n"},
	{send: "  get   a  \r\n"},
	{send: "get a\n"},
	{send: "set a 5 0 5\nhello\r\n"},
	{send: "stats nonsense\r\n"},
	{send: "stats reset\r\n"},
	{send: "stats sizes\r\n"},
	{send: "shutdown\r\n"},
	{send: "slabs\r\n"},
	{send: "lru\r\n"},
	{send: "lru_crawler\r\n"},
	{send: "extstore\r\n"},
	{send: "cache_memlimit\r\n"},
	{send: "cache_memlimit 1024\r\n", we: "ERROR\r\n", why: "there is no cache here whose memory could be limited"},
	{send: "slabs automove 0\r\n", we: "ERROR\r\n", why: "there are no slabs here"},
	{send: "lru mode flat\r\n", we: "ERROR\r\n", why: "nothing is evicted here"},
	{send: "flush_all x y z\r\n"},
	{send: "bget a\r\n"},
	{send: "mx\r\n"},
	{send: "mg\r\nms\r\nmd\r\nma\r\n"},
	{send: "me\r\n"},

	{send: "mg none\r\nmg none v\r\nmg none q\r\nmg none k O123\r\n"},
	{send: "mg a\r\nmg a v\r\nmg a s v f k t Oabc q\r\nmg a c\r\n"},
	{send: "mg a u v\r\nmg a P1 L2 s\r\n"},
	{send: "mg a v v\r\n"},
	{send: "mg a !\r\n", we: "CLIENT_ERROR invalid flag '!'\r\n", why: "the error names the flag"},
	{send: "mg a E1\r\n", we: "CLIENT_ERROR flag E is not supported: versions are numbered by the gateway\r\n",
		why: "the error names the flag"},
	{send: "mg a O" + long[:31] + "\r\nmg a O" + long[:32] + "\r\n"},
	{send: "mg " + long + "\r\n"},
	{send: "mg a Tx\r\nmg a T\r\nmg a N\r\nmg a Rx\r\n"},
	{send: "mg a a b c d e f g h i j k l m n o p q r s t u\r\n"},
	{send: "mg YQ== b v k\r\nmg YQ b v k\r\n", we: "VA 5 kYQ== b\r\nhello\r\nCLIENT_ERROR error decoding key\r\n",
		why: "a key is told as it was asked for, and not as it was stored"},
	{send: "ms m 2\r\nhi\r\nmg m v f t s\r\n"},
	{send: "ms m 2 F7 T100 k Oq c\r\nhi\r\nmg m v f t s\r\n"},
	{send: "ms m 2 q\r\nho\r\nmg m v\r\n"},
	{send: "ms m S2\r\n"},
	{send: "ms m\r\n"},
	{send: "ms m -1\r\n"},
	{send: "ms m 2 !\r\nhi\r\n", we: "CLIENT_ERROR invalid flag '!'\r\n", why: "the error names the flag"},
	{send: "ms m 2 F1 F2\r\nhi\r\n"},
	{send: "ms m 2 Tx\r\nhi\r\n"},
	{send: "ms m 2 MX\r\nhi\r\n"},
	{send: "ms m 2 M\r\nhi\r\n"},
	{send: "ms m 2 O" + long[:32] + "\r\nhi\r\n"},
	{send: "ms m 2\r\nhix\r\n"},
	{send: "ms m 2 q\r\nhixx\r\n"},
	{send: "ms m 2 ME\r\nhi\r\nms m 2 ME q\r\nhi\r\nms none 2 MR\r\nhi\r\nms none 2 MA\r\nhi\r\n"},
	{send: "ms m 2 MA T5 F9\r\n22\r\nms m 2 MP\r\n11\r\nmg m v f t\r\n"},
	{send: "ms m 2 MR F4\r\nrr\r\nms m 2 MS F5\r\nss\r\nmg m v f\r\n"},
	{send: "ms m 2 C1 c\r\nxx\r\nms none 2 C1 k\r\nxx\r\nms m 2 C1 MA\r\nxx\r\nms m 2 C1 ME\r\nxx\r\n"},
	{send: "mg m c\r\n"},
	{send: "ms m 2 C{cas} c O1\r\nyy\r\nmg m v\r\n"},
	{send: "ms m 2 C{cas} MA c\r\nzz\r\nmg m v\r\n"},
	{send: "ms YmluYXJ5 2 b k\r\nhi\r\nmg YmluYXJ5 b k v\r\nmd YmluYXJ5 b k\r\nmg YmluYXJ5 b k\r\n"},
	{send: "ms AAEgCg== 2 b k F2 c\r\nhi\r\nmg AAEgCg== b k v f\r\n"},
	{send: "mg === b\r\n"},
	{send: "ms " + long + " 2\r\nhi\r\n", we: "CLIENT_ERROR bad command line format\r\n",
		why: "the value behind a line that is wrong is not taken for a command"},
	{send: "md none\r\nmd none q\r\nmd none k O5\r\nmd m C1\r\nmd m C1 q k\r\nmd m q\r\nmd m\r\n"},
	{send: "ms m 2\r\nhi\r\nmd m k Ox\r\nmg m\r\n"},
	{send: "ms m 2\r\nhi\r\nmg m c\r\n"},
	{send: "md m C{cas}\r\nmg m\r\n"},
	{send: "md m !\r\nmd m k k\r\n", we: "CLIENT_ERROR invalid flag '!'\r\nCLIENT_ERROR duplicate flag\r\n",
		why: "the error says what is wrong"},

	{send: "ms s 3 F3\r\nold\r\nmg s c\r\nmd s I\r\nmg s v f\r\nmg s v\r\nmg s v s\r\n"},
	{send: "ms s 3\r\nnew\r\nmg s v\r\nmd s I T100\r\nmg s t v\r\n"},
	{send: "md s I T100 q\r\nmg s t v\r\nmg s v\r\n"},
	{send: "mg s c\r\n"},
	{send: "ms s 4 I C{cas} T500\r\nfour\r\nmg s v t\r\n"},
	{send: "ms s 4\r\nfive\r\nms s 3 I C1 T500\r\nsix\r\nmg s v t\r\n"},
	{send: "ms s 3 C1\r\nsix\r\nmg s v\r\n"},
	{send: "mg viv N30 v t\r\nmg viv N30 v t\r\nmg viv v t\r\n"},
	{send: "mg viv N30 s c\r\n"},
	{send: "ms viv 3 C{cas} T30\r\nyes\r\nmg viv N30 v t\r\n"},
	{send: "mg viv R100 v\r\nmg viv R100 v\r\nmg viv R10 v\r\n"},
	{send: "ms viv 3 T300\r\nyes\r\nmg viv R100 v t\r\nmg viv R301 v t\r\nmg viv R301 v t\r\nms viv 3\r\nyes\r\nmg viv R100\r\n"},
	{send: "mg viv t T50\r\nmg viv T60 t\r\nmg viv T0 t\r\n"},
	{send: "mg miss T50 k\r\n"},
	{send: "mg never N0 t\r\nmg never t\r\n"},

	{send: "ma none\r\nma none q k O1\r\n"},
	{send: "ma c N0 J13 v t\r\nma c v\r\nma c v D10\r\nma c v MD D3\r\nma c v M- D100\r\nma c v M+\r\nma c v MI\r\n"},
	{send: "ma c q\r\nma c N0 q v\r\nma c v k Ozz\r\nma c t\r\nma c T100 t v\r\nma c t T0\r\n"},
	{send: "ma d N100 q\r\nma d t v\r\nma d C1\r\n"},
	{send: "ma d c\r\n"},
	{send: "ma d C{cas} v c\r\n"},
	{send: "ma d Dx\r\n", we: "CLIENT_ERROR invalid numeric delta value\r\n", why: "the error says what is wrong"},
	{send: "ma d Jx\r\n", we: "CLIENT_ERROR invalid numeric initial value\r\n", why: "the error says what is wrong"},
	{send: "ma d MX\r\nma d D18446744073709551615 v\r\n"},
	{send: "ma a\r\n"},
	{send: "mg d h l v\r\n", we: "VA 1\r\n2\r\n", why: "when a value was read last, or that it was, is not known, and left out"},
	{send: "me none\r\nme " + long + "\r\n"},
	{send: "flush_all 0 1 2\r\n"},
}

var casNumber = regexp.MustCompile(`(?m)^(VALUE \S+ \d+ \d+ )(\d+)\r$|( c)([1-9]\d*)\b`)

// sent runs one exchange, and returns the reply without the numbers of versions, of which it remembers the last.
func sent(m *memcacheClient, send string, last *string) string {
	reply := m.ask(strings.ReplaceAll(send, "{cas}", *last))
	return casNumber.ReplaceAllStringFunc(reply, func(found string) string {
		parts := casNumber.FindStringSubmatch(found)
		*last = parts[2] + parts[4]
		if parts[1] != "" {
			return parts[1] + "CAS\r"
		}
		return parts[3] + "CAS"
	})
}

func TestMemcacheAnswersAsMemcachedDoes(t *testing.T) {
	c := newCluster(t, 9)
	we, they := dialMemcache(t, c.serveMemcache()), dialMemcache(t, server.Memcached(t).Addr)
	var our, their string
	for _, one := range memcacheScript {
		got, theirs := sent(we, one.send, &our), sent(they, one.send, &their)
		want := theirs
		if one.why != "" {
			want = one.we
		}
		if got != want {
			t.Errorf("%.300q:\n we say           %.300q\n and should say   %.300q\n memcached says   %.300q", one.send, got, want, theirs)
		}
		if one.why != "" && theirs == one.we {
			t.Errorf("%.300q: memcached says the same, %.300q, so that no reason is needed", one.send, theirs)
		}
	}
	c.audit()
}
