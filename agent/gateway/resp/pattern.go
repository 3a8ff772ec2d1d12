package resp

import "strings"

// literal is what every text that matches a pattern begins with.
func literal(pattern []byte) string {
	if i := strings.IndexAny(string(pattern), `*?[\`); i >= 0 {
		return string(pattern[:i])
	}
	return string(pattern)
}

// matches reports whether a text is as a pattern says: * is any text, ? any byte, [abc], [a-c] and [^a] one of some bytes, or none of
// them, and a backslash takes what follows as it is. Its time is at most the product of both lengths.
func matches(pattern []byte, text string) bool {
	at, star, resume := 0, -1, 0
	for i := 0; i < len(text); {
		if at < len(pattern) && pattern[at] == '*' {
			star, resume = at, i
			at++
			continue
		}
		if at < len(pattern) {
			if is, length := matchesByte(pattern[at:], text[i]); is {
				at += length
				i++
				continue
			}
		}
		if star < 0 {
			return false
		}
		resume++
		at, i = star+1, resume
	}
	for at < len(pattern) && pattern[at] == '*' {
		at++
	}
	return at == len(pattern)
}

// matchesByte reports whether a byte is as a pattern begins, and how long that beginning is.
func matchesByte(pattern []byte, c byte) (is bool, length int) {
	switch {
	case pattern[0] == '?':
		return true, 1
	case pattern[0] == '\\' && len(pattern) > 1:
		return pattern[1] == c, 2
	case pattern[0] != '[':
		return pattern[0] == c, 1
	}
	i := 1
	not := i < len(pattern) && pattern[i] == '^'
	if not {
		i++
	}
	found := false
	for ; i < len(pattern) && pattern[i] != ']'; i++ {
		switch {
		case pattern[i] == '\\' && i+1 < len(pattern):
			i++
			found = found || pattern[i] == c
		case i+2 < len(pattern) && pattern[i+1] == '-':
			low, high := min(pattern[i], pattern[i+2]), max(pattern[i], pattern[i+2])
			found = found || c >= low && c <= high
			i += 2
		default:
			found = found || pattern[i] == c
		}
	}
	return found != not, min(i+1, len(pattern))
}
