package resp

import (
	"bytes"
	"strconv"
)

// split cuts a line into words. A word may be in quotes: in double ones \n, \r, \t, \b, \a and \x with two hexadecimal digits stand for
// a byte, and any other byte after a backslash for itself; in single ones \' stands for a quote.
func split(line []byte) (words [][]byte, err error) {
	unbalanced := wrong("unbalanced quotes in request")
	for i := 0; ; {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		if i == len(line) {
			return words, nil
		}
		word := []byte{}
		quote := byte(0)
		for ; i < len(line) || quote != 0; i++ {
			if i == len(line) {
				return nil, unbalanced
			}
			c := line[i]
			switch {
			case quote == 0 && isSpace(c):
			case quote == 0 && (c == '"' || c == '\''):
				quote = c
				continue
			case quote != 0 && c == quote:
				if i+1 < len(line) && !isSpace(line[i+1]) {
					return nil, unbalanced
				}
				quote = 0
				continue
			case quote == '\'' && c == '\\' && i+1 < len(line) && line[i+1] == '\'':
				i++
				word = append(word, '\'')
				continue
			case quote == '"' && c == '\\' && i+1 < len(line):
				value, used := escaped(line[i+1:])
				i += used
				word = append(word, value)
				continue
			default:
				word = append(word, c)
				continue
			}
			break
		}
		words = append(words, word)
	}
}

// escaped is the byte that what follows a backslash stands for, and how long that is.
func escaped(text []byte) (value byte, length int) {
	if text[0] == 'x' && len(text) >= 3 {
		if value, err := strconv.ParseUint(string(text[1:3]), 16, 8); err == nil {
			return byte(value), 3
		}
	}
	if i := bytes.IndexByte([]byte("nrtba"), text[0]); i >= 0 {
		return "\n\r\t\b\a"[i], 1
	}
	return text[0], 1
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }
