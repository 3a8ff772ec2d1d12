package s3

import (
	"net/url"
	"slices"
	"strings"
)

// parameter is one of a query, decoded.
type parameter struct{ name, value string }

// parameters are those of a query, in its order.
type parameters []parameter

// readQuery decodes a query.
func readQuery(raw string) (parameters, error) {
	var list parameters
	for part := range strings.SplitSeq(raw, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		decodedName, err := url.QueryUnescape(name)
		if err != nil {
			return nil, refuse(invalidURI, "the query has %.40q, which is not percent-encoded", name)
		}
		decodedValue, err := url.QueryUnescape(value)
		if err != nil {
			return nil, refuse(invalidURI, "the query has %.40q, which is not percent-encoded", value)
		}
		list = append(list, parameter{decodedName, decodedValue})
	}
	return list, nil
}

func (p parameters) has(name string) bool {
	return slices.ContainsFunc(p, func(one parameter) bool { return one.name == name })
}

// get is the first value of a name; empty where there is none.
func (p parameters) get(name string) string {
	for _, one := range p {
		if one.name == name {
			return one.value
		}
	}
	return ""
}

// canonical is the query as it is signed, without the parameter that has the signature.
func (p parameters) canonical(without string) string {
	encoded := make([]string, 0, len(p))
	type pair struct{ name, value string }
	pairs := make([]pair, 0, len(p))
	for _, one := range p {
		if one.name != without {
			pairs = append(pairs, pair{encode(one.name, false), encode(one.value, false)})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		if a.name != b.name {
			return strings.Compare(a.name, b.name)
		}
		return strings.Compare(a.value, b.value)
	})
	for _, one := range pairs {
		encoded = append(encoded, one.name+"="+one.value)
	}
	return strings.Join(encoded, "&")
}

const hexDigits = "0123456789ABCDEF"

// encode percent-encodes all bytes but those that never have to be, and slashes where they are kept.
func encode(text string, keepSlash bool) string {
	var out strings.Builder
	for i := range len(text) {
		c := text[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '.', c == '_', c == '~', keepSlash &&
			c == '/':
			out.WriteByte(c)
		default:
			out.WriteByte('%')
			out.WriteByte(hexDigits[c>>4])
			out.WriteByte(hexDigits[c&15])
		}
	}
	return out.String()
}
