package stripe

import (
	"errors"
	"strings"
	"testing"
)

func TestParseScheme(t *testing.T) {
	for _, c := range []struct {
		text string
		want Scheme
	}{
		{"rep(3)", Scheme{1, 2}}, {"rep(1)", Scheme{1, 0}}, {" RS ( 4 , 2 ) ", Scheme{4, 2}}, {"rs(1,2)", Scheme{1, 2}},
		{"rs(64,8)", Scheme{64, 8}}, {"rs(1,0)", Scheme{1, 0}},
	} {
		got, err := ParseScheme(c.text)
		if err != nil || got != c.want {
			t.Errorf("%q: %v, %v; want %v", c.text, got, err, c.want)
		}
	}
	for _, c := range []struct {
		text    string
		offset  int
		problem string
	}{
		{"", 0, "expected a scheme"}, {"raid(5)", 0, "no scheme"}, {"rs(4)", 4, "expected a comma"},
		{"rs(4,2", 6, "closing"}, {"rs 4,2", 3, "opening"}, {"rs(4,2)x", 7, "unexpected"}, {"rs(a,2)", 3, "a number"},
		{"rs(-1,2)", 3, "a number"}, {"rs(4,0)", 0, "without parity"}, {"rs(0,2)", 0, "at least one data"},
		{"rep(0)", 0, "at least one copy"}, {"rep(10)", 0, "too many copies"}, {"rs(65,2)", 0, "too many data"},
		{"  rs(4,9)", 2, "too many parity"}, {"rs(99999999999999999999,2)", 3, "too large"},
	} {
		_, err := ParseScheme(c.text)
		var mistake *SyntaxError
		if !errors.As(err, &mistake) || !errors.Is(err, ErrScheme) {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if mistake.Offset != c.offset || !strings.Contains(err.Error(), c.problem) || mistake.Cure == "" {
			t.Errorf("%q: offset %d, %v; want %d, %s", c.text, mistake.Offset, err, c.offset, c.problem)
		}
	}
}

func TestParseLadder(t *testing.T) {
	for _, text := range []string{"rep(3),rs(4,2),rs(12,2)", " rep(3) -> rs( 4,2)->RS(12,2) ", "rep(3), rs(4,2) -> rs(12,2)"} {
		ladder, err := ParseLadder(text)
		if err != nil || ladder.String() != "rep(3),rs(4,2),rs(12,2)" || ladder.Width() != 12 || ladder.MaxParity() != 2 {
			t.Errorf("%q: %v, %v", text, ladder, err)
		}
	}
	for text, offset := range map[string]int{
		"": 0, "rs(4,2),": 8, "rs(4,2) rs(6,2)": 8, "rs(4,2), rs(4,2)": 9, "rep(3),rs(1,2)": 7,
		"rs(2,1),rs(3,1),rs(4,1),rs(5,1),rs(6,1),rs(7,1),rs(8,1)": 48,
	} {
		_, err := ParseLadder(text)
		var mistake *SyntaxError
		if !errors.As(err, &mistake) || mistake.Offset != offset {
			t.Errorf("%q: %v, want a mistake at %d", text, err, offset)
		}
	}
}

func FuzzParseScheme(f *testing.F) {
	for _, text := range []string{"rep(3)", " RS ( 4 , 2 ) ", "rs(64,8)", "rs(4,", "rep(99999)"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		scheme, err := ParseScheme(text)
		if err != nil {
			checkMistake(t, text, err)
			return
		}
		if err := scheme.Validate(); err != nil {
			t.Fatal(err)
		}
		if again, err := ParseScheme(scheme.String()); err != nil || again != scheme {
			t.Fatalf("%s: %v, %v", scheme, again, err)
		}
	})
}

func FuzzParseLadder(f *testing.F) {
	for _, text := range []string{"rep(3),rs(4,2),rs(12,2)", "rep(3) -> rs(4,2)", "rs(4,2),", "->"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ladder, err := ParseLadder(text)
		if err != nil {
			checkMistake(t, text, err)
			return
		}
		if err := ladder.Validate(); err != nil {
			t.Fatal(err)
		}
		if again, err := ParseLadder(ladder.String()); err != nil || again.String() != ladder.String() {
			t.Fatalf("%s: %v, %v", ladder, again, err)
		}
	})
}

func checkMistake(t *testing.T, text string, err error) {
	var mistake *SyntaxError
	if !errors.As(err, &mistake) || mistake.Offset < 0 || mistake.Offset > len(text) || mistake.Problem == "" || mistake.Cure == "" {
		t.Fatalf("%q: %#v", text, err)
	}
}

func TestSchemeText(t *testing.T) {
	var scheme Scheme
	if err := scheme.UnmarshalText([]byte("rs(6,3)")); err != nil || scheme != RS(6, 3) {
		t.Errorf("%v, %v", scheme, err)
	}
	if _, err := (Scheme{}).MarshalText(); !errors.Is(err, ErrScheme) {
		t.Errorf("the zero scheme: %v", err)
	}
	if text, err := Replicas(3).MarshalText(); err != nil || string(text) != "rep(3)" {
		t.Errorf("%s, %v", text, err)
	}
}
