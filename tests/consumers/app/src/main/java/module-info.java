module consumer {
    requires io.github.nccl4j;
}
