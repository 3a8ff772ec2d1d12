package parity

import "github.com/restripe/restripe/agent/stripe"

// vector is one value for each equation of a stripe; those beyond m are zero.
type vector [stripe.MaxParity]byte

// space is the span of the vectors that were added to it, kept as a basis in echelon form. The zero space is ready.
type space struct {
	basis [stripe.MaxParity]vector // basis[i] begins with a one at i, or is zero
}

// add extends the space by v and reports whether v was outside it.
func (s *space) add(v vector) bool {
	v = s.reduce(v)
	for i, value := range v {
		if value != 0 {
			s.basis[i] = v.scaled(stripe.Inverse(value))
			return true
		}
	}
	return false
}

// has reports whether v is inside the space.
func (s *space) has(v vector) bool { return s.reduce(v) == vector{} }

func (s *space) rank() (rank int) {
	for i := range s.basis {
		if s.basis[i][i] != 0 {
			rank++
		}
	}
	return rank
}

// reduce takes what the basis spans out of v.
func (s *space) reduce(v vector) vector {
	for i := range v {
		if v[i] != 0 && s.basis[i][i] != 0 {
			taken := s.basis[i].scaled(v[i])
			for j := range v {
				v[j] ^= taken[j]
			}
		}
	}
	return v
}

func (v vector) scaled(factor byte) vector {
	for i := range v {
		v[i] = stripe.Multiply(v[i], factor)
	}
	return v
}
