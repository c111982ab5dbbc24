// Package rocprof is what rocprofv3 takes and what it gives: command line, job file and environment on the one side, version,
// CSV files, output directories and log on the other.
//
// It starts no process. Facts are rocprofv3's own (rocprofiler-sdk: source/bin/rocprofv3.py, source/lib/rocprofiler-sdk-tool,
// source/lib/output) for versions 0.6.0 (ROCm 6.4) to 1.3.2 unless a comment says otherwise.
package rocprof
