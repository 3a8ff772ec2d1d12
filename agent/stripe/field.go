package stripe

// polynomial is the reduction polynomial of the field, x^8+x^4+x^3+x^2+1; 2 generates its multiplicative group.
const polynomial = 0x11d

var powers, logarithms = fieldTables()

// fieldTables returns the powers of 2, twice over so that sums of logarithms need no reduction, and the logarithms.
func fieldTables() (exponentials [510]byte, logs [256]int) {
	value := 1
	for i := range 255 {
		exponentials[i], exponentials[i+255] = byte(value), byte(value)
		logs[value] = i
		value <<= 1
		if value > 255 {
			value ^= polynomial
		}
	}
	return exponentials, logs
}

// Multiply returns the product of a and b in GF(2^8)/0x11d. Addition there is XOR.
func Multiply(a, b byte) byte {
	if a == 0 || b == 0 {
		return 0
	}
	return powers[logarithms[a]+logarithms[b]]
}

// Inverse returns the multiplicative inverse of a. It panics on zero, which has none.
func Inverse(a byte) byte {
	if a == 0 {
		panic("stripe: inverse of zero")
	}
	return powers[255-logarithms[a]]
}
