package io.github.nccl4j.extensions.presets;

import io.github.nccl4j.presets.nccl;
import org.bytedeco.javacpp.annotation.Platform;
import org.bytedeco.javacpp.annotation.Properties;
import org.bytedeco.javacpp.tools.Info;
import org.bytedeco.javacpp.tools.InfoMap;
import org.bytedeco.javacpp.tools.InfoMapper;

/**
 * JavaCPP preset of {@code nccl_m2n.h}. JavaCPP generates the global class {@link
 * io.github.nccl4j.extensions.global.nccl_m2n} with every function and constant, and a class for each struct.
 *
 * <p>It maps the types of {@code nccl.h} as {@link nccl} does, but does not inherit that preset: the native code has a
 * symbol table of its own.
 *
 * @since 0.1
 */
@Properties(
        value =
                @Platform(
                        value = {"linux-x86_64", "linux-arm64"},
                        compiler = "cpp17",
                        library = "jninccl4jextensions",
                        include = {"nccl4j_extensions.h", "<nccl_m2n.h>"}),
        target = "io.github.nccl4j.extensions.nccl_m2n",
        global = "io.github.nccl4j.extensions.global.nccl_m2n",
        helper = "io.github.nccl4j.extensions.library.M2nBinding")
public class nccl_m2n implements InfoMapper {

    /** Creates the preset. Called by JavaCPP's parser. */
    public nccl_m2n() {}

    @Override
    public void map(InfoMap map) {
        typesOfNccl(map);
        nccl.derived(map, "/nccl_m2n_rules.txt");
        map.put(new Info("NCCL_M2N_CONFIG_UNDEF_INT")
                .javaText("public static final int NCCL_M2N_CONFIG_UNDEF_INT = Integer.MIN_VALUE;\n"));
    }

    /** Maps the types of {@code nccl.h}. */
    static void typesOfNccl(InfoMap map) {
        new nccl().map(map);
        map.put(new Info().javaText("import io.github.nccl4j.nccl.*;"));
        // Compiled, but not parsed.
        map.put(new Info("nccl4j_extensions.h").skip());
    }
}
