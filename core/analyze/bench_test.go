package analyze

import (
	"path/filepath"
	"testing"

	"github.com/flyprof/flyprof-mcp/internal/recorded"
)

// BenchmarkOpen analyses the recorded trace with the largest wave files (2 MB).
func BenchmarkOpen(b *testing.B) {
	dir, _ := filepath.Glob(filepath.Join(recorded.Traces(b), "dispatches/tensile*/ui_output_*"))
	b.ReportAllocs()
	b.SetBytes(1971389)
	for b.Loop() {
		tr, err := Open(b.Context(), dir[0], Options{Arch: "gfx942"})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := tr.Bubbles(b.Context(), BubblesQuery{}); err != nil {
			b.Fatal(err)
		}
	}
}
