package stdio

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
)

// line is one line of input.
type line struct {
	text    []byte
	tooLong bool
	err     error
}

// byteOrderMark is what some Windows programs put before UTF-8.
var byteOrderMark = []byte("\xef\xbb\xbf")

// readLines sends the lines of in that are not blank, without their ends, and closes the channel at the end of input. A
// line of more than limit bytes is skipped up to the next newline without being kept.
func readLines(ctx context.Context, in io.Reader, limit int, out chan<- line) {
	defer close(out)
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		text, tooLong, err := readLine(r, limit)
		l := line{text: bytes.TrimSpace(bytes.TrimPrefix(text, byteOrderMark)), tooLong: tooLong}
		if len(l.text) > 0 || l.tooLong {
			select {
			case out <- l:
			case <-ctx.Done():
				return
			}
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			select {
			case out <- line{err: err}:
			case <-ctx.Done():
			}
			return
		}
	}
}

func readLine(r *bufio.Reader, limit int) (text []byte, tooLong bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if !tooLong {
			text = append(text, part...)
		}
		if len(text) > limit+len("\r\n") {
			text, tooLong = nil, true
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return text, tooLong, err
		}
	}
}
