package sim

import (
	"hash/fnv"
	"math/rand/v2"
	"strings"
)

// stream gives random numbers that depend on the seed and the words only, so that one more draw in one place changes
// nothing elsewhere.
func stream(seed uint64, words ...string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(strings.Join(words, "\x00")))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}
