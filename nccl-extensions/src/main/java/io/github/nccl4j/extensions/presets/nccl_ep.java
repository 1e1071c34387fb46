package io.github.nccl4j.extensions.presets;

import io.github.nccl4j.presets.nccl;
import org.bytedeco.javacpp.annotation.Platform;
import org.bytedeco.javacpp.annotation.Properties;
import org.bytedeco.javacpp.tools.InfoMap;
import org.bytedeco.javacpp.tools.InfoMapper;

/**
 * JavaCPP preset of {@code nccl_ep.h}. JavaCPP generates the global class {@link
 * io.github.nccl4j.extensions.global.nccl_ep} with every function and constant, and a class for each struct. They use the
 * native library of {@link nccl_m2n} and the same forms of parameters.
 *
 * @since 0.1
 */
@Properties(
        value =
                @Platform(
                        value = {"linux-x86_64", "linux-arm64"},
                        compiler = "cpp17",
                        library = "jninccl4jextensions",
                        include = {"nccl4j_extensions.h", "<nccl_ep.h>"}),
        target = "io.github.nccl4j.extensions.nccl_ep",
        global = "io.github.nccl4j.extensions.global.nccl_ep",
        helper = "io.github.nccl4j.extensions.library.EpBinding")
public class nccl_ep implements InfoMapper {

    /** Creates the preset. Called by JavaCPP's parser. */
    public nccl_ep() {}

    @Override
    public void map(InfoMap map) {
        nccl_m2n.typesOfNccl(map);
        nccl.derived(map, "/nccl_ep_rules.txt");
    }
}
