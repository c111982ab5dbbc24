package capture

import (
	"context"
	"fmt"
	"time"

	"github.com/flyprof/flyprof-mcp/core/envelope"
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

// watchGPU says whether somebody uses the GPU, as far as the driver's files tell. It warns, or refuses where the settings say so; a
// process that only holds memory disturbs nobody's times. A hung GPU does not keep it longer than its limit.
func (d *driver) watchGPU(ctx context.Context, sysRoot string) error {
	if d.plan.Tools.Simulated != "" || d.plan.GPU.BDF == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, idleLimit)
	defer cancel()
	sum, n := 0, 0
	var vram int64
	for range idleReadings {
		u, err := gpu.ReadUsage(ctx, sysRoot, gpu.GPU{BDF: d.plan.GPU.BDF})
		if err != nil {
			return nil // not readable here: nothing is known
		}
		if u.BusyPercent != nil {
			sum, n = sum+*u.BusyPercent, n+1
		}
		if u.VRAMUsed != nil {
			vram = max(vram, *u.VRAMUsed)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(idleEvery):
		}
	}
	busy := sum / max(n, 1)
	if busy < busyPercent && vram < busyVRAM {
		return nil
	}
	found := fmt.Sprintf("the GPU was busy %d%% of the time and %.1f GiB of its memory were in use", busy, float64(vram)/(1<<30))
	if d.plan.RefuseBusy {
		return d.fail(envelope.GPUBusy, envelope.Facts{
			Message:  "before the workload ran, " + found + ", by something that is no capture of this tool",
			Evidence: envelope.Evidence{Holder: "a process outside this tool", Found: found, Setting: "--gpu-in-use (FLYPROF_GPU_IN_USE)", Value: "refuse", Phase: d.run.Phase},
		})
	}
	d.warn("GPU_IN_USE", "before the workload ran, "+found+": times and stalls may be disturbed")
	return nil
}
