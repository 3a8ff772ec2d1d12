package stripe

import (
	"fmt"
	"strconv"
	"strings"
)

// SyntaxError says where a text stops being a scheme or ladder. It wraps ErrScheme.
type SyntaxError struct {
	Text    string
	Offset  int // bytes before the mistake
	Problem string
	Cure    string
}

// Error names the text, the position (counted from 1), the mistake and the cure.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%q, character %d: %s; %s", e.Text, e.Offset+1, e.Problem, e.Cure)
}

// Unwrap returns ErrScheme.
func (e *SyntaxError) Unwrap() error { return ErrScheme }

// ParseScheme reads rep(r) or rs(k,m), in either case and with spaces anywhere between the parts. The error is a
// *SyntaxError.
func ParseScheme(text string) (Scheme, error) {
	p := schemeParser{text: text}
	scheme, err := p.scheme()
	if err != nil {
		return Scheme{}, err
	}
	p.spaces()
	if p.at < len(text) {
		return Scheme{}, p.mistake(p.at, "unexpected text after the scheme", "remove it")
	}
	return scheme, nil
}

// ParseLadder reads schemes joined by commas or by arrows, "rep(3), rs(4,2)" or "rep(3) -> rs(4,2)". The error is a
// *SyntaxError.
func ParseLadder(text string) (Ladder, error) {
	p := schemeParser{text: text}
	var ladder Ladder
	for {
		p.spaces()
		start := p.at
		scheme, err := p.scheme()
		if err != nil {
			return nil, err
		}
		if ladder.Contains(scheme) {
			return nil, p.mistake(start, fmt.Sprintf("%s appears twice", scheme), "name every scheme once")
		}
		if len(ladder) == MaxSchemes {
			return nil, p.mistake(start, "too many schemes", fmt.Sprintf("keep at most %d", MaxSchemes))
		}
		ladder = append(ladder, scheme)
		p.spaces()
		if p.at == len(text) {
			return ladder, nil
		}
		if !p.accept(",") && !p.accept("->") {
			return nil, p.mistake(p.at, "expected a comma", "separate schemes by commas, for example rep(3),rs(4,2)")
		}
	}
}

type schemeParser struct {
	text string
	at   int
}

const schemeExamples = "write rep(3) for three copies or rs(4,2) for 4 data and 2 parity blocks"

func (p *schemeParser) mistake(at int, problem, cure string) error {
	return &SyntaxError{Text: p.text, Offset: at, Problem: problem, Cure: cure}
}

func (p *schemeParser) spaces() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

func (p *schemeParser) accept(token string) bool {
	if strings.HasPrefix(p.text[p.at:], token) {
		p.at += len(token)
		return true
	}
	return false
}

func (p *schemeParser) scheme() (Scheme, error) {
	p.spaces()
	start := p.at
	for p.at < len(p.text) && isLetter(p.text[p.at]) {
		p.at++
	}
	name := strings.ToLower(p.text[start:p.at])
	var arguments int
	switch name {
	case "rep":
		arguments = 1
	case "rs":
		arguments = 2
	case "":
		return Scheme{}, p.mistake(start, "expected a scheme", schemeExamples)
	default:
		return Scheme{}, p.mistake(start, fmt.Sprintf("no scheme is called %q", name), schemeExamples)
	}
	values, err := p.arguments(arguments)
	if err != nil {
		return Scheme{}, err
	}
	scheme := Replicas(values[0])
	if name == "rs" {
		scheme = RS(values[0], values[1])
	}
	if problem, cure := scheme.problem(); problem != "" {
		return Scheme{}, p.mistake(start, problem, cure)
	}
	return scheme, nil
}

func (p *schemeParser) arguments(count int) ([]int, error) {
	p.spaces()
	if !p.accept("(") {
		return nil, p.mistake(p.at, "expected an opening parenthesis", schemeExamples)
	}
	var values []int
	for i := range count {
		p.spaces()
		if i > 0 {
			if !p.accept(",") {
				return nil, p.mistake(p.at, "expected a comma and the number of parity blocks", schemeExamples)
			}
			p.spaces()
		}
		value, err := p.number()
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	p.spaces()
	if !p.accept(")") {
		return nil, p.mistake(p.at, "expected a closing parenthesis", schemeExamples)
	}
	return values, nil
}

func (p *schemeParser) number() (int, error) {
	start := p.at
	for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
		p.at++
	}
	if start == p.at {
		return 0, p.mistake(start, "expected a number", schemeExamples)
	}
	value, err := strconv.ParseUint(p.text[start:p.at], 10, 16)
	if err != nil {
		return 0, p.mistake(start, "the number is too large", fmt.Sprintf("use numbers up to %d", MaxData))
	}
	return int(value), nil
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
