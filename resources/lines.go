package resources

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
)

const (
	// maxScan is how much of a resource is looked through for a line, in bytes.
	maxScan   = 64 << 20
	scanChunk = 64 << 10
)

// lineOffset finds where a line begins, counted from 1, or from the end where line is negative. A newline at the very end begins no
// line there, and a resource of fewer lines than are asked for from its end is given from its beginning.
func lineOffset(r io.ReaderAt, of Page, line int64) (int64, error) {
	if line < 0 {
		return fromEnd(r, of, -line)
	}
	at, seen := int64(0), int64(1)
	chunk := make([]byte, scanChunk)
	for seen < line {
		if at >= min(of.Size, maxScan) {
			if at < of.Size {
				return 0, badPage(of.URI, "line", strconv.FormatInt(line, 10), fmt.Sprintf("1 to %d, the lines of the first %d bytes; read on by offset", seen, at))
			}
			return 0, badPage(of.URI, "line", strconv.FormatInt(line, 10), fmt.Sprintf("1 to %d", seen))
		}
		n, err := r.ReadAt(chunk[:min(scanChunk, of.Size-at)], at)
		if n == 0 {
			return 0, fmt.Errorf("read at %d: %w", at, err)
		}
		for rest := chunk[:n]; seen < line; seen++ {
			end := bytes.IndexByte(rest, '\n')
			if end < 0 {
				break
			}
			if rest = rest[end+1:]; seen+1 == line {
				return at + int64(n-len(rest)), nil
			}
		}
		at += int64(n)
	}
	return at, nil
}

func fromEnd(r io.ReaderAt, of Page, lines int64) (int64, error) {
	end, seen := of.Size, int64(0)
	chunk := make([]byte, scanChunk)
	for end > 0 {
		if of.Size-end >= maxScan {
			return 0, badPage(of.URI, "line", strconv.FormatInt(-lines, 10), fmt.Sprintf("-%d to -1, the lines of the last %d bytes; read by offset", seen, of.Size-end))
		}
		from := max(0, end-scanChunk)
		part := chunk[:end-from]
		if n, err := r.ReadAt(part, from); n < len(part) {
			return 0, fmt.Errorf("read at %d: %w", from, err)
		}
		for i := len(part) - 1; i >= 0; i-- {
			if part[i] != '\n' || from+int64(i) == of.Size-1 {
				continue
			}
			if seen++; seen == lines {
				return from + int64(i) + 1, nil
			}
		}
		end = from
	}
	return 0, nil
}

// wholeLines cuts a part of a resource after at most n lines (0 for no bound), and else to its last whole line, if it has one. It
// counts the lines that end in what is left, and says 0 where the part ends within a line.
func wholeLines(b []byte, n int, last bool) (part []byte, lines int64) {
	for at := 0; n == 0 || lines < int64(n); {
		end := bytes.IndexByte(b[at:], '\n')
		if end < 0 {
			if at == 0 || last {
				return b, 0
			}
			return b[:at], lines
		}
		at += end + 1
		lines++
		if lines == int64(n) {
			return b[:at], lines
		}
	}
	return b, lines
}
