package worktree

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	maxIndexBytes   = 64 << 20
	maxIndexEntries = 500_000
)

// indexEntry is one file of git's index (gitformat-index): what was last added, with the file's size and time then.
type indexEntry struct {
	path    string
	oid     string // hex
	size    uint32
	mtimeS  uint32
	mtimeNS uint32
	mode    uint32
	stage   int
	// ignored: git was told not to look at the file (assume-valid, skip-worktree).
	ignored bool
}

// parseIndex reads versions 2, 3 and 4. What follows the entries is not looked at. A damaged file gives the entries before
// the damage and an error.
func parseIndex(raw []byte, hashBytes int) ([]indexEntry, error) {
	if len(raw) < 12 || string(raw[:4]) != "DIRC" {
		return nil, errors.New("no git index")
	}
	version, count := binary.BigEndian.Uint32(raw[4:]), binary.BigEndian.Uint32(raw[8:])
	if version < 2 || version > 4 || count > maxIndexEntries {
		return nil, fmt.Errorf("a git index of version %d with %d entries", version, count)
	}
	var out []indexEntry
	at, last := 12, ""
	for range count {
		e, next, err := parseEntry(raw, at, int(version), hashBytes, last)
		if err != nil {
			return out, err
		}
		out = append(out, e)
		at, last = next, e.path
	}
	return out, nil
}

var errShortIndex = errors.New("the git index ends early")

func parseEntry(raw []byte, at, version, hashBytes int, last string) (e indexEntry, next int, err error) {
	head := 40 + hashBytes + 2
	if at+head+2 > len(raw) {
		return e, 0, errShortIndex
	}
	b := raw[at:]
	e.mtimeS, e.mtimeNS = binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint32(b[12:])
	e.mode, e.size = binary.BigEndian.Uint32(b[24:]), binary.BigEndian.Uint32(b[36:])
	e.oid = hex.EncodeToString(b[40 : 40+hashBytes])
	flags := binary.BigEndian.Uint16(b[40+hashBytes:])
	e.stage, e.ignored = int(flags>>12&3), flags&0x8000 != 0
	if version >= 3 && flags&0x4000 != 0 {
		e.ignored = e.ignored || binary.BigEndian.Uint16(b[head:])&0x4000 != 0
		head += 2
	}
	kept := ""
	if version == 4 {
		strip, n := indexVarint(b[head:])
		if n == 0 || strip > uint64(len(last)) {
			return e, 0, errShortIndex
		}
		kept = last[:uint64(len(last))-strip]
		head += n
	}
	end := bytes.IndexByte(b[head:min(len(b), head+4097)], 0)
	if end < 0 || len(kept)+end > 4096 {
		return e, 0, errShortIndex
	}
	e.path = kept + string(b[head:head+end])
	if version == 4 {
		return e, at + head + end + 1, nil
	}
	// One to eight NULs fill up to a multiple of eight.
	return e, at + (head+end+8)/8*8, nil
}

// indexVarint reads the offset encoding of pack files: seven bits a byte, each continuation adds one. n is 0 where it is
// cut or absurd.
func indexVarint(b []byte) (value uint64, n int) {
	for i, c := range b[:min(len(b), 5)] {
		if i > 0 {
			value++
		}
		value = value<<7 | uint64(c&0x7f)
		if c&0x80 == 0 {
			return value, i + 1
		}
	}
	return 0, 0
}

// changed names tracked Python sources whose content is not what the index has. hashHex is the length of the repository's
// hashes in hex; 0 for a repository without a commit.
func (g gitDir) changed(ctx context.Context, root *os.Root, hashHex int) []string {
	name := filepath.Join(g.dir, "index")
	info, err := os.Stat(name)
	raw, ok := readRegular(name, maxIndexBytes)
	if hashHex == 0 || err != nil || !ok {
		return nil
	}
	entries, _ := parseIndex(raw, hashHex/2)
	var out []string
	budget := int64(maxSourceBytes)
	for _, e := range entries {
		if ctx.Err() != nil || len(out) >= maxChanged || budget < 0 {
			break
		}
		if isSource(e) && e.differs(root, info.ModTime(), &budget) {
			out = append(out, e.path)
		}
	}
	return out
}

func isSource(e indexEntry) bool {
	dir, _, _ := strings.Cut(e.path, "/")
	return !e.ignored && e.mode>>12 == 0o10 && strings.HasSuffix(e.path, ".py") && (dir == "kernels" || dir == "tests" || dir == "python") && filepath.IsLocal(filepath.FromSlash(e.path))
}

// differs compares a file with its entry: by size and time where these decide, else by content. A file written in the same
// moment as the index may have changed without a new time, so its content decides.
func (e indexEntry) differs(root *os.Root, indexTime time.Time, budget *int64) bool {
	if e.stage != 0 {
		return true // an unfinished merge
	}
	info, err := root.Lstat(e.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true
	case err != nil || !info.Mode().IsRegular():
		return false
	case info.Size() == int64(e.size) && e.sameTime(info.ModTime()) && info.ModTime().Before(indexTime):
		return false
	}
	*budget -= info.Size()
	raw, why := readBounded(root, e.path, maxFileBytes)
	if why != "" {
		return false
	}
	// Git may have been told to turn line ends on checkout.
	return e.oid != blobID(raw, len(e.oid)) && e.oid != blobID(bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n")), len(e.oid))
}

func (e indexEntry) sameTime(t time.Time) bool {
	return uint32(t.Unix()) == e.mtimeS && (e.mtimeNS == 0 || uint32(t.Nanosecond()) == e.mtimeNS)
}

// blobID is git's name of a content, in hex digits.
func blobID(raw []byte, digits int) string {
	h := hash.Hash(sha1.New())
	if digits == 64 {
		h = sha256.New()
	}
	fmt.Fprintf(h, "blob %d\x00", len(raw))
	h.Write(raw)
	return hex.EncodeToString(h.Sum(nil))
}

// joinPath joins as the file system does: an absolute second path stands alone.
func joinPath(dir, name string) string {
	if name = filepath.FromSlash(name); filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}
