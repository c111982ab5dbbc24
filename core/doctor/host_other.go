//go:build !unix

package doctor

import "io/fs"

// FreeSpace is Probe.Free of this machine: not known here.
func FreeSpace(string) (int64, bool) { return 0, false }

func signalNumber(string) int { return 1 }

func owner(fs.FileInfo) string { return "" }
