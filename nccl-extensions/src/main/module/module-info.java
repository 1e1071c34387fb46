/**
 * Distributed tensors and mixtures of experts, {@link io.github.nccl4j.extensions}, and the bindings of NCCL's extensions,
 * {@link io.github.nccl4j.extensions.global}. The jar has its native code, so that no other module is needed for it.
 */
module io.github.nccl4j.extensions {
    requires transitive io.github.nccl4j;
    requires static org.jspecify;

    exports io.github.nccl4j.extensions;
    exports io.github.nccl4j.extensions.global;
    exports io.github.nccl4j.extensions.library;
    exports io.github.nccl4j.extensions.nccl_ep;
    exports io.github.nccl4j.extensions.nccl_m2n;
    exports io.github.nccl4j.extensions.presets;
}
