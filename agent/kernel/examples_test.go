package kernel

import (
	"fmt"
	"math/rand/v2"
)

// kind says which coefficients of a full matrix are one.
type kind struct {
	name string
	one  func(row, column, rows int) bool
}

var kinds = []kind{
	{"dense", func(int, int, int) bool { return false }},
	{"ones", func(int, int, int) bool { return true }},
	{"ones row", func(row, _, rows int) bool { return row == rows/2 }},
	{"ones column", func(_, column, _ int) bool { return column == 2 }},
	{"ones row, two ones columns", func(row, column, rows int) bool { return row == rows-1 || column == 1 || column == 4 }},
	{"scattered ones", func(row, column, rows int) bool { return (row+column)%max(rows, 3) > 0 }},
}

// full returns a matrix without zeros.
func full(k kind, rows, columns int) *example {
	random := rand.New(rand.NewPCG(uint64(rows), uint64(columns)))
	e := &example{name: k.name, outputs: rows, inputs: columns}
	for row := range rows {
		for column := range columns {
			c := byte(2 + random.IntN(254))
			if k.one(row, column, rows) {
				c = 1
			}
			e.terms = append(e.terms, Term{row, column, c})
		}
	}
	return e
}

// sparse returns a matrix whose rows have the columns listed; the coefficients are one where random says so.
func sparse(name string, inputs int, supports ...[]int) *example {
	random := rand.New(rand.NewPCG(uint64(inputs), uint64(len(supports))))
	e := &example{name: name, outputs: len(supports), inputs: inputs}
	for row, columns := range supports {
		for _, column := range columns {
			c := byte(1)
			if random.IntN(3) > 0 {
				c = byte(random.IntN(256))
			}
			e.terms = append(e.terms, Term{row, column, c})
		}
	}
	return e
}

// shapes returns matrices of every form that is treated on its own: every number of rows that one pass makes and more,
// odd and even numbers of columns of each kind, rows that share all columns, some and none.
func shapes() []*example {
	list := []*example{
		{name: "nothing"},
		{name: "no outputs", inputs: 3},
		{name: "no inputs", outputs: 3},
		{name: "no entries", outputs: 2, inputs: 2},
		{name: "entry zero", outputs: 2, inputs: 2, terms: []Term{{0, 0, 0}, {1, 1, 7}}},
		sparse("empty rows and columns", 6, nil, []int{1, 4}, nil, []int{1}, []int{4}, nil),
		sparse("diagonal", 5, []int{4}, []int{3}, []int{2}, []int{1}, []int{0}),
		sparse("parts", 9, []int{0, 1, 2}, []int{3, 4}, []int{0, 1, 2}, []int{5, 6, 7, 8}, []int{3, 4}, []int{3, 4}),
		sparse("chain", 7, []int{0, 1, 2}, []int{2, 3}, []int{3, 4, 5}, []int{5, 6}, []int{6}),
		sparse("chains that meet last", 8, []int{0, 1}, []int{6, 7}, []int{2, 3}, []int{4, 5}, []int{1, 2}, []int{5, 6}, []int{3, 4}),
		sparse("shared among others", 8, []int{0, 3, 5}, []int{1, 2, 3, 4, 5, 6, 7}, []int{0, 3, 5}, []int{7}, []int{1, 2, 3, 4, 5, 6, 7}, []int{0, 3, 5}),
		full(kinds[0], 3, 200), full(kinds[2], 8, 100), full(kinds[5], 4, 67),
	}
	for _, rows := range []int{1, 2, 3, 4, 5, 6, 7, 8, 12, 13} {
		for _, columns := range []int{1, 2, 5, 6} {
			for _, k := range kinds {
				list = append(list, full(k, rows, columns))
			}
		}
	}
	return list
}

// fewShapes returns one matrix for each of the ways to go through a pass.
func fewShapes() []*example {
	return []*example{
		full(kinds[1], 1, 1), full(kinds[0], 1, 1), full(kinds[5], 1, 5), full(kinds[2], 2, 6), full(kinds[0], 3, 3),
		full(kinds[2], 3, 2), full(kinds[4], 4, 6), full(kinds[0], 5, 2), full(kinds[4], 6, 7), full(kinds[2], 13, 5),
		sparse("parts", 9, []int{0, 1, 2}, nil, []int{3, 4}, []int{0, 1, 2}, []int{5, 6, 8}, []int{2, 3, 4}),
	}
}

// passes returns a matrix for each number of rows that one pass makes, with and without a row of ones.
func passes() (list []*example) {
	for rows := 1; rows <= 6; rows++ {
		list = append(list, full(kinds[0], rows, 3), full(kinds[2], rows, 4))
	}
	return list
}

// drawExample draws a sparse matrix whose rows have few distinct sets of columns, so that several rows have the same.
// The entries follow from a drawn seed: to draw each of them would take longer than all the rest.
func drawExample(draw func(label string, low, high int) int) *example {
	e := &example{name: "drawn", outputs: draw("outputs", 0, 14), inputs: draw("inputs", 0, 40)}
	if e.outputs > 0 && draw("wide", 0, 9) == 9 {
		e.inputs, e.name = 200, "wide"
	}
	distinct := draw("distinct supports", 1, max(e.outputs, 1))
	density, ones := draw("density in percent", 0, 100), draw("ones in percent", 0, 100)
	onesRows := draw("rows of ones in percent", 0, 30)
	random := rand.New(rand.NewPCG(uint64(draw("seed", 0, 1<<30)), 0))
	supports := make([][]int, distinct)
	for i := range supports {
		for column := range e.inputs {
			if random.IntN(100) < density {
				supports[i] = append(supports[i], column)
			}
		}
	}
	for row := range e.outputs {
		allOnes := random.IntN(100) < onesRows
		for _, column := range supports[random.IntN(distinct)] {
			c := byte(random.IntN(256))
			if allOnes || random.IntN(100) < ones {
				c = 1
			}
			e.terms = append(e.terms, Term{row, column, c})
		}
	}
	random.Shuffle(len(e.terms), func(i, j int) { e.terms[i], e.terms[j] = e.terms[j], e.terms[i] })
	e.name += fmt.Sprintf(" with %d supports", distinct)
	return e
}
