/**
 * NCCL for Java programs: programs use {@link io.github.nccl4j.highlevel}. Below it are the bindings, {@link
 * io.github.nccl4j.global}, {@link io.github.nccl4j.nccl} and {@link io.github.nccl4j.nccl_device}, and the choice of
 * library, {@link io.github.nccl4j.library}. The ranks of a program meet through {@link io.github.nccl4j.launch}.
 * {@link io.github.nccl4j.ras} asks NCCL for its status. {@link io.github.nccl4j.presets} is for JavaCPP presets that
 * build on the bindings. A test of the layers checks that no exported signature shows a type of another package.
 *
 * <p>No module requires the jars with native code: {@code --add-modules ALL-MODULE-PATH} adds them, in an image of jlink
 * {@code --add-modules ALL-SYSTEM}.
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

    uses io.github.nccl4j.launch.ObserverProvider;
}
