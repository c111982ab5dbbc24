// Package att reads one dispatch directory of rocprofv3's thread trace (ui_output_agent_<A>_dispatch_<D>): what was
// traced, whether the files agree with each other, and whether the capture is worth keeping.
//
// The format is that of rocprofiler-sdk's att-tool, JSON versions 3.0.0 and 3.1.0, as written by rocprofv3 (compact, keys
// sorted) and by the Python writer of rocprof-trace-decoder (indented, keys in insertion order). Every byte is taken to be
// foreign: sizes are bounded, files are streamed, names that the files contain never leave the directory.
//
// Words and units are the format's own: hitcount (executions), latency, stall and idle (shader clock cycles, summed over
// the traced waves), SE, SIMD, slot, wave, codeobj, vaddr.
package att

import "github.com/flyprof/flyprof-mcp/core/envelope"

// Codes of the warnings that a dispatch directory may carry.
const (
	WarnWavesMissing     = "WAVES_MISSING"        // filenames.json lists wave files that are not on disk
	WarnNoWavesListed    = "NO_WAVES_LISTED"      // code.json has hits, filenames.json lists no wave
	WarnWavesCut         = "WAVES_CUT"            // more wave files are listed than Options.MaxWaveFiles
	WarnWavesUnfinished  = "WAVES_UNFINISHED"     // records of waves end before the program does
	WarnWavesLost        = "WAVES_LOST"           // more waves began on the traced CU than were traced
	WarnWaveCorrupt      = "WAVE_FILE_CORRUPT"    // a wave file cannot be read
	WarnWaveRefused      = "WAVE_FILE_REFUSED"    // a listed name is no plain regular file of the directory, or is too large
	WarnSnapshots        = "SNAPSHOTS_UNREADABLE" // snapshots.json cannot be read, so no source text is known
	WarnSnapshotsMissing = "SNAPSHOTS_MISSING"    // snapshots.json names files that are not in the directory
	WarnWaveInconsistent = "WAVE_INCONSISTENT"    // a wave file contradicts itself or filenames.json
	WarnWavesDiffer      = "WAVES_DIFFER"         // complete waves do not add up to code.json
	WarnLinesUnknown     = "LINES_UNKNOWN"        // wave files name lines that code.json does not have
	WarnManifestMissing  = "FILENAMES_MISSING"    // there is no filenames.json
	WarnOccupancyMissing = "OCCUPANCY_MISSING"    // there is no occupancy.json
	WarnOccupancyCorrupt = "OCCUPANCY_CORRUPT"    // occupancy.json cannot be read
	WarnShortRows        = "SHORT_ROWS"           // rows of code.json have too few cells and were left out
	WarnDuplicateLines   = "DUPLICATE_LINES"      // several rows of code.json share one LineNumber
	WarnHeaderMissing    = "HEADER_MISSING"       // code.json names no columns
	WarnNotATT           = "NOT_ATT"              // the files hold PC samples, not a thread trace
	WarnVersion          = "UNKNOWN_VERSION"      // neither 3.0.x nor 3.1.x
)

// Names of the files that every dispatch directory may have.
const (
	codeFile      = "code.json"
	manifestFile  = "filenames.json"
	occupancyFile = "occupancy.json"
	snapshotsFile = "snapshots.json"
)

// Totals are sums over the rows of code.json, or over the instructions of the wave files.
type Totals struct {
	Hit     int64 `json:"hitcount"` // executions
	Latency int64 `json:"latency"`  // cycles from the first attempt to issue to the end
	Stall   int64 `json:"stall"`    // cycles of Latency in which the instruction could not issue
	Idle    int64 `json:"idle"`     // cycles between the end of the wave's previous instruction and the first attempt; not in Latency
}

// Add adds without wrapping.
func (t *Totals) Add(o Totals) {
	t.Hit = satAdd(t.Hit, o.Hit)
	t.Latency = satAdd(t.Latency, o.Latency)
	t.Stall = satAdd(t.Stall, o.Stall)
	t.Idle = satAdd(t.Idle, o.Idle)
}

// satAdd adds without wrapping: a hostile file must not turn a sum negative.
func satAdd(a, b int64) int64 {
	sum := a + b
	if (sum > a) == (b > 0) || b == 0 {
		return sum
	}
	if b > 0 {
		return 1<<63 - 1
	}
	return -1 << 63
}

func warn(code, message string) envelope.Warning {
	return envelope.Warning{Code: code, Message: message}
}
