package tile

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/flyprof/flyprof-mcp/core/envelope"
)

const (
	// maxTileSide bounds bm, bn and bk; no workgroup comes near it.
	maxTileSide = 4096
	maxBuffers  = 8
	// maxExtent is the largest axis: kernels index with 32 bits.
	maxExtent = math.MaxInt32
	// maxBytes is more than any memory holds; beyond it a shape is a slip.
	maxBytes = 1 << 50
)

// readTile checks the given tile; nil where none is given. Zero, negative and half-given tiles are errors.
func readTile(in Input) (*Tile, error) {
	fields := []struct {
		name  string
		value *int
	}{{"bm", in.BM}, {"bn", in.BN}, {"bk", in.BK}}
	var present, missing []string
	for _, f := range fields {
		if f.value == nil {
			missing = append(missing, f.name)
			continue
		}
		present = append(present, f.name)
		if err := inRange(f.name, *f.value, maxTileSide); err != nil {
			return nil, err
		}
	}
	buffers := 2
	if in.Buffers != nil {
		buffers = *in.Buffers
		if err := inRange("buffers", buffers, maxBuffers); err != nil {
			return nil, err
		}
	}
	switch {
	case len(present) == 0 && in.Buffers != nil:
		return nil, badArg("buffers", strconv.Itoa(buffers), "buffers belong to a tile and none is given", "bm, bn and bk beside it, or no buffers")
	case len(present) == 0:
		return nil, nil
	case len(missing) > 0:
		return nil, badArg(missing[0], "", strings.Join(present, " and ")+" given without "+strings.Join(missing, " and "), "bm, bn and bk together, or none of them")
	}
	return &Tile{BM: *in.BM, BN: *in.BN, BK: *in.BK, Buffers: buffers}, nil
}

func inRange(field string, value, most int) error {
	if value >= 1 && value <= most {
		return nil
	}
	return badArg(field, strconv.Itoa(value), "out of range", fmt.Sprintf("a whole number from 1 to %d", most))
}

// checkSize refuses problems that no memory holds, so that all later figures are finite and countable.
func checkSize(w work, p problem) error {
	if w.bytes <= maxBytes {
		return nil
	}
	return badArg("shape", p.canonical(), fmt.Sprintf("the problem reads and writes %.3g bytes", w.bytes), "a problem of at most 2^50 bytes")
}

func badArg(field, value, why, allowed string) error {
	message := field + ": " + why
	if value != "" {
		message = field + " " + strconv.Quote(short(value)) + ": " + why
	}
	return envelope.Build(envelope.BadArgs, envelope.Facts{
		Message:  message + "; allowed: " + allowed,
		Evidence: envelope.Evidence{Field: field, Value: short(value), Allowed: allowed},
	})
}

// short bounds a foreign text and makes it valid UTF-8.
func short(s string) string {
	const most = 200
	if len(s) > most {
		s = s[:most]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

func joined(list []string) string { return strings.Join(list, "; ") }

func round3(x float64) float64 { return math.Round(x*1000) / 1000 }
