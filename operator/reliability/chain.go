package reliability

import "math"

// chain is a Markov chain over the number of failed nodes, from none to the most that something survives; from every
// state data may be lost for good. Rates are per year.
type chain struct {
	fail   []float64 // from state i to i+1; the last is 0
	repair []float64 // from state i to i-1; the first is 0
	lose   []float64 // from state i to the loss of data
}

// meanTimeToLoss returns the expected years until data is lost, from no failure on. States are eliminated from the last
// one down: each is replaced by what it does to the one below, the way of Grassmann, Taksar and Heyman, which never
// subtracts.
func (c chain) meanTimeToLoss() float64 {
	last := len(c.fail) - 1
	stay, lose := 1.0, c.lose[last]
	for i := last; i > 0; i-- {
		leave := c.repair[i] + lose
		stay, lose = 1+c.fail[i-1]*stay/leave, c.lose[i-1]+c.fail[i-1]*lose/leave
	}
	return stay / lose
}

// matrix is square, with rows of states now and columns of states later; the last state is the loss.
type matrix [][]float64

func newMatrix(n int) matrix {
	m := make(matrix, n)
	cells := make([]float64, n*n)
	for i := range m {
		m[i], cells = cells[:n:n], cells[n:]
	}
	return m
}

// product returns a*b.
func (a matrix) product(b matrix) matrix {
	c := newMatrix(len(a))
	for i := range a {
		for j, x := range a[i] {
			if x == 0 {
				continue
			}
			for k, y := range b[j] {
				c[i][k] += x * y
			}
		}
	}
	return c
}

// add adds x*b to a.
func (a matrix) add(x float64, b matrix) {
	for i := range a {
		for j := range a[i] {
			a[i][j] += x * b[i][j]
		}
	}
}

// normalise makes every row sum to 1, as rows of probabilities do, so that rounding does not add up.
func (a matrix) normalise() {
	for _, row := range a {
		var sum float64
		for _, x := range row {
			sum += x
		}
		for j := range row {
			row[j] /= sum
		}
	}
}

// after returns, from no failure on, the probability that data is lost within years, and the share of that time in which
// a node is missing or data is lost. The probabilities of a short time are a sum over the number of jumps of the
// uniformised chain; squaring doubles the time. Both only add and multiply positive numbers.
func (c chain) after(years float64) (lost, degraded float64) {
	rate, jumps := c.uniformised()
	doublings := 0
	for rate*years > 0.5 {
		years /= 2
		doublings++
	}
	over, spent := jumps.shortly(rate, years)
	whole := years
	for range doublings {
		longer := over.product(spent)
		longer.add(1, spent)
		spent = longer
		over = over.product(over)
		over.normalise()
		whole *= 2
	}
	for _, time := range spent[0][1:] {
		degraded += time
	}
	return over[0][len(over)-1], degraded / whole
}

// uniformised returns the matrix of a chain that jumps at the same rate in every state, at times to where it is.
func (c chain) uniformised() (rate float64, jumps matrix) {
	last := len(c.fail)
	for i := range c.fail {
		rate = max(rate, 2*(c.fail[i]+c.repair[i]+c.lose[i])) // twice: staying stays likely, without cancellation
	}
	jumps = newMatrix(last + 1)
	for i := range c.fail {
		jumps[i][i] = 1 - (c.fail[i]+c.repair[i]+c.lose[i])/rate
		if i > 0 {
			jumps[i][i-1] = c.repair[i] / rate
		}
		if i+1 < last {
			jumps[i][i+1] = c.fail[i] / rate
		}
		jumps[i][last] += c.lose[i] / rate
	}
	jumps[last][last] = 1
	return rate, jumps
}

// shortly returns for a time in which few jumps are expected the probabilities of being elsewhere at its end, and the
// time spent in each state until then.
func (a matrix) shortly(rate, years float64) (over, spent matrix) {
	terms := len(a) + 20
	probability := make([]float64, terms) // of so many jumps
	probability[0] = math.Exp(-rate * years)
	for n := 1; n < terms; n++ {
		probability[n] = probability[n-1] * rate * years / float64(n)
	}
	more := make([]float64, terms) // probability of more than so many jumps
	for n := terms - 2; n >= 0; n-- {
		more[n] = more[n+1] + probability[n+1]
	}
	over, spent = newMatrix(len(a)), newMatrix(len(a))
	power := newMatrix(len(a))
	for i := range power {
		power[i][i] = 1
	}
	for n := range terms {
		over.add(probability[n], power)
		spent.add(more[n]/rate, power)
		power = power.product(a)
	}
	over.normalise()
	return over, spent
}
