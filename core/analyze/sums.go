package analyze

import (
	"fmt"
	"math"
	"math/bits"
)

// plus adds numbers of 0 or more and stops at the largest: a hostile file must not turn a sum negative.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// clamp keeps times so small that a difference of two cannot overflow; real ones stay below 2^50.
func clamp(t int64) int64 { return max(-1<<61, min(t, 1<<61)) }

// apportion divides total (0 or more) by weights (0 or more, not all 0) into whole numbers that add up to total. Each prefix gets
// floor(total x weights so far / all weights), so the result depends on the order, which callers fix.
func apportion(total int64, weights []int64) []int64 {
	var all int64
	for _, w := range weights {
		all = plus(all, w)
	}
	out := make([]int64, len(weights))
	if all <= 0 {
		return out
	}
	var so, before int64
	for i, w := range weights {
		so = plus(so, w)
		hi, lo := bits.Mul64(uint64(total), uint64(so))
		upTo, _ := bits.Div64(hi, lo, uint64(all)) // so <= all, so the quotient is at most total
		out[i] = int64(upTo) - before
		before = int64(upTo)
	}
	return out
}

// pct is 100 x part / whole with two decimals; nil where there is nothing to divide by.
func pct(part, whole int64) *float64 {
	if whole <= 0 {
		return nil
	}
	return rounded(100 * float64(part) / float64(whole))
}

// ratio is part / whole with two decimals; nil where there is nothing to divide by.
func ratio(part, whole int64) *float64 {
	if whole <= 0 {
		return nil
	}
	return rounded(float64(part) / float64(whole))
}

func rounded(x float64) *float64 {
	x = math.Round(100*x) / 100
	return &x
}

func number(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
