package stripe

import (
	"testing"

	"pgregory.net/rapid"
)

func TestFieldAxioms(t *testing.T) {
	slow := func(a, b int) byte {
		product := 0
		for ; b > 0; b >>= 1 {
			if b&1 != 0 {
				product ^= a
			}
			if a <<= 1; a > 255 {
				a ^= polynomial
			}
		}
		return byte(product)
	}
	for a := range 256 {
		for b := range 256 {
			if got, want := Multiply(byte(a), byte(b)), slow(a, b); got != want {
				t.Fatalf("%d*%d = %d, want %d", a, b, got, want)
			}
		}
		if a > 0 && Multiply(byte(a), Inverse(byte(a))) != 1 {
			t.Fatalf("inverse of %d", a)
		}
	}
}

func regular(rows, columns []int) bool {
	matrix := make([][]byte, len(rows))
	for i, row := range rows {
		for _, column := range columns {
			matrix[i] = append(matrix[i], Coefficient(row, column))
		}
	}
	return invertMatrix(matrix)
}

// All 1x1 and 2x2 submatrices, and samples of the larger ones.
func TestEverySquareSubmatrixIsRegular(t *testing.T) {
	for column := range MaxData {
		if Coefficient(0, column) != 1 {
			t.Fatalf("U[0][%d] = %d", column, Coefficient(0, column))
		}
		for row := range MaxParity {
			if Coefficient(row, 0) != 1 || Coefficient(row, column) == 0 {
				t.Fatalf("row %d, column %d", row, column)
			}
			for second := row + 1; second < MaxParity; second++ {
				for other := column + 1; other < MaxData; other++ {
					if !regular([]int{row, second}, []int{column, other}) {
						t.Fatalf("rows %d, %d and columns %d, %d", row, second, column, other)
					}
				}
			}
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		size := rapid.IntRange(3, MaxParity).Draw(r, "size")
		rows := rapid.SliceOfNDistinct(rapid.IntRange(0, MaxParity-1), size, size, rapid.ID).Draw(r, "rows")
		columns := rapid.SliceOfNDistinct(rapid.IntRange(0, MaxData-1), size, size, rapid.ID).Draw(r, "columns")
		if !regular(rows, columns) {
			r.Fatalf("rows %v and columns %v", rows, columns)
		}
	})
}

// The stored parities of every group depend on these numbers.
func TestMatrixIsPinned(t *testing.T) {
	hash := newLabelHash()
	for row := range MaxParity {
		for column := range MaxData {
			hash.add(int(Coefficient(row, column)))
		}
	}
	if got, want := hash.String(), "20bb478ac4b01381"; got != want {
		t.Errorf("hash %s, want %s", got, want)
	}
}

func TestStripesSurviveEveryLossOfParityManyNodes(t *testing.T) {
	layout := mustLayout(t, Ladder{RS(4, 3), RS(5, 3), RS(6, 3)}, 0, ModeFree)
	for _, scheme := range layout.Ladder {
		for _, cells := range layout.partitions[scheme.K].Stripes {
			var columns []int
			for _, cell := range cells {
				columns = append(columns, int(cell)%layout.Columns)
			}
			for lost := range 1 << (scheme.K + scheme.M) {
				var data, rows []int
				for i := range scheme.K + scheme.M {
					switch {
					case lost>>i&1 != 0:
					case i < scheme.K:
						data = append(data, columns[i])
					default:
						rows = append(rows, i-scheme.K)
					}
				}
				if len(data)+len(rows) != scheme.K {
					continue
				}
				for _, wanted := range columns {
					if _, err := Decode(scheme, columns, wanted, data, rows); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}
