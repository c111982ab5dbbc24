package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/flyprof/flyprof-mcp/core/envelope"
	"github.com/flyprof/flyprof-mcp/core/gpu"
)

// gpus finds the GPUs, and looks at the one that is meant: access, architecture, partition.
func (h *host) gpus(ctx context.Context) []Check {
	if h.Simulated != "" && h.Run == nil {
		return []Check{skipped("gpu", "a simulated "+h.Simulated+"; it was not asked (read-only)")}
	}
	found, err := h.topology(ctx)
	if err != nil {
		return []Check{fail("gpu", envelope.NoGPU, err.Error(), "run on a host with an AMD Instinct GPU, or start the server with --simulate")}
	}
	h.set(func(d *Data) { d.GPUs = append(d.GPUs, found.GPUs...) })
	index := h.Probe.GPU
	if h.in.GPU != nil {
		index = *h.in.GPU
	}
	g, err := found.Select(index)
	if err != nil {
		e := envelope.As(err)
		return []Check{fail("gpu", e.Code, e.Message, e.Help, found.LookedAt...), h.kfd()}
	}
	h.set(func(d *Data) { d.GPU = &g })
	out := []Check{pass("gpu", fmt.Sprintf("%d of %d: %s", index, len(found.Visible), g), found.LookedAt...)}
	arch, partition := h.arch(g), h.partition(g)
	arch.LookedAt, partition.LookedAt = found.LookedAt, found.LookedAt
	return append(out, h.kfd(), h.renderNode(g), arch, partition)
}

// topology asks the driver's files, then rocminfo, then amd-smi.
func (h *host) topology(ctx context.Context) (gpu.Host, error) {
	if h.Simulated != "" {
		out, said, _, err := h.run(ctx, h.Rocminfo)
		if err != nil {
			return gpu.Host{}, fmt.Errorf("the simulated rocminfo cannot be run: %w", err)
		}
		return gpu.FromRocminfo(append(out, said...), func(string) string { return "" }), nil
	}
	found, err := gpu.Topology(ctx, h.Root, h.Getenv)
	if err != nil || len(found.GPUs) > 0 || h.Run == nil {
		return found, err
	}
	if len(h.Rocminfo) > 0 {
		if out, said, _, err := h.run(ctx, h.Rocminfo); err == nil {
			second := gpu.FromRocminfo(append(out, said...), h.Getenv)
			second.LookedAt = append(found.LookedAt, strings.Join(h.Rocminfo, " "))
			if len(second.GPUs) > 0 {
				return second, nil
			}
			// What keeps rocminfo out is worth more than that /sys shows nothing.
			second.Why = found.Why + "; rocminfo: " + second.Why
			found = second
		}
	}
	if len(h.AMDSMI) == 0 {
		return found, nil
	}
	list, _, _, err := h.run(ctx, append(append([]string(nil), h.AMDSMI...), "list", "--json"))
	if err != nil {
		return found, nil
	}
	static, _, _, err := h.run(ctx, append(append([]string(nil), h.AMDSMI...), "static", "--json"))
	if err != nil {
		return found, nil
	}
	if third, err := gpu.FromAMDSMI(list, static, h.Getenv); err == nil && len(third.GPUs) > 0 {
		third.LookedAt = append(found.LookedAt, "amd-smi list --json", "amd-smi static --json")
		return third, nil
	}
	return found, nil
}

func (h *host) run(ctx context.Context, argv []string) (stdout, stderr []byte, exit int, err error) {
	if h.Run == nil {
		return nil, nil, 0, errors.New("no process is started in read-only mode")
	}
	return h.Run(ctx, commandLimit, argv, h.Env, "")
}

// kfd: the compute driver's device, which every process that launches a kernel opens for reading and writing.
func (h *host) kfd() Check { return h.device("kfd", filepath.Join(h.Root, "dev", "kfd"), "/dev/kfd") }

func (h *host) renderNode(g gpu.GPU) Check {
	if g.RenderNode == "" {
		return skipped("render_node", "the driver names no render node")
	}
	return h.device("render_node", filepath.Join(h.Root, g.RenderNode), g.RenderNode)
}

// device tries to open a device as the workload would. Opening /dev/kfd starts nothing on the GPU.
func (h *host) device(id, path, name string) Check {
	if h.Simulated != "" {
		return skipped(id, "the GPU is simulated")
	}
	if h.OS != "linux" {
		return skipped(id, "there is no such device here")
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fail(id, envelope.NoGPU, name+" is not there", "load the amdgpu driver; in a container pass --device=/dev/kfd --device=/dev/dri", name)
	}
	if err == nil {
		err = tryOpen(path)
	}
	do := "give this user access to the device"
	switch {
	case err == nil:
		return pass(id, name+" can be opened", name)
	case errors.Is(err, fs.ErrPermission) && info == nil:
		return fail(id, envelope.GPUAccessDenied, name+" cannot even be looked at by this user", do, name)
	case errors.Is(err, fs.ErrPermission):
		return fail(id, envelope.GPUAccessDenied, fmt.Sprintf("%s may not be opened by this user%s", name, owner(info)), "add the user to that group (usually render and video); in a container give the numeric group with --group-add", name)
	case errors.Is(err, syscall.EBUSY), errors.Is(err, errTooLong):
		return caution(id, fmt.Sprintf("%s: %v", name, err), "somebody may have the GPU for themselves", name)
	}
	return fail(id, envelope.GPUAccessDenied, fmt.Sprintf("%s: %v", name, err), do, name)
}

// tryOpen opens and closes a device; a driver that hangs does not keep the doctor.
func tryOpen(path string) error {
	done := make(chan error, 1)
	go func() {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err == nil {
			err = f.Close()
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(5 * time.Second):
		return errTooLong
	}
}

// verified architectures have been captured from; a capture on another one is tried with a warning.
var verified = map[string]bool{"gfx942": true, "gfx950": true}

func (h *host) arch(g gpu.GPU) Check {
	const id = "arch"
	if want := h.in.Arch; want != "" && g.Arch != "" && want != g.Arch {
		return fail(id, envelope.UnsupportedConfig, fmt.Sprintf("the GPU is %s and the kernel is meant for %s", g.Arch, want), "run on a "+want+" host, or leave arch out")
	}
	if g.Arch == "" {
		return caution(id, "the architecture of this GPU was not found out", "thread trace is known to work on gfx942 and gfx950")
	}
	if !verified[g.Arch] {
		return caution(id, g.Arch+" has not been verified; thread trace is known to work on gfx942 and gfx950", "expect other numbers of shader engines and CUs")
	}
	return pass(id, g.Arch+" is supported")
}

// partition: in CPX mode a "GPU" is one of eight parts with a quarter of the shader engines each trace would expect.
func (h *host) partition(g gpu.GPU) Check {
	const id = "partition"
	switch g.ComputePartition {
	case "":
		return skipped(id, "the driver does not say")
	case "SPX":
		return pass(id, "SPX: the whole GPU")
	}
	return caution(id, fmt.Sprintf("%s: this is one partition with %d CUs", g.ComputePartition, g.CUs), "shader engine masks count within the partition")
}
