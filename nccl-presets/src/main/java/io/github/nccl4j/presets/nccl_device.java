package io.github.nccl4j.presets;

import org.bytedeco.javacpp.annotation.Platform;
import org.bytedeco.javacpp.annotation.Properties;
import org.bytedeco.javacpp.tools.Info;
import org.bytedeco.javacpp.tools.InfoMap;
import org.bytedeco.javacpp.tools.InfoMapper;

/**
 * JavaCPP preset of {@code nccl_device.h}, the host side of NCCL's device API. JavaCPP generates the global class
 * {@link io.github.nccl4j.global.nccl_device} with every function and constant, and a class for each struct in
 * {@code io.github.nccl4j.nccl_device}. They use the native library of {@link nccl} and the same forms of parameters.
 *
 * <p>The header is always nccl4j's own: NVIDIA's header is C++ with templates for kernels, and needs CUDA's headers.
 *
 * @since 0.1
 */
@Properties(
        inherit = nccl.class,
        value = @Platform(library = "jninccl4j", include = "<nccl_device.h>"),
        target = "io.github.nccl4j.nccl_device",
        global = "io.github.nccl4j.global.nccl_device",
        helper = "io.github.nccl4j.library.DeviceBinding")
public class nccl_device implements InfoMapper {

    /** Creates the preset. Called by JavaCPP's parser. */
    public nccl_device() {}

    @Override
    public void map(InfoMap map) {
        nccl.derived(map, "/nccl_device_rules.txt");
        map.put(new Info("NCCL_LE_ID_INVALID").javaText("public static final int NCCL_LE_ID_INVALID = -1;\n"));
    }
}
