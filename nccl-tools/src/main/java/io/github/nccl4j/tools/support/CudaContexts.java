package io.github.nccl4j.tools.support;

import org.bytedeco.cuda.global.cudart;

/** The devices on which this process has contexts. Loads CUDA's bindings. */
public final class CudaContexts {
    private CudaContexts() {}

    /** True if the process has a device's primary context, the one that CUDA's runtime and NCCL use. */
    public static boolean isOn(int device) {
        int[] flags = new int[1];
        int[] active = new int[1];
        int result = cudart.cuDevicePrimaryCtxGetState(device, flags, active);
        if (result != cudart.CUDA_SUCCESS) {
            throw new AssertionError("cuDevicePrimaryCtxGetState(" + device + "): " + result);
        }
        return active[0] != 0;
    }
}
