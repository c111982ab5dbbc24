package gpu

import (
	"context"
	"strconv"
)

// Usage is what a GPU is busy with at this moment. Nil means that the driver does not say. One reading of an idle GPU does
// not show that nobody uses it.
type Usage struct {
	// BusyPercent is the share of time in which the GPU worked lately, 0 to 100.
	BusyPercent *int `json:"busy_percent,omitempty"`
	// VRAMUsed and VRAMTotal are in bytes; of the whole GPU where it is partitioned.
	VRAMUsed  *int64 `json:"vram_used_bytes,omitempty"`
	VRAMTotal *int64 `json:"vram_total_bytes,omitempty"`
}

// ReadUsage asks the driver below sysRoot. Unlike the topology these figures come from the GPU itself, and a hung GPU may
// keep the reader waiting for ever: when ctx ends first, its error is returned and the reader is left behind.
func ReadUsage(ctx context.Context, sysRoot string, g GPU) (Usage, error) {
	done := make(chan Usage, 1)
	go func() {
		dir := pciDir(sysRoot, g)
		if dir == "" {
			done <- Usage{}
			return
		}
		u := Usage{VRAMUsed: number(dir, "mem_info_vram_used"), VRAMTotal: number(dir, "mem_info_vram_total")}
		if busy := number(dir, "gpu_busy_percent"); busy != nil && *busy <= 100 {
			percent := int(*busy)
			u.BusyPercent = &percent
		}
		done <- u
	}()
	select {
	case u := <-done:
		return u, nil
	case <-ctx.Done():
		return Usage{}, ctx.Err()
	}
}

// number reads a file that holds one non-negative number.
func number(dir, name string) *int64 {
	n, err := strconv.ParseInt(word(dir, name), 10, 64)
	if err != nil || n < 0 {
		return nil
	}
	return &n
}
