package stripe

// universal is the matrix U of every scheme: the Cauchy matrix 1/(x_i + y_j) with x_i = i and y_j = MaxParity + j,
// scaled so that row 0 and column 0 are ones. Scaling rows and columns keeps every square submatrix non-singular, and
// an entry depends on its row and column alone, so the matrix of fewer rows or columns is a prefix.
var universal = universalMatrix()

func universalMatrix() (u [MaxParity][MaxData]byte) {
	cauchy := func(row, column int) byte { return Inverse(byte(row) ^ byte(MaxParity+column)) }
	for row := range MaxParity {
		for column := range MaxData {
			scale := Multiply(cauchy(row, 0), cauchy(0, column))
			u[row][column] = Multiply(Multiply(cauchy(row, column), cauchy(0, 0)), Inverse(scale))
		}
	}
	return u
}

// Coefficient returns U[row][column], the factor of a cell in that column in the parity of that row; never zero, and 1
// in row 0 and in column 0. Every square submatrix of U is non-singular, so any m of the k+m blocks of a stripe with
// distinct columns may be lost. It panics unless 0 <= row < MaxParity and 0 <= column < MaxData.
func Coefficient(row, column int) byte { return universal[row][column] }

// invertMatrix inverts the square matrix a in place by Gauss-Jordan elimination and reports whether it is regular.
func invertMatrix(a [][]byte) bool {
	size := len(a)
	inverse := make([][]byte, size)
	for i := range inverse {
		inverse[i] = make([]byte, size)
		inverse[i][i] = 1
	}
	for column := range size {
		pivot := column
		for pivot < size && a[pivot][column] == 0 {
			pivot++
		}
		if pivot == size {
			return false
		}
		a[pivot], a[column] = a[column], a[pivot]
		inverse[pivot], inverse[column] = inverse[column], inverse[pivot]
		scale := Inverse(a[column][column])
		scaleRow(a[column], scale)
		scaleRow(inverse[column], scale)
		for row := range size {
			if factor := a[row][column]; row != column && factor != 0 {
				addScaledRow(a[row], a[column], factor)
				addScaledRow(inverse[row], inverse[column], factor)
			}
		}
	}
	for i := range a {
		copy(a[i], inverse[i])
	}
	return true
}

func scaleRow(row []byte, factor byte) {
	for i, value := range row {
		row[i] = Multiply(value, factor)
	}
}

func addScaledRow(row, other []byte, factor byte) {
	for i, value := range other {
		row[i] ^= Multiply(value, factor)
	}
}
