package capture

import (
	"context"
	"fmt"
	"time"

	"github.com/flyprof/flyprof-mcp/core/gpu"
)

// The window in which the GPU is watched before the workload first runs: one reading of an idle GPU shows little.
const (
	idleReadings = 5
	idleEvery    = 200 * time.Millisecond
	idleLimit    = 3 * time.Second
	busyPercent  = 10
	busyVRAM     = 4 << 30 // bytes; the driver and a display keep far less
)

// watchGPU says whether somebody uses the GPU, as far as the driver's files tell. It warns and does not refuse: a process that
// only holds memory disturbs nobody. A hung GPU does not keep it longer than its limit.
func (d *driver) watchGPU(ctx context.Context, sysRoot string) {
	if d.plan.Tools.Simulated != "" || d.plan.GPU.BDF == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, idleLimit)
	defer cancel()
	sum, n := 0, 0
	var vram int64
	for range idleReadings {
		u, err := gpu.ReadUsage(ctx, sysRoot, gpu.GPU{BDF: d.plan.GPU.BDF})
		if err != nil {
			return // not readable here: nothing is known
		}
		if u.BusyPercent != nil {
			sum, n = sum+*u.BusyPercent, n+1
		}
		if u.VRAMUsed != nil {
			vram = max(vram, *u.VRAMUsed)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(idleEvery):
		}
	}
	if busy := sum / max(n, 1); busy >= busyPercent || vram >= busyVRAM {
		d.warn("GPU_IN_USE", fmt.Sprintf("before the workload ran, the GPU was busy %d%% of the time and %.1f GiB of its memory were in use: times and stalls may be disturbed", busy, float64(vram)/(1<<30)))
	}
}
