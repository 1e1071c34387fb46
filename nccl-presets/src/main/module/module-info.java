/**
 * NCCL for Java programs: {@link io.github.nccl4j.highlevel} is what they use, {@link io.github.nccl4j.global},
 * {@link io.github.nccl4j.nccl} and {@link io.github.nccl4j.nccl_device} are the bindings below it, and {@link io.github.nccl4j.library} is the choice of library,
 * whose types both name. {@link io.github.nccl4j.launch} is how the ranks of a program meet, and {@link io.github.nccl4j.ras} asks NCCL for its status. {@link io.github.nccl4j.presets} is for
 * JavaCPP presets that build on these. A test of the layers checks that no exported signature shows a type of another package.
 *
 * <p>The jars with native code are modules that nothing requires: {@code --add-modules ALL-MODULE-PATH} has them found.
 */
module io.github.nccl4j {
    requires transitive org.bytedeco.javacpp;
    requires transitive org.bytedeco.cuda;
    requires static jdk.jfr;
    requires static org.jspecify;

    exports io.github.nccl4j.highlevel;
    exports io.github.nccl4j.launch;
    exports io.github.nccl4j.global;
    exports io.github.nccl4j.library;
    exports io.github.nccl4j.nccl;
    exports io.github.nccl4j.nccl_device;
    exports io.github.nccl4j.presets;
    exports io.github.nccl4j.ras;
}
